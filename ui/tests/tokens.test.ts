import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync("src/kit/tokens.css", "utf8");

function tokens(selector: string): Record<string, string> {
  const start = css.indexOf(`${selector} {`);
  const block = css.slice(start, css.indexOf("\n}", start));
  return Object.fromEntries([...block.matchAll(/--([\w-]+):\s*(#[0-9A-Fa-f]{6});/g)].map((found) => [found[1], found[2]]));
}

const light = tokens(":root");
const dark = { ...light, ...tokens(':root[data-theme="dark"]') };

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

/** Contrast as WCAG 2.2 defines it. */
function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const surfaces = ["canvas", "side", "card", "sunken", "hover"];
const pages = ["canvas", "card", "sunken"];

/** What stands on what, and the least ratio: 4.5 for text, 3 for controls and graphics. */
const pairs: [string, string[], number][] = [
  ["ink", [...surfaces, "pine-soft", "lamp-soft", "cinnabar-soft"], 4.5],
  ["ink2", [...surfaces, "pine-soft", "lamp-soft"], 4.5],
  ["ink3", surfaces, 4.5],
  ["pine", [...surfaces, "pine-soft"], 4.5],
  ["pine-strong", surfaces, 4.5],
  ["on-pine", ["pine", "pine-strong"], 4.5],
  ["lamp-ink", ["canvas", "card", "side", "lamp-soft"], 4.5],
  ["lamp", ["canvas", "card", "side", "lamp-soft"], 3],
  ["lamp-edge", ["canvas", "card"], 3],
  ["cinnabar", [...pages, "side", "cinnabar-soft"], 4.5],
  ["on-cinnabar", ["cinnabar"], 4.5],
  ["cinnabar-edge", pages, 3],
  ["edge", pages, 3],
  ["canvas", ["ink", "ink2"], 4.5],
  ["on-ink", ["ink"], 4.5],
  // Code is coloured with the tiles' inks.
  ...([1, 2, 3, 4, 5, 6].map((n) => [`tile-${n}-ink`, [`tile-${n}`, "sunken"], 4.5]) as [string, string[], number][]),
];

test.each([["light", light], ["dark", dark]] as const)("every %s colour can be read on every surface it stands on", (_name, theme) => {
  const faults: string[] = [];
  for (const [above, belows, least] of pairs) {
    for (const below of belows) {
      const [a, b] = [theme[above], theme[below]];
      if (!a || !b) faults.push(`${above} or ${below} is missing`);
      else if (contrast(a, b) < least) faults.push(`${above} on ${below}: ${contrast(a, b).toFixed(2)}, needs ${least}`);
    }
  }
  expect(faults).toEqual([]);
});

test.each([
  ["ink3 on hover", light["ink3"], light["hover"], 4.6],
  ["lamp on lamp-soft", light["lamp"], light["lamp-soft"], 3.1],
  ["ink on pine-soft, dark", dark["ink"], dark["pine-soft"], 10.5],
])("the published ratio holds: %s", (_name, a, b, ratio) => {
  expect(contrast(a!, b!)).toBeGreaterThan(ratio - 0.06);
});

test("both themes name the same colours", () => {
  const fixed = ["ground", "ground-text", "ground-text2", "bracket-near", "bracket-far", "bracket-point"];
  const own = Object.keys(tokens(':root[data-theme="dark"]')).sort();
  expect(own).toEqual(Object.keys(light).filter((name) => !fixed.includes(name)).sort());
});
