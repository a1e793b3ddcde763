// A person's ways through the page, in Chromium on the headless engine.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { openBrowser, serve, visit } from "../support/chromium.mjs";
import { freshHome } from "../support/home.mjs";
import { hang, openModel, say, want } from "../support/model.mjs";
import { until } from "../support/wait.mjs";

const ANSWER = '[data-testid="message"][data-role="assistant"]';
const answered = (text) => page.see(`${ANSWER}[data-status="complete"]`, text);
const card = (status) => page.has(`[data-testid="tool-card"][data-status="${status}"]`);

let browser, model, home, engine, page;
before(async () => (browser = await openBrowser()));
after(() => browser.close());
beforeEach(async () => {
  model = await openModel();
  home = freshHome({ model: model.url });
  await open();
});
afterEach(async (t) => {
  if (!t.passed) await page.shot(`browser-failed-${t.name.replace(/\W+/g, "-")}`);
  const faults = page.faults;
  await page.leave();
  await engine.stop();
  await model.close();
  home.remove();
  assert.deepEqual(faults, [], "the page wrote errors to its console");
});

async function open() {
  engine = await serve(home);
  page = await visit(browser, engine.url);
  await page.has('[data-testid="app"][data-state="ready"]');
}

test("always allowed, the same tool asks once; taken back, it asks again", async () => {
  model.next(want("files__read_file", { path: "notes.txt" }), say("One."));
  await page.send("Read my notes");
  await page.click_("ask-allow-always");
  await answered("One.");

  model.next(want("files__read_file", { path: "notes.txt" }), say("Two."));
  await page.send("And again");
  await answered("Two.");
  assert.equal(await page.at("ask").count(), 0);

  await page.click_("nav-permissions");
  await page.has('[data-testid="permission"][data-server="files"][data-tool="read_file"]');
  await page.click_("permission-revoke");
  await page.hasNot('[data-testid="permission"][data-tool="read_file"]');

  await page.click_("chat-item");
  model.next(want("files__read_file", { path: "notes.txt" }), say("Three."));
  await page.send("Once more");
  await card("asking");
  await page.click_("ask-deny");
  await answered("Three.");
});

test("allowed for this chat, another chat still asks", async () => {
  model.next(want("files__read_file", { path: "notes.txt" }), say("One."), want("files__read_file", { path: "notes.txt" }), say("Two."));
  await page.send("Read my notes");
  await page.click_("ask-allow-chat");
  await answered("One.");
  await page.send("And again");
  await answered("Two.");

  await page.click_("new-chat");
  model.next(want("files__read_file", { path: "notes.txt" }), say("Three."));
  await page.send("Read them here");
  await card("asking");
  await page.click_("ask-allow-once");
  await answered("Three.");
});

test("a writing tool is never offered for always, and writes only after the yes", async () => {
  model.next(want("files__write_file", { path: "new.txt", text: "hello" }), say("Written."));
  await page.send("Write it");
  await page.has('[data-testid="ask"][data-kind="tool"]');
  assert.equal(await page.at("ask-allow-always").count(), 0);
  await page.click_("ask-allow-once");
  await answered("Written.");
  await card("done");
  const { readFileSync } = await import("node:fs");
  assert.equal(readFileSync(join(home.folder, "new.txt"), "utf8"), "hello");
});

test("a chat is renamed, found by its content, and deleted", async () => {
  model.next(say("The capital of Peru is Lima."));
  await page.send("Which is the capital of Peru?");
  await answered("Lima");

  await page.click_("chat-menu");
  await page.click_("chat-rename");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Geography");
  await page.keyboard.press("Enter");
  await page.see("chat-item", "Geography");

  await page.at("chat-search").fill("Lima");
  await page.see("chat-item", "Geography");
  await page.at("chat-search").fill("nothing like it");
  await page.hasNot("chat-item");
  await page.at("chat-search").fill("");

  await page.click_("chat-item");
  await page.click_("chat-menu");
  await page.click_("chat-delete");
  await page.click_("chat-delete-confirm");
  await page.hasNot("chat-item");
});

test("a page that is loaded again goes on with the running answer", async () => {
  model.next(hang("It goes on"));
  await page.send("Tell me");
  await page.see(ANSWER, "It goes on");
  await page.reload();
  await page.has('[data-testid="app"][data-state="ready"]');
  await page.click_("chat-item");
  await page.see(`${ANSWER}[data-status="streaming"]`, "It goes on");
  await page.click_("stop");
  await page.has(`${ANSWER}[data-status="interrupted"]`);
});

