import { expect, test } from "vitest";
import type { Event, FeedMessage } from "@/contract/index.ts";
import { NOW, appError, ask, conversation, item, server, snapshot, toolCall, turn } from "../../tests/fixtures.ts";
import { addPage, emptyView, reduce, type Need, type View } from "./reduce.ts";

function begin(over: Parameters<typeof snapshot>[0] = {}): View {
  return reduce(emptyView(), { type: "snapshot", ...snapshot(over) }).view;
}

function after(view: View, ...events: Event[]): { view: View; needs: Need[] } {
  return reduce(view, { type: "batch", seq: view.seq + 1, events });
}

const words = (text: string) => item("c1", 2, { kind: "assistant", text, model: "x" }, "streaming");
const delta = (at: number, text: string): Event => ({ type: "textDelta", conversationId: "c1", itemId: "c1-2", at, text });
const textOf = (view: View) => view.chats["c1"]?.items.map((one) => ("text" in one.body ? one.body.text : "")).at(-1);

test("a gap in the feed asks for a new subscription and changes nothing", () => {
  const view = begin();
  const gap: FeedMessage = { type: "batch", seq: view.seq + 2, events: [{ type: "conversationRemoved", id: "c1" }] };
  expect(reduce(view, gap)).toEqual({ view, needs: [{ type: "resubscribe" }] });
});

test("a batch that is already known is passed over", () => {
  const view = begin({ seq: 9 });
  expect(reduce(view, { type: "batch", seq: 9, events: [{ type: "conversationRemoved", id: "c1" }] })).toEqual({ view, needs: [] });
});

test("text grows by its offset; a repeat is harmless, an overlap adds only what is new", () => {
  let view = after(begin(), { type: "itemStarted", item: words("") }, delta(0, "Hello ")).view;
  view = after(view, delta(0, "Hello ")).view;
  view = after(view, delta(3, "lo you")).view;
  expect(textOf(view)).toBe("Hello you");
});

test("offsets count UTF-16 units", () => {
  const view = after(begin(), { type: "itemStarted", item: words("") }, delta(0, "好👍"), delta(3, "!")).view;
  expect(textOf(view)).toBe("好👍!");
});

test("a hole in the text fetches the chat again and shows nothing false", () => {
  const result = after(begin(), { type: "itemStarted", item: words("He") }, delta(5, "there"));
  expect(result.needs).toEqual([{ type: "refetch", conversation: "c1" }]);
  expect(textOf(result.view)).toBe("He");
});

test("a completed item is the truth", () => {
  const view = after(begin(), { type: "itemStarted", item: words("Hal") }, { type: "itemCompleted", item: { ...words("Whole."), status: "complete", completedAt: NOW } }).view;
  expect(textOf(view)).toBe("Whole.");
  expect(view.chats["c1"]?.items).toHaveLength(1);
});

test("progress never falls and never passes its end", () => {
  const call = item("c1", 3, toolCall({ status: "running" }));
  const progress = (value: number, total: number | null): Event => ({ type: "progress", conversationId: "c1", itemId: call.id, progress: { value, total, message: null } });
  const shown = (view: View) => {
    const body = view.chats["c1"]?.items[0]?.body;
    return body?.kind === "toolCall" ? body.progress : null;
  };
  let view = after(begin(), { type: "itemStarted", item: call }, progress(50, 100), progress(20, 100)).view;
  expect(shown(view)?.value).toBe(50);
  view = after(view, progress(900, 100)).view;
  expect(shown(view)?.value).toBe(100);
  view = after(view, progress(Number.NaN, 0)).view;
  expect(shown(view)).toEqual({ value: 0, total: null, message: null });
});

test("questions keep their order and leave once", () => {
  let view = after(begin(), { type: "askOpened", ask: ask({ id: "a" }) }, { type: "askOpened", ask: ask({ id: "b" }) }).view;
  expect(view.asks.map((one) => one.id)).toEqual(["a", "b"]);
  view = after(view, { type: "askClosed", id: "a", outcome: "withdrawn" }, { type: "askClosed", id: "a", outcome: "allowed" }).view;
  expect(view.asks.map((one) => one.id)).toEqual(["b"]);
  expect(view.lastClosed?.outcome).toBe("withdrawn");
});

test("chats keep newest first, and one that is gone takes its items with it", () => {
  let view = after(begin(), { type: "conversationChanged", conversation: conversation("c2", "New", NOW + 1) }).view;
  expect(view.conversations.map((one) => one.id)).toEqual(["c2", "c1"]);
  view = after(view, { type: "itemStarted", item: words("x") }, { type: "conversationRemoved", id: "c1" }).view;
  expect(view.conversations.map((one) => one.id)).toEqual(["c2"]);
  expect(view.chats["c1"]).toBeUndefined();
});

test("a server that is new is added, a known one changes in its place", () => {
  const view = after(begin({ servers: [server(), server({ id: "b" })] }), { type: "serverChanged", server: server({ status: "failed" }) }, { type: "serverChanged", server: server({ id: "c" }) }).view;
  expect(view.servers.map((one) => [one.id, one.status])).toEqual([["files", "failed"], ["b", "ready"], ["c", "ready"]]);
});

test("a page that travelled while text arrived does not take it back", () => {
  const live = after(begin(), { type: "itemStarted", item: words("") }, delta(0, "Longer text")).view;
  const page = { conversation: conversation("c1", "T"), items: [item("c1", 1, { kind: "user", text: "Hi" }), words("Longer")], earlier: null, turn: turn("c1") };
  const view = addPage(live, page, null);
  expect(view.chats["c1"]?.items.map((one) => ("text" in one.body ? one.body.text : ""))).toEqual(["Hi", "Longer text"]);
  expect(view.chats["c1"]?.loaded).toBe(true);
});

test("earlier messages go above the ones that are there", () => {
  const first = addPage(begin(), { conversation: conversation("c1", "T"), items: [item("c1", 10, { kind: "user", text: "later" })], earlier: 10, turn: null }, null);
  const view = addPage(first, { conversation: conversation("c1", "T"), items: [item("c1", 4, { kind: "user", text: "before" })], earlier: null, turn: null }, 10);
  expect(view.chats["c1"]?.items.map((one) => one.ordinal)).toEqual([4, 10]);
  expect(view.chats["c1"]?.earlier).toBeNull();
});

test("a new snapshot fetches the chats that were open again", () => {
  const open = addPage(begin(), { conversation: conversation("c1", "T"), items: [], earlier: null, turn: turn("c1") }, null);
  const result = reduce(open, { type: "snapshot", ...snapshot({ seq: 40 }) });
  expect(result.needs).toEqual([{ type: "refetch", conversation: "c1" }]);
  expect(result.view.chats["c1"]?.turn).toBeNull();
});

test("a new answer takes the place of the old one", () => {
  const old = (ordinal: number, body: Parameters<typeof item>[2]) => item("c1", ordinal, body);
  const items = [old(1, { kind: "user", text: "Q" }), old(2, { kind: "assistant", text: "Half", model: "x" }), old(3, { kind: "notice", error: appError() })];
  const view = addPage(begin(), { conversation: conversation("c1", "T"), items, earlier: null, turn: null }, null);
  const left = (ordinal: number) => after(view, { type: "itemsRemoved", conversationId: "c1", after: ordinal }).view.chats["c1"]?.items.map((one) => one.ordinal);
  expect(left(1)).toEqual([1]);
  expect(left(2)).toEqual([1, 2]);
});
