import { mount } from "svelte";
import "@/kit/tokens.css";
import "@/kit/base.css";
import "@/kit/start.css";
import App from "./App.svelte";
import { chooseHost } from "@/host/index.ts";
import { followTheme } from "@/state/theme.ts";

// The window knows the chosen theme before the engine can say it.
if (document.documentElement.dataset.theme === undefined) followTheme("system");
const target = document.getElementById("root");
if (target) {
  const host = await chooseHost();
  mount(App, { target, props: { host } });
}
