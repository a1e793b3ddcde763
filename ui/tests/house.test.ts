import { readFileSync, readdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const src = resolve("src");

function sources(ending: RegExp): { name: string; text: string }[] {
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((name) => ending.test(name) && !name.startsWith("paraglide"))
    .map((name) => ({ name: relative(src, join(src, name)), text: readFileSync(join(src, name), "utf8") }));
}

const components = sources(/\.svelte$/);
const styles = [...components, ...sources(/\.css$/)];
const code = sources(/\.(ts|svelte)$/).filter(({ name }) => !name.endsWith(".test.ts") && !name.startsWith("contract"));

const style = (text: string) => [...text.matchAll(/<style[^>]*>([\s\S]*?)<\/style>/g)].map((found) => found[1]).join("\n");
const markup = (text: string) => text.replace(/<script[\s\S]*?<\/script>/g, "").replace(/<style[\s\S]*?<\/style>/g, "").replace(/<!--[\s\S]*?-->/g, "");

function faults(of: { name: string; text: string }[], pattern: RegExp, part: (text: string) => string = (text) => text): string[] {
  return of.flatMap(({ name, text }) => [...part(text).matchAll(new RegExp(pattern, pattern.flags.includes("g") ? pattern.flags : `${pattern.flags}g`))].map((found) => `${name}: ${found[0].trim()}`));
}

test("components take every colour from the tokens", () => {
  expect(faults(components, /#[0-9a-f]{3,8}\b(?![\w-])|\b(?:rgb|rgba|hsl|hsla|oklch|lab)\(/i, style)).toEqual([]);
  expect(faults(components, /(?:color|background|border(?:-\w+)?|fill|stroke|outline|box-shadow)\s*:[^;]*\b(?:white|black|red|green|blue|gr[ae]y|orange|yellow|purple|pink|silver|navy|teal)\b/i, style)).toEqual([]);
});

test("nothing sets markup, and nothing carries a style attribute", () => {
  expect(faults(components, /\{@html/)).toEqual([]);
  expect(faults(code, /\.innerHTML|insertAdjacentHTML|outerHTML/)).toEqual([]);
  expect(faults(components, /\sstyle=/, markup)).toEqual([]);
});

test("two weights, no italics, no gradient, no blur", () => {
  const all = styles.map(({ name, text }) => ({ name, text: name.endsWith(".css") ? text : style(text) }));
  expect(faults(all, /font-weight:(?!\s*(?:400|600|inherit)\b)[^;]+/)).toEqual([]);
  expect(faults(all, /font:\s*(?:[1-35789]00|bold|lighter)\b[^;]*/)).toEqual([]);
  expect(faults(all, /italic|gradient\(|blur\(/)).toEqual([]);
});

test("no component says a word of its own: words come from the catalogs", () => {
  const found = components.flatMap(({ name, text }) => {
    // What is left between tags once expressions and blocks are taken out.
    let rest = markup(text);
    let before = "";
    while (rest !== before) {
      before = rest;
      rest = rest.replace(/\{[^{}]*\}/g, "");
    }
    const between = [...rest.matchAll(/>([^<>]*\p{L}[^<>]*)</gu)].map((hit) => hit[1]!.trim());
    const named = [...rest.matchAll(/\b(?:aria-label|title|placeholder|alt|label)="(?!https:)([^"]*\p{L}[^"]*)"/gu)].map((hit) => hit[0]);
    return [...between, ...named].filter((word) => word !== "").map((word) => `${name}: ${word}`);
  });
  expect(found).toEqual([]);
});

test("one feature does not know another", () => {
  const found = code.flatMap(({ name, text }) => {
    const own = /^features\/(\w+)\//.exec(name)?.[1];
    if (!own) return [];
    return [...text.matchAll(/@\/features\/(\w+)/g)].filter((hit) => hit[1] !== own).map((hit) => `${name}: ${hit[0]}`);
  });
  expect(found).toEqual([]);
});

test("only host/tauri.ts knows the window's own interface, and nothing is kept in the browser", () => {
  expect(faults(code.filter(({ name }) => name !== "host/tauri.ts"), /@tauri-apps\//)).toEqual([]);
  expect(faults(code, /localStorage|sessionStorage|indexedDB|document\.cookie/)).toEqual([]);
});

test("a text is asked for by its whole name, so that the start reads only its own texts", () => {
  expect(faults(code, /\bm\[(?!")[^\]]*\]/)).toEqual([]);
});

test("no file grows past 600 lines", () => {
  expect(code.filter(({ text }) => text.split("\n").length > 600).map(({ name }) => name)).toEqual([]);
});