test("an endpoint is added with a key, tested and used; without a keychain the key stays in memory", async () => {
  await page.click_("nav-models");
  await page.click_("model-add");
  await page.at("model-provider").first().waitFor();
  await page.at("model-url").fill(model.url);
  await page.at("model-name").fill("second");
  await page.at("model-key").fill("sk-test-12345678");
  await page.click_("model-save");
  await page.has('[data-testid="error"][data-code^="keychain."]');
  await page.click_("error-action");
  const added = '[data-testid="model"]:not([data-model="peer"]):not([data-provider="local"])';
  await page.click_(`${added} [data-testid="model-use"]`);
  await page.has(`${added}[data-active="true"]`);
  for (const file of ["settings.json", "mcp.json"]) assert.doesNotMatch(home.read(file), /sk-test/);
});

test("a connection is switched off and on", async () => {
  await page.click_("nav-connections");
  const files = (status) => page.has(`[data-testid="connection"][data-server="files"][data-status="${status}"]`);
  await files("ready");
  await page.click_("connection-toggle");
  await files("off");
  await page.click_("connection-toggle");
  await files("ready");
  await page.click_("connection-tools");
  await until("its tools", async () => (await page.at("tool-rule").count()) >= 7);
});

test("a program that is new in mcp.json asks before it starts; a refusal keeps it from starting", async () => {
  const servers = JSON.parse(home.read("mcp.json")).mcpServers;
  home.write("mcp.json", JSON.stringify({ mcpServers: { ...servers, touchy: { command: "touch", args: [join(home.folder, "started")] } } }));
  await page.click_("inbox");
  await page.has('[data-testid="ask"][data-kind="launch"][data-server="touchy"]');
  await page.click_("ask-deny");
  await page.hasNot('[data-testid="ask"][data-server="touchy"]');
  const { existsSync } = await import("node:fs");
  assert.equal(existsSync(join(home.folder, "started")), false);
});

test("a program that is not there is named, and the other connections work", async () => {
  const servers = JSON.parse(home.read("mcp.json")).mcpServers;
  home.write("mcp.json", JSON.stringify({ mcpServers: { ...servers, gone: { command: "no-such-program-anywhere" } } }));
  await page.click_("inbox");
  await page.click_("ask-allow-always");
  await page.click_("nav-connections");
  await page.has('[data-testid="connection"][data-server="gone"][data-status="failed"]');
  await page.see('[data-testid="connection"][data-server="gone"]', "no-such-program-anywhere");
  await page.has('[data-testid="connection"][data-server="files"][data-status="ready"]');
});

test("a folder is added by its path and taken back", async () => {
  await page.click_("nav-connections");
  await page.click_("connection-tools");
  await page.has("folder");
  await page.click_("folder-remove");
  await page.hasNot("folder");
  await page.at("folder-path").fill(home.folder);
  await page.click_("folder-path-confirm");
  await page.has(`[data-testid="folder"][data-path="${home.folder}"]`);
  await page.at("folder-path").fill(join(home.folder, "not there"));
  await page.click_("folder-path-confirm");
  await page.has('[data-testid="connection"] [aria-invalid="true"], [data-testid="error"][data-code="folder.gone"]');
});

test("the language changes at once, and is kept", async () => {
  await page.click_("nav-settings");
  await page.at("language").first().waitFor();
  await page.getByText("中文").first().click();
  await until("a Chinese page", () => page.evaluate(() => document.documentElement.lang === "zh-CN"));
  await until("the choice in settings.json", () => JSON.parse(home.read("settings.json")).language === "zh-CN");
  await page.reload();
  await until("a Chinese page after a reload", () => page.evaluate(() => document.documentElement.lang === "zh-CN"));
});

test("a message is written, sent and stopped with the keyboard alone", async () => {
  model.next(hang("Working"));
  await page.keyboard.press("Control+l");
  await page.keyboard.type("Hello by keyboard");
  await page.keyboard.press("Enter");
  await page.see(ANSWER, "Working");
  await page.keyboard.press("Control+.");
  await page.has(`${ANSWER}[data-status="interrupted"]`);
});

test("what a model writes is shown as text: no markup of its own, no picture fetched", async () => {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  model.next(say('<img src="https://example.org/x.png" onerror="document.title=1"><b>bold</b> ![p](https://example.org/y.png) [a link](javascript:alert(1))'));
  await page.send("Show me");
  await answered("a link");
  assert.equal(await page.locator(`${ANSWER} b`).count(), 0);
  assert.equal(await page.locator('a[href^="javascript:"]').count(), 0);
  assert.deepEqual(asked.filter((url) => !url.startsWith("http://127.0.0.1")), []);
});
