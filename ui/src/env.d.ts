declare module "*.svg?path" {
  /** The `d` of the icon's path, drawn in a 256 box. */
  const path: string;
  export default path;
}
