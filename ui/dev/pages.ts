import { mount } from "svelte";
import "@/kit/tokens.css";
import "@/kit/base.css";
import Pages from "./Pages.svelte";
import type { Snapshot } from "@/contract/index.ts";
import { followTheme } from "@/state/theme.ts";
import { appError, model, server } from "../tests/fixtures.ts";
import { pagesHost, servers } from "../tests/pages.ts";

// dev/pages.html?page=connections&lang=zh-CN&theme=dark&state=empty shows any page without an engine.
const wanted = new URLSearchParams(location.search);
const language = wanted.get("lang") === "zh-CN" ? "zh-CN" : "en";
const state = wanted.get("state") ?? "full";
const page = wanted.get("page") ?? "connections";

const over: Partial<Snapshot> = {
  settings: { language, effectiveLanguage: language, theme: wanted.get("theme") === "dark" ? "dark" : "light", welcomed: page !== "welcome" },
  app: { version: "0.1.0", picksFolders: state !== "headless" },
};
if (page === "welcome") over.servers = [server({ roots: state === "empty" ? [] : [{ path: "/home/mira/Documents/House", name: "House", missing: false }] })];
if (state === "empty" && page === "connections") over.servers = [server({ roots: [] })];
if (state === "empty" && page === "models") over.models = { models: [], active: null };
if (state === "loading") over.models = { models: [model({ onDevice: { state: "loading" } })], active: "qwen" };
if (state === "failed") {
  over.models = { models: [model({ onDevice: { state: "failed", error: appError({ code: "model.memory", params: { model: "Qwen 1.5B", needed: 3, free: 1.2 }, actions: [{ type: "retry" }] }) } })], active: "qwen" };
}
if (state === "long") {
  over.servers = servers.map((one) => (one.id === "notes" ? { ...one, title: "ملاحظات ".repeat(14), roots: [{ path: `/home/${"very long/".repeat(20)}`, name: "A folder with a name that is longer than any window could ever show on one line of its own", missing: false }] } : one));
}
const host = pagesHost(over);
if (state === "empty") {
  host.answers.policy_list = () => [];
  host.answers.audit_list = () => [];
}
if (state === "error") {
  const broken = appError({ code: "internal", params: {}, actions: [{ type: "retry" }] });
  for (const name of ["policy_list", "audit_list", "server_detail", "server_log", "model_test"] as const) {
    host.answers[name] = () => {
      throw broken;
    };
  }
}
if (state === "refused") {
  host.answers.model_test = () => ({ ok: false, error: appError({ code: "model.key_refused", params: { model: "Mistral" }, actions: [] }), firstTokenMs: null });
}
if (state === "keychain") {
  host.answers.model_save = () => {
    throw appError({ code: "keychain.locked", params: {}, actions: [{ type: "retry" }] });
  };
}
host.answers.settings_change = ({ change }) => {
  host.snapshot.settings = { ...host.snapshot.settings, ...change };
  if (change.language && change.language !== "system") host.snapshot.settings.effectiveLanguage = change.language;
  host.emit({ type: "settingsChanged", settings: host.snapshot.settings });
  return {};
};

followTheme("system");
const target = document.getElementById("root");
if (target) mount(Pages, { target, props: { host, page } });
