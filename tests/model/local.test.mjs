// A real model on this computer, end to end: it is asked about a file, asks to read it, and answers from it.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser, serve, visit } from "../support/chromium.mjs";
import { freshHome } from "../support/home.mjs";
import { gone, tree } from "../support/processes.mjs";
import { until } from "../support/wait.mjs";

const MINUTES = 60_000;
let browser, home, engine, page;
before(async () => {
  browser = await openBrowser();
  home = freshHome({ settings: { welcomed: true } });
  mkdirSync(join(home.path, "models"));
  for (const file of readdirSync(process.env.PARLEY_MODELS).filter((name) => name.endsWith(".gguf"))) {
    symlinkSync(join(process.env.PARLEY_MODELS, file), join(home.path, "models", file));
  }
  engine = await serve(home);
  page = await visit(browser, engine.url);
});
after(async () => {
  await page?.leave();
  await engine?.stop();
  await browser.close();
  home.remove();
});

const helper = () => tree(engine.pid).find(({ name }) => name === "parley-llama");

test("asked what notes.txt says, it reads the file after a yes and answers from it", async () => {
  await page.has('[data-testid="app"][data-state="ready"]');
  await page.send("What does notes.txt say?");
  await page.has('[data-testid="ask"][data-kind="tool"][data-server="files"]', 3 * MINUTES);
  assert.match(await page.at("ask").last().textContent(), /notes\.txt/);
  await page.click_("ask-allow-once");
  await page.has('[data-testid="message"][data-role="assistant"][data-status="complete"]', 3 * MINUTES);
  await page.has('[data-testid="tool-card"][data-tool="read_file"][data-status="done"]');
  assert.match(await page.at('[data-testid="message"][data-role="assistant"]').last().textContent(), /Thursday|blue folder/);
});

test("killed while it answers, it is said so, and the next message starts it again", async () => {
  await page.click_("new-chat");
  await page.send("Write a long story about a river.");
  const victim = await until("the model's program at work", helper, MINUTES);
  await page.see('[data-testid="message"][data-role="assistant"]', /\w+ \w+ \w+/, 3 * MINUTES);
  process.kill(victim.pid, "SIGKILL");
  await gone([victim]);
  await page.has('[data-testid="error"][data-code="model.crashed"]');
  await page.send("Say hello.");
  await page.has('[data-testid="message"][data-role="assistant"][data-status="complete"]', 3 * MINUTES);
});
