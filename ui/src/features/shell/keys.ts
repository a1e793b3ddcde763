import type { Page } from "@/contract/index.ts";

export type KeyAction =
  | { type: "newChat" | "search" | "composer" | "ask" | "stop" }
  | { type: "page"; page: Page }
  | { type: "zoom"; step: -1 | 0 | 1 }
  | { type: "area"; back: boolean };

const byDigit: Record<string, Page> = { "1": "chat", "2": "connections", "3": "permissions", "4": "activity", "5": "models" };

/** What a key pressed anywhere in the window means, or null. Cmd counts as Ctrl. */
export function keyAction(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): KeyAction | null {
  if (event.key === "F6") return { type: "area", back: event.shiftKey };
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return null;
  const page = byDigit[event.key];
  if (page) return { type: "page", page };
  switch (event.key) {
    // Shift is not looked at: on some keyboards + and = need it.
    case "+":
    case "=":
      return { type: "zoom", step: 1 };
    case "-":
    case "_":
      return { type: "zoom", step: -1 };
    case "0":
      return { type: "zoom", step: 0 };
    case ",":
      return { type: "page", page: "settings" };
    case ".":
      return { type: "stop" };
  }
  if (event.shiftKey) return null;
  switch (event.key.toLowerCase()) {
    case "n": return { type: "newChat" };
    case "k": return { type: "search" };
    case "l": return { type: "composer" };
    case "j": return { type: "ask" };
    default: return null;
  }
}

const focusable = 'button:not(:disabled), input:not(:disabled), textarea:not(:disabled), select:not(:disabled), a[href], [tabindex]:not([tabindex="-1"])';

/** Moves the focus to the next part of the window marked `data-area`: the sidebar, the page, the dock. */
export function nextArea(root: HTMLElement, back: boolean): void {
  const areas = [...root.querySelectorAll<HTMLElement>("[data-area]")].filter((area) => reachable(area).length > 0);
  const at = areas.findLastIndex((area) => area.contains(document.activeElement));
  const next = areas[(at + (back ? -1 : 1) + areas.length) % areas.length];
  if (next) reachable(next)[0]?.focus();
}

/** What can take the focus in an area, without that of an area inside it. */
function reachable(area: HTMLElement): HTMLElement[] {
  return [...area.querySelectorAll<HTMLElement>(focusable)].filter((one) => one.closest("[data-area]") === area);
}
