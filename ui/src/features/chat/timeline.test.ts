import { expect, test } from "vitest";
import { item, toolCall } from "../../../tests/fixtures.ts";
import { timeline } from "./timeline.ts";

test("an entry stays the same while nothing in it changes, and is another one when something does", () => {
  const user = item("c1", 1, { kind: "user", text: "Hello" });
  const steps = [item("c1", 2, toolCall()), item("c1", 3, toolCall())];
  const first = item("c1", 4, { kind: "assistant", text: "One", model: "x" }, "streaming");
  const before = timeline([user, ...steps, first]);
  const grown = { ...first, body: { ...first.body, text: "One two" } } as typeof first;
  const after = timeline([user, ...steps, grown]);
  expect(after[0]).toBe(before[0]);
  expect(after[1]).toBe(before[1]);
  expect(after[2]).not.toBe(before[2]);
  expect(after[2]).toMatchObject({ text: "One two", last: true });

  const more = timeline([user, ...steps, { ...steps[1]!, id: "c1-9", ordinal: 9 }, grown]);
  expect(more[1]).not.toBe(before[1]);
  expect(more[1]).toMatchObject({ calls: { length: 3 } });
  // It is no longer the last of its answer, so its actions go.
  const followed = timeline([user, ...steps, grown, { ...steps[0]!, id: "c1-10", ordinal: 10 }]);
  expect(followed[2]).not.toBe(after[2]);
  expect(followed[2]).toMatchObject({ last: false });
});
