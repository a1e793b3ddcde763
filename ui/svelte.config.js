/** Runes only: the older reactive syntax does not compile. */
export default { compilerOptions: { runes: true } };
