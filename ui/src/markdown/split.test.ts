import { expect, test } from "vitest";
import { split, type Split } from "./split.ts";
import { decodeEntities, webAddress } from "./text.ts";

const text = [
  "# Offers\n\n",
  "Brandt offers **6 kW** for `11,840`.\n\n",
  "- one\n- two\n\n  with more\n\n- three\n\n",
  "```python\ndef f():\n\n    return 1\n```\n\n",
  "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
  "> quoted\n\nThe end, [see](https://example.com).\n",
].join("");

function stream(whole: string, step: number): Split[] {
  const results: Split[] = [];
  let last: Split | null = null;
  for (let end = step; end < whole.length + step; end += step) {
    last = split(last, whole.slice(0, end), false);
    results.push(last);
  }
  results.push(split(last, whole, true));
  return results;
}

test.each([1, 3, 17, 1000])("a text that grew %i characters at a time ends as the one read at once", (step) => {
  const streamed = stream(text, step).at(-1);
  const whole = split(null, text, true);
  expect(streamed?.done.map((block) => [block.key, block.raw])).toEqual(whole.done.map((block) => [block.key, block.raw]));
  expect(whole.done.map((block) => block.token.type)).toEqual(["heading", "paragraph", "list", "code", "table", "blockquote", "paragraph"]);
});

test("a finished block is never made anew", () => {
  const results = stream(text, 5);
  for (let at = 1; at < results.length; at += 1) {
    const [before, after] = [results[at - 1]!, results[at]!];
    before.done.forEach((block, index) => expect(after.done[index]).toBe(block));
  }
});

test("only the open tail is read again", () => {
  const long = "A paragraph of some length.\n\n".repeat(200);
  const before = split(null, long, false);
  const after = split(before, `${long}More`, false);
  expect(before.doneLength).toBeGreaterThan(long.length - 60);
  expect(after.tail.map((block) => block.raw)).toEqual(["More"]);
});

test("half-written marks show closed", () => {
  const bold = split(null, "It costs **€11", false).tail[0];
  expect(bold?.token).toMatchObject({ type: "paragraph", tokens: [{ type: "text" }, { type: "strong", text: "€11" }] });
  const link = split(null, "See [the off", false).tail[0];
  expect(JSON.stringify(link?.token)).not.toContain("streamdown");
});

test("an open code block is code from its first line and says it is open", () => {
  const tail = split(null, "```js\nlet a = **b", false).tail;
  expect(tail).toHaveLength(1);
  expect(tail[0]).toMatchObject({ open: true, token: { type: "code", text: "let a = **b" } });
});

test("a text that is replaced by another starts anew", () => {
  const before = split(null, "One.\n\nTwo.\n\nThree", false);
  const after = split(before, "Else.\n\nMore", false);
  expect(after.done.map((block) => block.raw)).toEqual(["Else."]);
});

test("entities are the characters they stand for, unknown ones stay", () => {
  expect(decodeEntities("a &lt;b&gt; &amp;amp; &#8364; &#x4f60; &nosuch; &#xd800;")).toBe("a <b> &amp; € 你 &nosuch; \ufffd");
});

test("only web addresses open", () => {
  expect(webAddress("https://example.com/a?b=1&amp;c")).toEqual({ href: "https://example.com/a?b=1&c", host: "example.com" });
  for (const other of ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "/relative", "vbscript:x", ""]) expect(webAddress(other)).toBeNull();
});
