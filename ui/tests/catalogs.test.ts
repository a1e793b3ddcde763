import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";

const folder = "messages";
const areas = readdirSync(`${folder}/en`);

function catalog(language: string, area: string): Map<string, string[]> {
  const parsed: Record<string, unknown> = JSON.parse(readFileSync(`${folder}/${language}/${area}`, "utf8"));
  return new Map(Object.entries(parsed).filter(([key]) => key !== "$schema").map(([key, value]) => [key, texts(value)]));
}

/** Every text of a message: one, or one for each of its forms. */
function texts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return (value as { match: Record<string, string> }[]).flatMap((variant) => Object.values(variant.match));
}

const placeholders = (all: string[]) => [...new Set(all.flatMap((text) => [...text.matchAll(/\{(\w+)\}/g)].map((hit) => hit[1])))].sort();

test("both languages have the same files", () => {
  expect(readdirSync(`${folder}/zh-CN`).sort()).toEqual([...areas].sort());
});

test.each(areas)("%s has the same keys and values to fill in, in both languages", (area) => {
  const [en, zh] = [catalog("en", area), catalog("zh-CN", area)];
  expect([...zh.keys()].sort()).toEqual([...en.keys()].sort());
  const differ = [...en].filter(([key, value]) => placeholders(value).join() !== placeholders(zh.get(key) ?? []).join()).map(([key]) => key);
  // Chinese may leave out a count only where it does not change the words.
  expect(differ).toEqual([]);
});

test.each(areas)("%s keeps to a person's words", (area) => {
  // "token" and "JSON" are allowed where people paste or set a budget; the key says where.
  const english = /\b(servers?|mcp(?!\.json)|sampling|elicitation|roots?|schema|timeout|time-out|invalid|failed to|please wait|sorry|oops|secure|trusted|OK)\b/i;
  const chinese = /您|服务器|采样|令牌|超时|无效|请稍候|抱歉|安全的/;
  const found: string[] = [];
  for (const [language, pattern] of [["en", english], ["zh-CN", chinese]] as const) {
    for (const [key, values] of catalog(language, area)) {
      // Said on a terminal alone, to who writes JSON there.
      if (key.startsWith("errors.request.arguments.")) continue;
      for (const value of values) {
        const words = value.replace(/\{\w+\}/g, "");
        const hit = pattern.exec(words);
        if (hit) found.push(`${language} ${key}: "${hit[0]}" in "${value}"`);
        if (/!|！/.test(words)) found.push(`${language} ${key}: exclamation mark`);
      }
    }
  }
  expect(found).toEqual([]);
});

test.each(areas)("%s is written as its language is", (area) => {
  const found: string[] = [];
  for (const [key, values] of catalog("zh-CN", area)) {
    for (const value of values) {
      const words = value.replace(/\{\w+\}/g, "x");
      if (/[\u4e00-\u9fff][,;:?!]|[\u4e00-\u9fff]\.(?!\w)/.test(words)) found.push(`${key}: half-width mark in "${value}"`);
      if (/[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]/.test(value.replace(/\{\w+\}/g, ""))) found.push(`${key}: no space beside Latin in "${value}"`);
    }
  }
  for (const [key, values] of catalog("en", area)) {
    for (const value of values) if (/\w'\w|"/.test(value)) found.push(`${key}: straight quote in "${value}"`);
  }
  expect(found).toEqual([]);
});
