import { beforeEach, expect, test, vi } from "vitest";
import { ScriptedHost } from "@/host/scripted.ts";
import { item, snapshot } from "../../tests/fixtures.ts";
import { App } from "./app.svelte.ts";

const start = "w".repeat(1_000);
const answer = item("c1", 2, { kind: "assistant", text: start, model: "x" }, "streaming");
let host: ScriptedHost;
let app: App;

const text = () => {
  const body = app.view.chats.c1?.items[0]?.body;
  return body?.kind === "assistant" ? body.text.slice(start.length) : null;
};
const say = (at: number, words: string) => host.emit({ type: "textDelta", conversationId: "c1", itemId: answer.id, at: start.length + at, text: words });

beforeEach(async () => {
  vi.useFakeTimers();
  host = new ScriptedHost(snapshot());
  app = new App(host);
  await app.start();
  host.emit({ type: "itemStarted", item: answer });
});

test("more of a long answer is shown every 150 ms, with all that came until then", () => {
  say(0, "one ");
  vi.advanceTimersByTime(149);
  say(4, "two ");
  expect(text()).toBe("");
  vi.advanceTimersByTime(1);
  expect(text()).toBe("one two ");
  say(8, "three");
  vi.advanceTimersByTime(149);
  expect(text()).toBe("one two ");
  vi.advanceTimersByTime(1);
  expect(text()).toBe("one two three");
});

test("what comes behind held words shows at once, and they with it, once", () => {
  say(0, "one ");
  host.emit({ type: "auditChanged" });
  expect(text()).toBe("one ");
  const before = app.view.chats;
  vi.advanceTimersByTime(1_000);
  expect(app.view.chats).toBe(before);
});

test("a hole in held words is found at once", () => {
  host.answers.conversation_open = vi.fn(() => new Promise<never>(() => {}));
  say(0, "one ");
  say(9, "late");
  expect(host.callsOf("conversation_open")).toEqual([{ id: "c1", before: null }]);
});

test("a short answer shows each of its words as it comes", () => {
  host.emit({ type: "itemStarted", item: { ...answer, body: { kind: "assistant", text: "", model: "x" } } });
  host.emit({ type: "textDelta", conversationId: "c1", itemId: answer.id, at: 0, text: "Yes" });
  expect(app.view.chats.c1?.items[0]?.body).toMatchObject({ text: "Yes" });
});

test("what the feed leaves as it was stays the same for who shows it", () => {
  const { conversations, servers, models } = app.view;
  say(0, "one ");
  vi.advanceTimersByTime(150);
  expect(text()).toBe("one ");
  expect(app.view.conversations).toBe(conversations);
  expect(app.view.servers).toBe(servers);
  expect(app.view.models).toBe(models);
});
