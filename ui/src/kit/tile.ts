/** Which of the six tile pairs (1…6) a connection's id picks; the same id always picks the same (FNV-1a). */
export function tilePair(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) {
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  }
  return ((hash >>> 0) % 6) + 1;
}
