import type { Theme } from "@/contract/index.ts";

const dark = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
let choice: Theme = "system";

function paint() {
  const theme = choice === "system" ? (dark?.matches ? "dark" : "light") : choice;
  document.documentElement.dataset.theme = theme;
}

dark?.addEventListener("change", paint);

/** Puts the theme on the document; `system` follows the system's from then on. */
export function followTheme(theme: Theme): void {
  choice = theme;
  paint();
}
