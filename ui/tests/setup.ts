import { cleanup, configure } from "@testing-library/svelte";
import { afterEach, beforeEach, vi } from "vitest";
import { setLanguage } from "@/i18n.svelte.ts";
import { loadAll } from "@/kit/later.svelte.ts";
import { dismissToast } from "@/kit/toasts.svelte.ts";

configure({ asyncUtilTimeout: 10_000, getElementError: (message) => new Error(message ?? "") });

// What is fetched late in the app is there at once in a test.
beforeEach(loadAll, 60_000);

afterEach(() => {
  cleanup();
  dismissToast();
  setLanguage("en");
  vi.useRealTimers();
});

// jsdom has no layout: what asks for it gets a quiet answer.
Element.prototype.scrollIntoView ??= () => {};
Element.prototype.scrollTo ??= () => {};
Element.prototype.animate ??= () => ({ finished: Promise.resolve(), cancel() {}, onfinish: null }) as unknown as Animation;
HTMLCanvasElement.prototype.getContext = () => null;
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
