import "@testing-library/jest-dom/vitest";
import { render } from "@testing-library/svelte";
import axe from "axe-core";
import type { Component } from "svelte";
import { expect, vi } from "vitest";
import type { Language, Page } from "@/contract/index.ts";
import type { ScriptedHost } from "@/host/scripted.ts";
import { App } from "@/state/app.svelte.ts";
import OnePage from "./OnePage.svelte";

// The accessibility check walks the whole page with every rule: on a busy machine that takes its time.
vi.setConfig({ testTimeout: 60_000 });

/** Mounts one page on a scripted engine that has sent its snapshot. */
export async function openPage(page: Component, host: ScriptedHost, at: { language?: Language; page?: Page } = {}) {
  host.snapshot = { ...host.snapshot, settings: { ...host.snapshot.settings, effectiveLanguage: at.language ?? "en" } };
  const app = new App(host);
  if (at.page) app.page = at.page;
  await app.start();
  const view = render(OnePage, { props: { app, page } });
  await settle();
  return { app, ...view };
}

/** Lets every command that was given be answered and drawn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await Promise.resolve();
  await new Promise((resolve) => setTimeout(resolve));
}

/** axe finds nothing; what needs a layout (contrast) is checked on the tokens and in the browser instead. */
export async function expectAccessible(container: Element): Promise<void> {
  const found = await axe.run(container, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
  expect(found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`)).toEqual([]);
}
