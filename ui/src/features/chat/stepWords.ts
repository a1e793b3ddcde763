import type { Progress, ToolCall } from "@/contract/index.ts";
import { count, m } from "@/i18n.svelte.ts";
import { baseName, parentOf, textArgument } from "@/state/paths.ts";

/** What a step does. Our own words for the connections we ship; for all others the title is theirs and `ours` is false. */
export function stepWords(call: ToolCall): { text: string; ours: boolean } {
  const own = call.builtIn && call.server === "files" ? fileWords(call) : null;
  if (own !== null) return { text: own, ours: true };
  return { text: call.title || call.tool || m["chat.step.unknown"](), ours: false };
}

function fileWords(call: ToolCall): string | null {
  const text = (name: string) => textArgument(call.arguments, name);
  const name = baseName(text("path"));
  const folder = baseName(text("folder"));
  switch (call.tool) {
    case "list_folder":
      return name === "" || name === "." ? m["chat.step.list_all"]() : m["chat.step.list"]({ folder: name });
    case "read_file":
      return name === "" ? null : m["chat.step.read"]({ name });
    case "find_files":
      return folder === "" ? m["chat.step.find"]({ text: text("name") }) : m["chat.step.find_in"]({ text: text("name"), folder });
    case "search_text":
      return folder === "" ? m["chat.step.search"]({ text: text("text") }) : m["chat.step.search_in"]({ text: text("text"), folder });
    case "write_file":
      return name === "" ? null : m["chat.step.write"]({ name });
    case "move_file": {
      const [from, to] = [text("from"), text("to")];
      if (from === "" || to === "") return null;
      const parts = { from: baseName(from), to: baseName(to) };
      if (parentOf(from) === parentOf(to)) return m["chat.step.rename"](parts);
      return m["chat.step.move"]({ from: parts.from, to: baseName(parentOf(to)) || parts.to });
    }
    case "trash_file":
      return name === "" ? null : m["chat.step.trash"]({ name });
    default:
      return null;
  }
}

/** The line above a bar: the connection's own words where it sent some, else how far it is. */
export function progressWords(progress: Progress | null): string {
  if (progress?.message) return progress.message;
  if (progress?.total) return m["chat.step.part"]({ value: count(progress.value), total: count(progress.total) });
  return m["chat.step.working"]();
}

/** How long a finished step took. */
export function tookWords(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds >= 60) return m["chat.step.took_minutes"]({ minutes: Math.floor(seconds / 60), seconds: Math.floor(seconds % 60) });
  return m["chat.step.took"]({ seconds: seconds < 10 ? seconds.toFixed(1) : String(Math.round(seconds)) });
}
