import type { App } from "@/state/app.svelte.ts";
import type { Chat } from "@/state/reduce.ts";

/** Work in a chat that is not in view; `share` (0…1) where its end is known. */
export interface Job {
  id: string;
  title: string;
  share: number | null;
}

/** The chats in which an answer is being made while another chat or page is in front. */
export function runningElsewhere(app: App): Job[] {
  return app.view.conversations.flatMap(({ id, title }) => {
    const chat = app.view.chats[id];
    const visible = app.page === "chat" && id === app.conversation;
    return chat?.turn?.status === "running" && !visible ? [{ id, title, share: share(chat) }] : [];
  });
}

function share(chat: Chat): number | null {
  for (const { body } of chat.items.toReversed()) {
    if (body.kind !== "toolCall" || body.status !== "running" || !body.progress?.total) continue;
    return Math.min(1, body.progress.value / body.progress.total);
  }
  return null;
}
