import type { AppError, Item, ToolCall } from "@/contract/index.ts";

export type CallItem = Item & { body: ToolCall & { kind: "toolCall" } };

/** A piece of the timeline: one message, one notice, or neighbouring steps that form one list. */
export type Entry =
  | { kind: "user"; key: string; item: Item; text: string }
  | { kind: "assistant"; key: string; item: Item; text: string; last: boolean }
  | { kind: "steps"; key: string; calls: CallItem[] }
  | { kind: "notice"; key: string; error: AppError };

/** Puts items in the order and the groups in which they are drawn. An assistant item without text draws nothing once it is finished. */
export function timeline(items: readonly Item[]): Entry[] {
  const entries: Entry[] = [];
  for (const item of items) {
    const { body } = item;
    switch (body.kind) {
      case "user":
        entries.push({ kind: "user", key: item.id, item, text: body.text });
        break;
      case "assistant":
        if (body.text.trim() !== "" || item.status === "streaming") {
          entries.push({ kind: "assistant", key: item.id, item, text: body.text, last: false });
        }
        break;
      case "toolCall": {
        const call = item as CallItem;
        const last = entries.at(-1);
        if (last?.kind === "steps") last.calls.push(call);
        else entries.push({ kind: "steps", key: item.id, calls: [call] });
        break;
      }
      case "notice":
        entries.push({ kind: "notice", key: item.id, error: body.error });
        break;
    }
  }
  // The actions stand under the last words of each answer.
  entries.forEach((entry, at) => {
    const next = entries[at + 1];
    if (entry.kind === "assistant") entry.last = next === undefined || next.kind === "user";
  });
  return entries;
}

/** Steps that are over and went well fold together when there are more than four of them; all others stay in sight. */
export function foldable(calls: readonly CallItem[]): { folded: CallItem[]; shown: CallItem[] } {
  const over = calls.filter((call) => call.body.status === "done");
  if (over.length <= 4) return { folded: [], shown: [...calls] };
  return { folded: over, shown: calls.filter((call) => call.body.status !== "done") };
}
