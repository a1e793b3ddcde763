let composing = false;

if (typeof document !== "undefined") {
  document.addEventListener("compositionstart", () => (composing = true), true);
  document.addEventListener("compositionend", () => (composing = false), true);
}

/** An input method is building a word somewhere in the window, so the focus must stay where it is. */
export function isComposing(): boolean {
  return composing;
}
