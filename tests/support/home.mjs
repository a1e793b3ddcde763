// A fresh PARLEY_HOME beside a folder with a few files, and where the built programs are.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const results = join(root, "test-results");

/** The programs' paths, as `./run --build` printed them. */
export function programs() {
  const { PARLEY_APP: app, PARLEY_HEADLESS: headless } = process.env;
  if (!app || !headless) throw new Error("PARLEY_APP and PARLEY_HEADLESS are not set: run these tests through ./test");
  return { app, headless };
}

/** Makes one. With `model` (its address) the welcome is over and that model is in use. */
export function freshHome({ model, settings = {}, mcp, granted = true } = {}) {
  const base = mkdtempSync(join(tmpdir(), "parley-test-"));
  const home = join(base, "home");
  const folder = join(base, "My papers");
  mkdirSync(home);
  mkdirSync(folder);
  writeFileSync(join(folder, "notes.txt"), "The meeting is on Thursday at ten. Bring the blue folder.\n");
  writeFileSync(join(folder, "购物清单.txt"), "苹果、茶、纸。\n");
  mkdirSync(results, { recursive: true });
  const use = model && {
    welcomed: true,
    models: [{ id: "peer", provider: "openai-compatible", baseUrl: model, model: "peer" }],
    activeModel: "peer",
  };
  if (use || Object.keys(settings).length) writeFileSync(join(home, "settings.json"), JSON.stringify({ ...use, ...settings }));
  const servers = mcp ?? (granted ? { files: { roots: [folder] } } : undefined);
  if (servers) writeFileSync(join(home, "mcp.json"), JSON.stringify({ mcpServers: servers }));
  return {
    path: home,
    folder,
    read: (name) => readFileSync(join(home, name), "utf8"),
    write: (name, text) => writeFileSync(join(home, name), text),
    env: { PARLEY_HOME: home, PARLEY_KEYCHAIN: `parley-test-${process.pid}`, PARLEY_LANG: "en" },
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}
