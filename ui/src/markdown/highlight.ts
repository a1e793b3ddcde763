import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash, css, diff, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, grammar] of Object.entries(languages)) hljs.registerLanguage(name, grammar);

/** The few things that are told apart by colour. */
export type Scope = "comment" | "keyword" | "string" | "number" | "name" | "added" | "removed";

export interface Piece {
  text: string;
  scope: Scope | null;
}

interface Node {
  scope?: string;
  children: (Node | string)[];
}

/** Code in coloured pieces, or null for a language we do not know or a text too long to be worth it. */
export function highlight(code: string, language: string): Piece[] | null {
  if (code.length > 60_000 || !hljs.getLanguage(language)) return null;
  const result = hljs.highlight(code, { language, ignoreIllegals: true });
  // The tree of scopes, which the library keeps beside the markup it makes of it.
  const root = (result as unknown as { _emitter: { root: Node } })._emitter.root;
  const pieces: Piece[] = [];
  walk(root, null, pieces);
  return pieces;
}

function walk(node: Node, outer: Scope | null, pieces: Piece[]): void {
  const scope = scopeOf(node.scope) ?? outer;
  for (const child of node.children) {
    if (typeof child !== "string") {
      walk(child, scope, pieces);
      continue;
    }
    const last = pieces.at(-1);
    if (last && last.scope === scope) last.text += child;
    else pieces.push({ text: child, scope });
  }
}

function scopeOf(name: string | undefined): Scope | null {
  switch (name?.split(".")[0]) {
    case "comment": case "meta": case "quote": return "comment";
    case "keyword": case "tag": case "selector-tag": case "built_in": return "keyword";
    case "string": case "regexp": case "char": return "string";
    case "number": case "literal": case "symbol": return "number";
    case "title": case "attr": case "attribute": case "property": case "name": case "section": case "selector-class": return "name";
    case "addition": return "added";
    case "deletion": return "removed";
    default: return null;
  }
}
