// Starting and ending: first paint, one app per folder, nothing left behind, a window that stays white.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { log, openApp, startApp, windowNamed, xdotool } from "../support/app.mjs";
import { openDesktop } from "../support/desktop.mjs";
import { freshHome, results } from "../support/home.mjs";
import { gone, start, tree, withEnvironment } from "../support/processes.mjs";
import { until, within } from "../support/wait.mjs";

let desktop;
before(async () => (desktop = await openDesktop()));
after(() => desktop.close());

const painted = (home, times = 1) => until("the first paint in the log", () => log(home).split("painted\n").length > times);

test("a first start paints and welcomes, and the welcome ends in an empty chat", async () => {
  const home = freshHome({ granted: false });
  const page = await openApp(desktop, home);
  try {
    await page.has('[data-testid="app"][data-state="welcome"]');
    await painted(home);
    await page.shot(join(results, "window-welcome.png"));
    await page.click("welcome-skip");
    await page.has('[data-testid="app"][data-state="ready"]');
    await page.has("composer");
    await until("the welcome to be remembered", () => JSON.parse(home.read("settings.json")).welcomed);
    const outside = readdirSync(desktop.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(desktop.home.length + 1))
      .filter((file) => !/^run\/|openbox|keyrings/.test(file));
    assert.deepEqual(outside, [], "something was written outside PARLEY_HOME");
  } finally {
    await page.close();
    home.remove();
  }
});

test("TERM ends the app and all it started within five seconds", async () => {
  const home = freshHome();
  const app = startApp(desktop, home);
  await painted(home);
  const all = await until("its child processes", () => tree(app.pid).length > 2 && tree(app.pid));
  app.child.kill("SIGTERM");
  const end = await within("the end of the app", app.ended, 5_000);
  assert.deepEqual(end, { code: 0, signal: null });
  await gone(all, 1_000);
  assert.deepEqual(withEnvironment(`PARLEY_HOME=${home.path}`), []);
  home.remove();
});

test("closing the window ends it as well", async () => {
  const home = freshHome();
  const app = startApp(desktop, home);
  await painted(home);
  const all = tree(app.pid);
  await xdotool(desktop, "windowactivate", "--sync", await windowNamed(desktop, "Parley"));
  await xdotool(desktop, "key", "alt+F4");
  await within("the end of the app", app.ended, 5_000);
  await gone(all, 1_000);
  home.remove();
});

test("a second start on the same folder brings the first to the front; another folder gets its own", async () => {
  const [home, other] = [freshHome(), freshHome()];
  const first = startApp(desktop, home);
  try {
    await painted(home);
    const window = await windowNamed(desktop, "Parley");
    await xdotool(desktop, "windowminimize", window);
    const second = startApp(desktop, home);
    assert.deepEqual(await within("the end of the second start", second.ended), { code: 0, signal: null });
    await until("the first window in front", async () => (await xdotool(desktop, "getactivewindow")) === window);
    assert.equal(first.child.exitCode, null);

    const third = startApp(desktop, other);
    await painted(other);
    await third.stop();
  } finally {
    await first.stop();
    home.remove();
    other.remove();
  }
});

test("a window that stays white starts again once with safe drawing, and remembers", async () => {
  const home = freshHome();
  const environment = (pid) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  const safe = (pid) => environment(pid).includes("WEBKIT_DISABLE_DMABUF_RENDERER=1") && environment(pid).includes("WEBKIT_DISABLE_COMPOSITING_MODE=1");
  const app = startApp(desktop, home, { PARLEY_TEST_BLANK: "300" });
  try {
    await until("the restart with safe drawing", () => safe(app.pid));
    await until("a paint after it", () => /safe drawing[\s\S]*painted/.test(log(home)));
    assert.ok(existsSync(join(home.path, "rendering.json")));
    assert.equal(app.child.exitCode, null);
  } finally {
    await app.stop();
  }
  const next = startApp(desktop, home);
  try {
    await until("safe drawing from the start", () => safe(next.pid));
  } finally {
    await next.stop();
    home.remove();
  }
});

test("a page whose process crashes is loaded again; the app and its connections go on", async () => {
  const home = freshHome();
  const app = startApp(desktop, home);
  try {
    await painted(home);
    const named = (name) => tree(app.pid).find((one) => one.name === name);
    const files = await until("the files connection", () => named("parley-files"));
    process.kill(named("WebKitWebProces").pid, "SIGKILL");
    await painted(home, 2);
    assert.equal(named("parley-files").pid, files.pid);
  } finally {
    await app.stop();
    home.remove();
  }
});

test("when the chats cannot be opened the window says why, and tries again when asked", async () => {
  const home = freshHome();
  // A database from a far newer app, which says that this one cannot read it.
  const make = `import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript("PRAGMA application_id = 0x50726c79; PRAGMA user_version = 9999; CREATE TABLE meta (key TEXT PRIMARY KEY, value); INSERT INTO meta VALUES ('min_reader', 9999);")
db.commit()`;
  const made = start("python3", ["-c", make, join(home.path, "parley.db")]);
  assert.equal((await made.ended).code, 0, made.lines.join("\n"));
  const page = await openApp(desktop, home);
  try {
    await page.has('[data-testid="app"][data-state="failed"]');
    await page.has('[data-testid="error"][data-code="storage.newer"]');
    await page.shot(join(results, "window-newer.png"));
    rmSync(join(home.path, "parley.db"));
    await page.run("location.reload()");
    await page.has('[data-testid="app"][data-state="welcome"]');
  } finally {
    await page.close();
    home.remove();
  }
});
