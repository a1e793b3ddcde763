import { describe, expect, it } from "vitest";

const own = ["errors", "welcome", "connections", "models", "permissions", "activity", "settings"];

type Catalog = Record<string, unknown>;
const catalogs = import.meta.glob<Catalog>("../messages/*/*.json", { eager: true, import: "default" });
const read = (language: string, name: string): Catalog => catalogs[`../messages/${language}/${name}.json`] ?? {};

/** The texts of one message, whatever form it has, and the names it needs. */
function texts(message: unknown): string[] {
  if (typeof message === "string") return [message];
  return (message as { match: Record<string, string> }[]).flatMap((one) => Object.values(one.match));
}
const names = (message: unknown) => [...new Set(texts(message).flatMap((text) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1])))].sort();

describe.each(own)("the catalog %s", (name) => {
  const en = read("en", name);
  const zh = read("zh-CN", name);
  const keys = Object.keys(en).filter((key) => key !== "$schema");

  it("says everything in both languages, with the same values", () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    for (const key of keys) expect(names(zh[key]), key).toEqual(names(en[key]));
  });

  it("speaks a person's words", () => {
    const forbidden = /\b(servers?|MCP|sampling|elicitation|roots?|tokens?|schema|JSON|time-?outs?|invalid|failed to|please|sorry|oops|OK)\b|!/i;
    // Said on a terminal alone, to who writes JSON there.
    const spoken = keys.filter((key) => !key.startsWith("errors.request.arguments."));
    for (const key of spoken) {
      for (const text of texts(en[key])) {
        // The names of the two files a person may edit are names.
        expect(text.replaceAll(/(mcp|settings)\.json/g, "").replaceAll(/\{\w+\}/g, ""), key).not.toMatch(forbidden);
      }
    }
    for (const key of spoken) {
      for (const text of texts(zh[key])) {
        expect(text.replaceAll(/(mcp|settings)\.json/g, ""), key).not.toMatch(/您|服务器|令牌|无效|超时|MCP|JSON|！|请稍/u);
      }
    }
  });

  it("sets Chinese as Chinese is set", () => {
    for (const key of keys) {
      for (const text of texts(zh[key])) {
        const plain = text.replaceAll(/\{\w+\}/g, "");
        expect(plain, key).not.toMatch(/\p{Script=Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Script=Han}/u);
        expect(plain, key).not.toMatch(/\p{Script=Han}[,;:?!]|"/u);
      }
    }
  });

  it("writes curly quotes and one ellipsis", () => {
    for (const key of keys) {
      for (const text of texts(en[key])) expect(text, key).not.toMatch(/["']|\.\.\./);
    }
  });
});

describe("the components of the pages", () => {
  const sources = import.meta.glob<string>(["../src/errors/*.svelte", "../src/features/{welcome,connections,models,permissions,activity,settings}/*.svelte"], {
    eager: true,
    query: "?raw",
    import: "default",
  });

  it.each(Object.entries(sources))("%s holds no text, no colour and no other weight of its own", (_file, source) => {
    const style = source.match(/<style>[\s\S]*<\/style>/u)?.[0] ?? "";
    expect(style).not.toMatch(/#[0-9a-f]{3,8}\b|rgb\(|hsl\(|font-weight: *(?!400|600)|italic|gradient|blur/iu);
    const markup = source.replaceAll(/<!--[\s\S]*?-->|<script[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>/gu, "").replaceAll(/\{[^{}]*(\{[^{}]*(\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}/gu, "").replaceAll(/<[^>]*>/gu, "");
    expect(markup.match(/\p{L}{2,}/gu) ?? []).toEqual([]);
  });
});
