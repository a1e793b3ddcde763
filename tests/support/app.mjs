// The real app on a desktop of its own.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { programs } from "./home.mjs";
import { start, tree } from "./processes.mjs";
import { until } from "./wait.mjs";
import { drive } from "./webdriver.mjs";

/** Opens the app on `home` in a window that can be driven. `page.app` is its process. */
export async function openApp(desktop, home, env = {}) {
  const page = await drive(programs().app, { ...desktop.env, ...home.env, ...env });
  page.app = await until("the app's process", () => tree(page.pid).find(({ name }) => name === "parley"));
  return page;
}

/** Starts the app as a person does, with nothing that drives it. */
export const startApp = (desktop, home, env = {}) => start(programs().app, [], { env: { ...desktop.env, ...home.env, ...env } });

/** All the log of a home so far. */
export function log(home) {
  try {
    const folder = join(home.path, "logs");
    return readdirSync(folder).sort().map((name) => readFileSync(join(folder, name), "utf8")).join("");
  } catch {
    return "";
  }
}

/** Runs xdotool on that desktop and gives what it prints. */
export async function xdotool(desktop, ...args) {
  const made = start("xdotool", args, { env: desktop.env });
  const { code } = await made.ended;
  if (code !== 0) throw new Error(`xdotool ${args.join(" ")}: ${made.lines.join(" ")}`);
  return made.lines.join("\n");
}

/** The id of the window with this title, once it is there. */
export const windowNamed = (desktop, title) =>
  until(`a window called ${title}`, async () => (await xdotool(desktop, "search", "--onlyvisible", "--name", `^${title}$`)).split("\n")[0]);
