const LONGEST = 200;

/**
 * Whatever a connection, a model or a file named is shown as one bounded line: line breaks and the characters that
 * steer layout (control and bidirectional ones) go, and text that runs the other way is isolated, so that it cannot
 * reorder our words around it.
 */
export function oneLine(text: string, longest = LONGEST): string {
  const cleaned = text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/gu, "");
  const words = cleaned.replace(/\s+/gu, " ").trim();
  const points = [...words];
  const short = points.length > longest ? `${points.slice(0, longest).join("").trimEnd()}…` : words;
  return runsLeft.test(short) ? `\u2068${short}\u2069` : short;
}

const runsLeft = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
