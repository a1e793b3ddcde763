// What only a real desktop has: the system's folder picker, an input method, a keychain that may be missing.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openApp, windowNamed, xdotool } from "../support/app.mjs";
import { openDesktop } from "../support/desktop.mjs";
import { freshHome, results } from "../support/home.mjs";
import { openModel, say } from "../support/model.mjs";
import { until } from "../support/wait.mjs";

let desktop;
before(async () => (desktop = await openDesktop()));
after(() => desktop.close());

test("a folder is chosen with the system's picker and granted", async () => {
  const model = await openModel();
  const home = freshHome({ model: model.url, granted: false });
  const page = await openApp(desktop, home);
  try {
    await page.click("nav-connections");
    await page.has('[data-testid="connection"][data-server="files"]');
    await page.click("add-folder");
    const picker = await windowNamed(desktop, "Choose a folder");
    await xdotool(desktop, "windowactivate", "--sync", picker);
    // GTK completes what is typed while it reads the folder, and takes Return only when it is done: so, again
    // until the picker is gone.
    await until("the picker to take the folder", async () => {
      await xdotool(desktop, "key", "--clearmodifiers", "ctrl+l");
      await xdotool(desktop, "key", "--clearmodifiers", "ctrl+a");
      await xdotool(desktop, "type", "--clearmodifiers", "--delay", "30", home.folder);
      await xdotool(desktop, "key", "Return");
      return until("the picker to close", async () => {
        const open = await xdotool(desktop, "search", "--onlyvisible", "--name", "^Choose a folder$").catch(() => "");
        return open === "";
      }, 2_000);
    }, 30_000);
    await page.click("connection-tools");
    await page.has(`[data-testid="folder"][data-path="${home.folder}"]`);
    await until("the folder in mcp.json", () => JSON.parse(home.read("mcp.json")).mcpServers.files.roots.includes(home.folder));
    await page.shot(join(results, "window-folder.png"));
  } finally {
    await page.close();
    await model.close();
    home.remove();
  }
});

test("Chinese: the words, and an Enter that ends a composition sends nothing", async () => {
  const model = await openModel();
  model.next(say("你好！今天做什么？"));
  const home = freshHome({ model: model.url });
  const page = await openApp(desktop, home, { PARLEY_LANG: "zh-CN" });
  try {
    await page.has('[data-testid="app"][data-state="ready"]');
    assert.equal(await page.run("return document.documentElement.lang"), "zh-CN");
    await page.click("composer");
    await xdotool(desktop, "windowactivate", "--sync", await windowNamed(desktop, "Parley"));
    // GTK's own input method: Ctrl+Shift+U, the character's number, Enter. It composes as every other one does.
    for (const [number, so_far] of [["4f60", "你"], ["597d", "你好"]]) {
      await xdotool(desktop, "key", "ctrl+shift+u");
      await xdotool(desktop, "type", "--delay", "30", number);
      await xdotool(desktop, "key", "Return");
      await until(`${so_far} in the composer`, async () => (await page.value("composer")) === so_far);
    }
    assert.equal(model.requests.length, 0);
    await page.hasNot("message", 0);
    await xdotool(desktop, "key", "Return");
    await page.see('[data-testid="message"][data-role="assistant"][data-status="complete"]', "你好！今天做什么？");
    assert.equal(model.requests[0].messages.at(-1).content, "你好");
    await page.shot(join(results, "window-chinese.png"));
  } finally {
    await page.close();
    await model.close();
    home.remove();
  }
});

const add_model = async (page, url) => {
  await page.click("nav-models");
  await page.click("model-add");
  await page.type("model-url", url);
  await page.type("model-name", "keyed");
  await page.type("model-key", "sk-secret-0123456789");
  await page.click("model-save");
};
const added = '[data-testid="model"]:not([data-model="peer"]):not([data-provider="local"])';
const use_added = async (page) => {
  await page.click(`${added} [data-testid="model-use"]`);
  await page.has(`${added}[data-active="true"]`);
};
const everything = (home) => {
  const files = readdirSync(home.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((entry) => readFileSync(join(entry.parentPath ?? entry.path, entry.name), "latin1")).join("\n");
};

test("a key goes to the keychain, is used, is still there after a restart, and is in no file", async () => {
  const model = await openModel();
  model.next(say("One."), say("Two."));
  const home = freshHome({ model: model.url });
  let page = await openApp(desktop, home);
  try {
    await add_model(page, model.url);
    await use_added(page);
    for (const words of ["One.", "Two."]) {
      await page.click("new-chat");
      await page.type("composer", "Hello");
      await page.click("send");
      await page.see('[data-testid="message"][data-role="assistant"][data-status="complete"]', words);
      assert.equal(model.requests.at(-1).authorization, "Bearer sk-secret-0123456789");
      await page.close();
      if (words === "One.") page = await openApp(desktop, home);
    }
    assert.doesNotMatch(everything(home), /sk-secret-0123456789/);
  } finally {
    await page.close();
    await model.close();
    home.remove();
  }
});

test("where no program opens mcp.json, the window says so and where it is", async () => {
  const model = await openModel();
  const home = freshHome({ model: model.url });
  // The system's openers, as they are on a desktop that knows no program for the file.
  const openers = join(home.path, "..", "openers");
  mkdirSync(openers);
  for (const name of ["xdg-open", "gio", "gnome-open", "kde-open6", "kde-open5", "kde-open", "wslview"]) {
    writeFileSync(join(openers, name), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
  }
  const page = await openApp(desktop, home, { PATH: `${openers}:${process.env.PATH}` });
  try {
    await page.click("nav-connections");
    await page.click('[data-testid="open-file"]');
    await page.see('[data-testid="error"][data-code="desktop.cannot_open"]', join(home.path, "mcp.json"));
    await page.shot(join(results, "window-cannot-open.png"));
  } finally {
    await page.close();
    await model.close();
    home.remove();
  }
});

test("with no keychain it is said, and the key is kept for this run only", async () => {
  const bare = await openDesktop({ keychain: false });
  const model = await openModel();
  model.next(say("One."));
  const home = freshHome({ model: model.url });
  let page = await openApp(bare, home);
  try {
    await add_model(page, model.url);
    await page.has('[data-testid="error"][data-code^="keychain."]');
    await page.click("error-action");
    await use_added(page);
    await page.click("new-chat");
    await page.type("composer", "Hello");
    await page.click("send");
    await page.see('[data-testid="message"][data-role="assistant"][data-status="complete"]', "One.");
    assert.equal(model.requests[0].authorization, "Bearer sk-secret-0123456789");
    assert.doesNotMatch(everything(home), /sk-secret-0123456789/);
    await page.close();
    page = await openApp(bare, home);
    await page.click("nav-models");
    await page.click("model-key-again");
    await until("its field to have the focus", () => page.run("return document.activeElement?.dataset.testid === 'model-key'"));
  } finally {
    await page.close();
    await bare.close();
    await model.close();
    home.remove();
  }
});
