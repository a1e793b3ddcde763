// Where the focus goes, what stands still, and what is said of an answer, in Chromium on the headless engine.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { openBrowser, serve, visit } from "../support/chromium.mjs";
import { freshHome } from "../support/home.mjs";
import { hang, openModel, say, want } from "../support/model.mjs";
import { until } from "../support/wait.mjs";

const ANSWER = '[data-testid="message"][data-role="assistant"]';
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAIAAABqVuVZAAAAf0lEQVR42u3YUQ0AIAxDwTnAAJ5wgCw0ImMOJqC55Cm4r6b139JQIQAECBAgQIBigfY9GgIECBAgQIAA5QKZgpY0IECAAAEC5A+SJQ0IECBAgAD5g2RJAwIECBAgQP4gAQIECBAgQID8QZa0AAECBAgQIH+QJS1AgAABAgQoogaYDQml1aAVHgAAAABJRU5ErkJggg==";

let browser, model, home, engine, page;
before(async () => (browser = await openBrowser()));
after(() => browser.close());
beforeEach(async () => {
  model = await openModel();
});
afterEach(async (t) => {
  if (!t.passed) await page.shot(`browser-failed-${t.name.replace(/\W+/g, "-")}`);
  await page.leave();
  await engine.stop();
  await model.close();
  home.remove();
});

async function open(given = {}, view = {}, env = {}) {
  home = freshHome({ model: model.url, ...given });
  engine = await serve(home, env);
  page = await visit(browser, engine.url, view);
  await page.has('[data-testid="app"][data-state="ready"]');
}
const focused = (what, name) => until(what, () => page.evaluate((id) => document.activeElement?.dataset?.testid === id, name));

test("the focus is where one writes: at a start, after a no with the mouse, after Stop, after a question from elsewhere", async () => {
  await open();
  await focused("the composer to have the focus at the start", "composer");
  model.next(want("files__read_file", { path: "notes.txt" }), say("It says Friday."));
  await page.send("Read my notes");
  await page.has("ask");
  await page.click_("ask-deny");
  await focused("the composer to have the focus after a no", "composer");
  await page.see(`${ANSWER}[data-status="complete"]`, "It says Friday.");
  await page.see("unread", "nothing was read");

  model.next(hang("It goes on"));
  await page.send("And then?");
  await page.see(`${ANSWER}[data-status="streaming"]`, "It goes on");
  await page.click_("stop");
  await page.see("cut", "You stopped the answer here");
  await focused("the composer to have the focus after a stop", "composer");
  await page.shot("manners-stopped");

  model.next(say(" and ends."));
  await page.click_("continue");
  await page.see(`${ANSWER}[data-status="complete"]`, "and ends.");
  assert.equal(await page.at("cut").count(), 0, "what went on is not cut any more");

  model.next(want("files__read_file", { path: "notes.txt" }), say("Thursday."));
  await page.send("Look again");
  await page.has("ask");
  await page.click_("nav-models");
  await page.click_("inbox");
  await page.click_('[data-testid="ask-allow-once"]:not([disabled])');
  await page.see(`${ANSWER}[data-status="complete"]`, "Thursday.");
  await focused("the composer to have the focus in that chat", "composer");
});

test("nothing moves by itself while a question opens, arms and waits, while an answer streams, and after a resize", async () => {
  await open();
  await page.evaluate(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.hadRecentInput) continue;
        globalThis.shifts.push(...entry.sources.map(({ node, previousRect, currentRect }) => `${node?.nodeName}.${node?.className} ${previousRect.y}→${currentRect.y} ${previousRect.height}→${currentRect.height}`));
      }
    }).observe({ type: "layout-shift" });
  });
  const still = async (what, inside) => {
    const shifts = await page.evaluate(() => globalThis.shifts.splice(0));
    assert.deepEqual(shifts.filter((one) => inside.test(one)), [], what);
  };
  model.next(want("files__read_file", { path: "notes.txt" }), say("A long answer. ".repeat(120), 60));
  await page.send("Read my notes");
  await page.has('[data-testid="ask-allow-once"]:not([disabled])');
  const place = () => page.at("ask-deny").boundingBox();
  const before = await place();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 700)));
  assert.deepEqual(await place(), before, "the buttons stay under the pointer");
  await still("while it waits", /ask|BUTTON|body|rest/i);
  await page.setViewportSize({ width: 900, height: 700 });
  await page.setViewportSize({ width: 1180, height: 780 });
  assert.deepEqual(await place(), before, "back at its size, everything is back in its place");
  await page.click_("ask-allow-once");
  await page.see(`${ANSWER}[data-status="complete"]`, "A long answer.");
  await still("while it streams", /composer|TEXTAREA|head|H1/i);
});

