/** Pictures that are drawn. Anything else is told by its type: what a connection calls a picture need not be one. */
const pictures: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml"];
const sounds: readonly string[] = ["audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/ogg", "audio/webm", "audio/flac", "audio/aac", "audio/mp4"];

/** Longer bodies, in characters of base64, are told by their size alone. */
const LONGEST = 30_000_000;

export type MediaKind = "picture" | "sound" | "text" | "other";

/** The type without its parameters, as it is compared and shown. */
export function plainType(mime: string): string {
  return (mime.split(";")[0] ?? "").trim().toLowerCase();
}

/** How a body of this type is shown. */
export function mediaKind(mime: string): MediaKind {
  const type = plainType(mime);
  if (pictures.includes(type)) return "picture";
  if (sounds.includes(type)) return "sound";
  return type.startsWith("text/") ? "text" : "other";
}

/** The address of a body that the page holds itself, or nothing where it is too long or no base64. */
export function dataAddress(mime: string, body: string): string | null {
  return body.length > 0 && body.length <= LONGEST && /^[A-Za-z0-9+/]+={0,2}$/u.test(body) ? `data:${plainType(mime)};base64,${body}` : null;
}

/** How many bytes base64 stands for. */
export function sizeOf(body: string): number {
  const padding = body.endsWith("==") ? 2 : body.endsWith("=") ? 1 : 0;
  return Math.max(0, (body.length / 4) * 3 - padding);
}
