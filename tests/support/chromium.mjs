// The page in Chromium, on the headless engine.
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { programs, results, root } from "./home.mjs";
import { start } from "./processes.mjs";
import { until } from "./wait.mjs";
import { css } from "./webdriver.mjs";

/** Starts the engine on `home` and serves the page; `url` holds a token for one visit. */
export async function serve(home, env = {}) {
  const made = start(programs().headless, ["serve", "--port", "0", "--ui", join(root, "ui/dist")], {
    env: { PATH: process.env.PATH, LANG: "C.UTF-8", HOME: home.path, ...home.env, ...env },
  });
  const { url } = JSON.parse(await made.line(/^\{"url":/));
  return { url, pid: made.pid, stop: made.stop };
}

/**
 * The same, with the home on a disk of its own of so many megabytes, in a mount namespace that ends with the engine.
 * What is in the home is copied there first; `fill` and `free` take and give back its last space.
 */
export async function serveOnSmallDisk(home, megabytes) {
  const script = `cp -a "$1" "$1.files" && mount -t tmpfs -o size=${megabytes}m tmpfs "$1" && cp -a "$1.files/." "$1" && exec "$2" serve --port 0`;
  const made = start("unshare", ["-rm", "bash", "-c", script, "bash", home.path, programs().headless], {
    env: { PATH: process.env.PATH, LANG: "C.UTF-8", HOME: home.path, ...home.env },
  });
  const { url } = JSON.parse(await made.line(/^\{"url":/));
  // The engine's own view of its disk, reached from outside its namespace.
  const ballast = join("/proc", String(made.pid), "root", home.path, "ballast");
  const fill = () => {
    const file = openSync(ballast, "w");
    try {
      for (;;) writeSync(file, Buffer.alloc(4096));
    } catch (error) {
      if (error.code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
  };
  return { url, pid: made.pid, stop: made.stop, fill, free: () => rmSync(ballast) };
}

/** Starts Chromium. */
export const openBrowser = () => chromium.launch({ executablePath: process.env.PARLEY_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** Opens the page. The result is Playwright's page with the few words these tests speak. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 780 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(url);
  const at = (name) => page.locator(css(name));
  return Object.assign(page, {
    faults,
    at,
    /** Until something matches. */
    has: (name, timeout = 15_000) => at(name).last().waitFor({ state: "visible", timeout }),
    hasNot: (name, timeout = 15_000) => until(`no ${name}`, async () => (await at(name).count()) === 0, timeout),
    click_: (name) => at(name).last().click({ timeout: 15_000 }),
    /** Until the last `name` has this text. */
    see: (name, text, timeout = 15_000) => at(name).filter({ hasText: text }).last().waitFor({ state: "visible", timeout }),
    send: async (text) => {
      await at("composer").fill(text);
      await at("send").click();
    },
    shot: (name) => page.screenshot({ path: join(results, `${name}.png`) }),
    leave: () => context.close(),
  });
}
