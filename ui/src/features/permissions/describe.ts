import type { Conversation, Policy } from "@/contract/index.ts";
import { m } from "@/i18n.svelte.ts";
import type { IconName } from "@/kit/icons.ts";
import { oneLine } from "@/words/oneLine.ts";
import { fileTool, toolName, type FileTool } from "@/words/tools.ts";

/** A standing decision in words. */
export type Description = {
  icon: IconName;
  what: string;
  where: string;
  answer: string;
};

const drawings: Record<FileTool, IconName> = {
  list_folder: "eye",
  read_file: "book-open-text",
  find_files: "eye",
  search_text: "book-open-text",
  write_file: "pencil-simple",
  move_file: "pencil-simple",
  trash_file: "trash",
};

/** Tells a decision; `title` is what its connection calls the tool, where that is known. */
export function describe(policy: Policy, conversations: readonly Conversation[], title?: string): Description {
  return { ...about(policy, title), where: where(policy, conversations), answer: answer(policy) };
}

function about(policy: Policy, title?: string): { icon: IconName; what: string } {
  switch (policy.kind) {
    case "tool": {
      if (policy.tool === null) return { icon: "wrench", what: m["permissions.kind.tool"]() };
      const ours = fileTool(policy.server, policy.tool);
      return { icon: ours === null ? "wrench" : drawings[ours], what: toolName(policy.server, policy.tool, title) };
    }
    case "sampling":
      return { icon: "chat-text", what: m["permissions.kind.sampling"]() };
    case "sampling-reply":
      return { icon: "chat-text", what: m["permissions.kind.samplingReply"]() };
    case "form":
      return { icon: "question", what: m["permissions.kind.form"]() };
    case "url":
      return { icon: "globe-simple", what: m["permissions.kind.url"]() };
    case "launch":
      return { icon: "terminal-window", what: m["permissions.kind.launch"]() };
    case "connect":
      return { icon: "globe-simple", what: m["permissions.kind.connect"]() };
    case "sign-in":
      return { icon: "key", what: m["permissions.kind.signIn"]() };
    case "folder":
      return { icon: "folder", what: m["permissions.kind.folder"]() };
  }
}

function where(policy: Policy, conversations: readonly Conversation[]): string {
  if (policy.conversationId !== null) {
    const chat = conversations.find((one) => one.id === policy.conversationId);
    if (!chat) return m["permissions.where.goneChat"]();
    const title = oneLine(chat.title, 60);
    return title === "" ? m["permissions.where.untitled"]() : m["permissions.where.chat"]({ chat: title });
  }
  if (policy.kind === "launch" || policy.kind === "connect") return "";
  return fileTool(policy.server, policy.tool) !== null && policy.effect === "allow"
    ? m["permissions.where.folders"]()
    : m["permissions.where.everywhere"]();
}

function answer(policy: Policy): string {
  if (policy.effect === "deny") return m["permissions.never"]();
  return policy.conversationId === null ? m["permissions.always"]() : m["permissions.inChat"]();
}
