/** The last part of a path, in either system's spelling; the path itself where it has none. */
export function baseName(path: string): string {
  const parts = path.split(/[\\/]+/).filter((part) => part !== "");
  return parts.at(-1) ?? path;
}

/** The folder a path lies in, "" for a bare name. */
export function parentOf(path: string): string {
  const trimmed = path.replace(/[\\/]+$/, "");
  const at = Math.max(trimmed.lastIndexOf("/"), trimmed.lastIndexOf("\\"));
  return at <= 0 ? "" : trimmed.slice(0, at);
}

/** One text argument of a call; "" where it is absent or no text. */
export function textArgument(args: unknown, name: string): string {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return "";
  const value = (args as Record<string, unknown>)[name];
  return typeof value === "string" ? value : "";
}