const server = (result) => `
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "camera", version: "1" } });
  else if (method === "tools/list") say(id, { tools: [{ name: "take", inputSchema: { type: "object" } }] });
  else if (method === "tools/call") say(id, ${JSON.stringify(result)});
  else if (id !== undefined) say(id, {});
});`;

for (const lang of ["en", "zh-CN"]) {
  test(`a picture in a result is shown from our own store; an address asks with all it will be told (${lang})`, async () => {
    const camera = { command: process.execPath, args: ["-e", server({ content: [{ type: "image", mimeType: "image/png", data: PNG }, { type: "image", mimeType: "image/png", data: "AAAA" }] })] };
    const post = { type: "http", url: "https://mcp.post.example/v1/mcp", headers: { "X-Api-Key": "${POST_KEY}", "X-Team": "house" } };
    await open({ mcp: { camera, post } }, { colorScheme: lang === "en" ? "light" : "dark" }, { PARLEY_LANG: lang, POST_KEY: "k" });
    await page.click_("inbox");
    await page.has('[data-testid="ask"][data-kind="connect"]');
    await page.click_('[data-testid="ask"][data-kind="connect"] [data-testid="ask-details"]');
    await page.at('[data-testid="ask"][data-kind="connect"]').scrollIntoViewIfNeeded();
    await page.shot(`manners-connect-${lang}`);
    const said = await page.at('[data-testid="ask"][data-kind="connect"]').textContent();
    for (const told of ["mcp.post.example", "https://mcp.post.example/v1/mcp", "X-Api-Key"]) assert.ok(said.includes(told), told);
    await page.click_('[data-testid="ask"][data-kind="connect"] [data-testid="ask-deny"]');
    await page.click_('[data-testid="ask"][data-kind="launch"] [data-testid="ask-allow-always"]:not([disabled])');
    await page.click_("nav-connections");
    await page.has('[data-testid="connection"][data-server="camera"][data-status="ready"]');
    await page.click_("new-chat");
    model.next(want("camera__take", {}), say("Here it is."));
    const outside = [];
    page.on("request", (request) => /^https?:/.test(request.url()) && !request.url().startsWith(new URL(engine.url).origin) && outside.push(request.url()));
    await page.send("Take a picture");
    await page.click_('[data-testid="ask-allow-once"]:not([disabled])');
    await page.see(`${ANSWER}[data-status="complete"]`, "Here it is.");
    await until("the picture to be drawn", () => page.evaluate(() => document.querySelector('[data-testid="media"] img')?.naturalWidth === 96));
    // What only calls itself a picture is told by its type.
    await until("the broken one to be told", () => page.evaluate(() => document.querySelectorAll('[data-testid="media"] img').length === 1));
    await page.shot(`manners-picture-${lang}`);
    assert.deepEqual(outside, []);
  });
}

test("a folder's chip opens a menu with the keyboard, and the folder field stands level in each language", async () => {
  await open({}, {}, { PARLEY_LANG: "zh-CN" });
  await page.at("folder-chip").focus();
  await page.keyboard.press("Enter");
  await page.has("folder-all");
  await page.shot("manners-folder-menu");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.has("folder");
  await page.click_("add-folder");
  const [field, button] = await Promise.all(["folder-path", "folder-path-confirm"].map((name) => page.at(name).boundingBox()));
  assert.deepEqual([field.y, field.height], [button.y, button.height]);
  await page.shot("manners-folder-field");
});
