import { compile } from "@inlang/paraglide-js";
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ui = dirname(dirname(fileURLToPath(import.meta.url)));
const messages = join(ui, "messages");
const outdir = join(ui, "src", "paraglide");
const stamp = join(outdir, ".stamp");

// What the compiled texts call. Two languages need no more than this of `Intl.PluralRules`, whose tables cost the start two
// megabytes; a text that formats a number or a date of its own would miss its function here, and fail the build.
const registry = `/** @param {string} locale @param {unknown} input @param {object} [_options] */
export function plural(locale, input, _options) {
  return locale === "en" && Math.abs(Number(input)) === 1 ? "one" : "other";
}
`;

/** One catalog file per area, in each language: `messages/<language>/<area>.json`. */
async function catalogFiles() {
  const files = [];
  for (const language of await readdir(messages)) {
    for (const area of await readdir(join(messages, language))) {
      if (area.endsWith(".json")) files.push(join(messages, language, area));
    }
  }
  return files.sort();
}

/**
 * Throws where an area lacks a key in one language: a missing text is a failed build.
 * @param {string[]} files
 */
async function checkKeys(files) {
  const keys = new Map();
  for (const file of files) {
    const parsed = JSON.parse(await readFile(file, "utf8"));
    keys.set(relative(messages, file).replaceAll("\\", "/"), new Set(Object.keys(parsed).filter((key) => key !== "$schema")));
  }
  const faults = [];
  for (const [name, own] of keys) {
    const [language, area] = name.split("/");
    const twin = `${language === "en" ? "zh-CN" : "en"}/${area}`;
    const other = keys.get(twin) ?? new Set();
    for (const key of own) if (!other.has(key)) faults.push(`${twin} lacks "${key}"`);
  }
  if (faults.length > 0) throw new Error(`Catalogs differ:\n${faults.join("\n")}`);
}

/**
 * Compiles the catalogs to `src/paraglide` when one of them changed since the last time.
 * @param {boolean} strict refuse catalogs whose keys differ
 */
export async function compileCatalogs(strict) {
  const files = await catalogFiles();
  if (strict) await checkKeys(files);
  const inputs = [...files, join(ui, "project.inlang", "settings.json")];
  const state = registry + JSON.stringify(await Promise.all(inputs.map(async (file) => [relative(ui, file), (await stat(file)).mtimeMs])));
  const last = await readFile(stamp, "utf8").catch(() => "");
  if (last === state) return;
  await compile({
    project: join(ui, "project.inlang"),
    outdir,
    // The language is the engine's setting; no cookie or storage is read or written.
    strategy: ["globalVariable", "baseLocale"],
  });
  await writeFile(join(outdir, "registry.js"), registry);
  await writeFile(stamp, state);
}

/**
 * The build step: compiles at start, and again when a catalog changes while developing.
 * @returns {import("vite").Plugin}
 */
export function catalogs() {
  return {
    name: "catalogs",
    enforce: "pre",
    async config(_config, { command }) {
      await compileCatalogs(command === "build");
    },
    configureServer(server) {
      server.watcher.add(messages);
      server.watcher.on("change", (file) => {
        if (file.startsWith(messages)) compileCatalogs(false).catch((cause) => server.config.logger.error(String(cause)));
      });
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await compileCatalogs(false);
