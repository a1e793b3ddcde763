const named: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–",
  lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•", middot: "·", times: "×", divide: "÷", deg: "°",
  euro: "€", pound: "£", yen: "¥", sect: "§", para: "¶", plusmn: "±", frac12: "½", frac14: "¼", frac34: "¾", sup2: "²", sup3: "³",
  larr: "←", rarr: "→", uarr: "↑", darr: "↓", le: "≤", ge: "≥", ne: "≠", asymp: "≈", infin: "∞", micro: "µ",
};

/** Turns `&amp;` and its like into the characters they stand for; one that is unknown stays as written. */
export function decodeEntities(text: string): string {
  return text.replace(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]+\d*);/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return named[name.toLowerCase()] ?? whole;
    const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "\ufffd";
  });
}

/** The address of a link that may be opened, with its host; null for every other scheme, which stays text. */
export function webAddress(href: string): { href: string; host: string } | null {
  let url: URL;
  try {
    url = new URL(decodeEntities(href));
  } catch {
    return null;
  }
  return url.protocol === "https:" || url.protocol === "http:" ? { href: url.href, host: url.host } : null;
}
