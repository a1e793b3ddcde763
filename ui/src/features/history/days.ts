import type { Conversation } from "@/contract/index.ts";
import { daysAgo } from "@/i18n.svelte.ts";

export type Span = "today" | "yesterday" | "week" | "month" | "older";

/** The chats under the heading of their day, newest first; a heading without chats is absent. */
export function byDay(conversations: Conversation[], now: number): { span: Span; conversations: Conversation[] }[] {
  const groups = new Map<Span, Conversation[]>();
  for (const one of conversations) {
    const span = spanOf(daysAgo(one.updatedAt, now));
    groups.set(span, [...(groups.get(span) ?? []), one]);
  }
  const order: Span[] = ["today", "yesterday", "week", "month", "older"];
  return order.flatMap((span) => {
    const own = groups.get(span);
    return own ? [{ span, conversations: own.toSorted((a, b) => b.updatedAt - a.updatedAt) }] : [];
  });
}

function spanOf(days: number): Span {
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  if (days <= 7) return "week";
  if (days <= 31) return "month";
  return "older";
}

/** Whether a title holds the words looked for, letter case and accents aside. */
export function matches(title: string, query: string): boolean {
  return plain(title).includes(plain(query));
}

function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase();
}
