import type { Ask } from "@/contract/index.ts";

/** Whether one button may allow them all: each only looks or reads, all are tools of one chat's turn, and each can be allowed once. */
export function allowableTogether(asks: readonly Ask[]): boolean {
  const first = asks[0];
  if (!first || asks.length < 2 || first.conversationId === null) return false;
  return asks.every(
    (ask) =>
      ask.subject.kind === "tool" &&
      (ask.level === "L0" || ask.level === "L1") &&
      ask.conversationId === first.conversationId &&
      ask.options.includes("allowOnce"),
  );
}
