import { mount } from "svelte";
import "@/kit/tokens.css";
import "@/kit/base.css";
import "@/kit/start.css";
import App from "./App.svelte";
import { chooseHost, inWindow } from "@/host/index.ts";
import { loadAll } from "@/kit/later.svelte.ts";
import { followTheme } from "@/state/theme.ts";

// The window knows the chosen theme before the engine can say it.
if (document.documentElement.dataset.theme === undefined) followTheme("system");
const target = document.getElementById("root");
if (target) {
  const host = await chooseHost();
  mount(App, { target, props: { host } });
  // Where the engine serves the page, what tells that it is gone must be here before it goes.
  if (!inWindow()) void loadAll();
}
