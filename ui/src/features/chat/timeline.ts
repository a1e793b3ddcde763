import type { AppError, Item, ToolCall } from "@/contract/index.ts";
import { FILES } from "@/words/tools.ts";

export type CallItem = Item & { body: ToolCall & { kind: "toolCall" } };

/** A piece of the timeline: one message, one notice, or neighbouring steps that form one list. */
export type Entry =
  | { kind: "user"; key: string; item: Item; text: string }
  | { kind: "assistant"; key: string; item: Item; text: string; last: boolean; unread: Unread | null }
  | { kind: "steps"; key: string; calls: CallItem[] }
  | { kind: "notice"; key: string; error: AppError };

/** An answer for which the AI wanted to look something up and was not allowed to: in our files, or at a connection. */
export type Unread = { in: "files" } | { in: "connection"; call: ToolCall };

/** What was made of an item, and of the first of neighbouring steps. */
const made = new WeakMap<Item, Entry>();

/** The same entry as the last time where nothing in it changed, so that what draws it is not looked at again. */
function kept(item: Item, fresh: Entry): Entry {
  const before = made.get(item);
  if (before && same(before, fresh)) return before;
  made.set(item, fresh);
  return fresh;
}

function same(a: Entry, b: Entry): boolean {
  if (a.kind === "assistant" && b.kind === "assistant") return a.last === b.last && a.unread?.in === b.unread?.in;
  if (a.kind === "steps" && b.kind === "steps") return a.calls.length === b.calls.length && a.calls.every((call, at) => call === b.calls[at]);
  return a.kind === b.kind;
}

/** Puts items in the order and the groups in which they are drawn. An assistant item without text draws nothing once it is finished. */
export function timeline(items: readonly Item[]): Entry[] {
  const entries: { entry: Entry; item: Item }[] = [];
  const add = (item: Item, entry: Entry) => entries.push({ entry, item });
  for (const item of items) {
    const { body } = item;
    switch (body.kind) {
      case "user":
        add(item, { kind: "user", key: item.id, item, text: body.text });
        break;
      case "assistant":
        if (body.text.trim() !== "" || item.status === "streaming") {
          add(item, { kind: "assistant", key: item.id, item, text: body.text, last: false, unread: null });
        }
        break;
      case "toolCall": {
        const call = item as CallItem;
        const last = entries.at(-1)?.entry;
        if (last?.kind === "steps") last.calls.push(call);
        else add(item, { kind: "steps", key: item.id, calls: [call] });
        break;
      }
      case "notice":
        add(item, { kind: "notice", key: item.id, error: body.error });
        break;
    }
  }
  let calls: ToolCall[] = [];
  return entries.map(({ entry, item }, at) => {
    if (entry.kind === "user") calls = [];
    else if (entry.kind === "steps") calls = [...calls, ...entry.calls.map((call) => call.body)];
    const next = entries[at + 1]?.entry;
    // The actions stand under the last words of each answer.
    if (entry.kind === "assistant") {
      entry.last = next === undefined || next.kind === "user";
      if (entry.last && item.status !== "streaming") entry.unread = unread(calls);
    }
    return kept(item, entry);
  });
}

const READS: readonly string[] = ["list_folder", "read_file", "find_files", "search_text"];

/** What an answer did not get to see, where every call for it was declined. */
function unread(calls: readonly ToolCall[]): Unread | null {
  const first = calls[0];
  if (!first || calls.some((call) => call.status !== "declined")) return null;
  return calls.every((call) => call.builtIn && call.server === FILES && READS.includes(call.tool)) ? { in: "files" } : { in: "connection", call: first };
}

/** Steps that are over and went well fold together when there are more than four of them; all others stay in sight. */
export function foldable(calls: readonly CallItem[]): { folded: CallItem[]; shown: CallItem[] } {
  const over = calls.filter((call) => call.body.status === "done");
  if (over.length <= 4) return { folded: [], shown: [...calls] };
  return { folded: over, shown: calls.filter((call) => call.body.status !== "done") };
}
