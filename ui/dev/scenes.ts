import type { Settings } from "@/contract/index.ts";
import { ScriptedHost } from "@/host/scripted.ts";
import { snapshot } from "../tests/fixtures.ts";

/** A scripted engine that shows one state. */
export function scene(_name: string, look: { language: "en" | "zh-CN"; theme: Settings["theme"] }): ScriptedHost {
  return new ScriptedHost(snapshot({ settings: { language: look.language, effectiveLanguage: look.language, theme: look.theme, welcomed: true } }));
}
