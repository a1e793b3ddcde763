// Chatting in the real window: answers, tools that ask, stopping, and what is there after a restart.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { log, openApp } from "../support/app.mjs";
import { openDesktop } from "../support/desktop.mjs";
import { freshHome, results } from "../support/home.mjs";
import { hang, openModel, say, want } from "../support/model.mjs";
import { gone, tree } from "../support/processes.mjs";
import { until } from "../support/wait.mjs";

let desktop, model, home, page;
before(async () => (desktop = await openDesktop()));
after(() => desktop.close());
beforeEach(async () => {
  model = await openModel();
  home = freshHome({ model: model.url });
  page = await openApp(desktop, home);
  await page.has('[data-testid="app"][data-state="ready"]');
});
afterEach(async (t) => {
  if (!t.passed) await page.shot(join(results, `window-failed-${t.name.replace(/\W+/g, "-")}.png`)).catch(() => {});
  await page.close();
  await model.close();
  home.remove();
});

const send = async (text) => {
  await page.type("composer", text);
  await page.click("send");
};
const answered = (text) => page.see('[data-testid="message"][data-role="assistant"][data-status="complete"]', text);
const results_of = (request) => request.messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));

test("a message is answered", async () => {
  model.next(say("Good morning. What shall we do?"));
  await send("Hello there");
  await answered("Good morning. What shall we do?");
  await page.see('[data-testid="message"][data-role="user"]', "Hello there");
  assert.equal(model.requests[0].messages.at(-1).content, "Hello there");
  assert.equal(await page.value("composer"), "");
});

test("a tool asks; allowed, it reads the file and the answer follows", async () => {
  model.next(want("files__read_file", { path: "notes.txt" }), say("The meeting is on Thursday."));
  await send("What do my notes say?");
  const ask = '[data-testid="ask"][data-kind="tool"][data-server="files"]';
  await page.has(ask);
  await page.has('[data-testid="tool-card"][data-tool="read_file"][data-status="asking"]');
  assert.equal(model.requests.length, 1, "nothing ran before the answer");
  await page.shot(join(results, "window-ask.png"));
  await page.click("ask-allow-once");
  await answered("The meeting is on Thursday.");
  await page.has('[data-testid="tool-card"][data-tool="read_file"][data-status="done"]');
  await page.hasNot(ask);
  assert.match(results_of(model.requests[1]).at(-1), /Thursday at ten/);
  await page.shot(join(results, "window-answer.png"));
});

test("an approval cannot be given by accident: not by Enter, and not in the first 600 ms", async () => {
  model.next(want("files__read_file", { path: "notes.txt" }), say("Never said."));
  // Looked at in the moment it appears: any later look could come after those 600 ms.
  await page.run(`window.first = null;
    new MutationObserver(() => {
      const button = document.querySelector('[data-testid="ask-allow-once"]');
      if (button && window.first === null) window.first = button.disabled;
    }).observe(document.body, { childList: true, subtree: true });`);
  await send("Read it");
  await page.has("ask");
  assert.equal(await page.run("return window.first"), true);
  await page.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', code: 'Enter', bubbles: true}))");
  await page.has('[data-testid="tool-card"][data-status="asking"]');
  assert.equal(model.requests.length, 1);
});

test("refused, the tool does not run, and the model is told", async () => {
  model.next(want("files__read_file", { path: "notes.txt" }), say("Then I will not look."));
  await send("What do my notes say?");
  await page.click("ask-deny");
  await answered("Then I will not look.");
  await page.has('[data-testid="tool-card"][data-status="declined"]');
  const [told] = results_of(model.requests[1]);
  assert.doesNotMatch(told, /Thursday/);
  assert.match(told, /declin|not allow|refus/i);
});

test("stop ends an answer in the middle and keeps what was said", async () => {
  model.next(hang("Once upon a time"), say("Here again."));
  await send("Tell me a story");
  await page.see('[data-testid="message"][data-role="assistant"]', "Once upon a time");
  await page.click("stop");
  await page.has('[data-testid="message"][data-role="assistant"][data-status="interrupted"]');
  await page.hasNot("stop");
  await model.hungUp();
  await page.see('[data-testid="message"][data-role="assistant"]', "Once upon a time");
  await send("Still there?");
  await answered("Here again.");
});

test("a restart keeps the chats", async () => {
  model.next(say("I will remember this."));
  await send("Remember the blue folder");
  await answered("I will remember this.");
  await page.close();
  page = await openApp(desktop, home);
  await page.click("chat-item");
  await answered("I will remember this.");
  await page.see('[data-testid="message"][data-role="user"]', "Remember the blue folder");
});

test("killed in the middle of an answer, it opens again with the kept part and goes on", async () => {
  model.next(hang("The first half"), say("The second half."));
  await send("Write something long");
  await page.see('[data-testid="message"][data-role="assistant"]', "The first half");
  const seen = Date.now();
  const all = tree(page.app.pid);
  // What is saved lags behind what is seen by a tenth of a second at most.
  await until("the part to be saved", () => Date.now() - seen > 200);
  process.kill(page.app.pid, "SIGKILL");
  await gone(all, 10_000);
  await page.close();
  page = await openApp(desktop, home);
  await page.click("chat-item");
  await page.see('[data-testid="message"][data-role="assistant"][data-status="interrupted"]', "The first half");
  await send("Go on");
  await answered("The second half.");
  assert.doesNotMatch(log(home), /panicked/);
});
