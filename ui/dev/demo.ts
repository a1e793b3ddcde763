import { mount } from "svelte";
import "@/kit/tokens.css";
import "@/kit/base.css";
import App from "@/App.svelte";
import { followTheme } from "@/state/theme.ts";
import { scene } from "./scenes.ts";

// dev/index.html?demo=asking&lang=zh-CN&theme=dark&page=models shows any state without an engine.
const wanted = new URLSearchParams(location.search);
const host = scene(wanted.get("demo") ?? "empty", {
  language: wanted.get("lang") === "zh-CN" ? "zh-CN" : "en",
  theme: wanted.get("theme") === "dark" ? "dark" : "light",
});
followTheme("system");
const target = document.getElementById("root");
if (target) mount(App, { target, props: { host } });
const page = wanted.get("page");
if (page) setTimeout(() => document.querySelector<HTMLElement>(`[data-testid="nav-${page}"]`)?.click());
const open = wanted.get("open");
// In the rail the list is not there; Ctrl+J goes to the chat whose question waits.
if (open) {
  setTimeout(() => {
    const row = document.querySelector<HTMLElement>(`[data-conversation="${open}"]`);
    if (row) row.click();
    else window.dispatchEvent(new KeyboardEvent("keydown", { key: "j", ctrlKey: true }));
  });
}
