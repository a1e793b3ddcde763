import type { Model, ModelDraft } from "@/contract/index.ts";

/** What the form holds while a person fills it. */
export type Draft = { id: string | null; preset: Preset; url: string; name: string; key: string };

/** Where a model runs, as the form offers it. All speak the same language; a preset only fills the address. */
export type Preset = "other" | "ollama" | "lm-studio" | "vllm";

export const presets: readonly Preset[] = ["other", "ollama", "lm-studio", "vllm"];

/** The address each program answers at when nobody changed it. */
export const presetUrl: Record<Preset, string> = {
  other: "",
  ollama: "http://127.0.0.1:11434/v1",
  "lm-studio": "http://127.0.0.1:1234/v1",
  vllm: "http://127.0.0.1:8000/v1",
};

export const emptyDraft = (): Draft => ({ id: null, preset: "other", url: "", name: "", key: "" });

/** The form for changing `model`. Its key never comes back, so the field starts empty. */
export function draftOf(model: Model): Draft {
  const url = model.baseUrl ?? "";
  return { id: model.id, preset: presetOf(url), url, name: model.name, key: "" };
}

/** The preset an address belongs to. */
export function presetOf(url: string): Preset {
  return presets.find((preset) => preset !== "other" && presetUrl[preset] === url.trim().replace(/\/+$/u, "")) ?? "other";
}

/** Which of the fields cannot be sent as they are. */
export type Problems = { url: boolean; name: boolean };

export function check(draft: Draft): Problems {
  return { url: parse(draft.url) === null, name: draft.name.trim() === "" };
}

/** True for an address outside this computer whose line is not encrypted. */
export function isOpenLine(url: string): boolean {
  const parsed = parse(url);
  return parsed !== null && parsed.protocol === "http:" && !isHere(parsed.hostname);
}

/** What `model_save` takes. The wire knows no empty key: absent keeps the one that is there. */
export function toSave(draft: Draft): ModelDraft {
  return {
    id: draft.id,
    provider: "openai-compatible",
    baseUrl: baseUrl(draft.url),
    name: draft.name.trim(),
    key: draft.key.trim() === "" ? null : draft.key.trim(),
  };
}

/** People paste the whole address of the call; what we keep is what precedes `/chat/completions`. */
function baseUrl(url: string): string {
  return url.trim().replace(/\/chat\/completions\/?$/u, "").replace(/\/+$/u, "");
}

function parse(url: string): URL | null {
  try {
    const parsed = new URL(url.trim());
    return parsed.protocol === "https:" || parsed.protocol === "http:" ? parsed : null;
  } catch {
    return null;
  }
}

function isHere(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\./u.test(host);
}
