// How it looks: every page in both languages, light and dark, small and at 200 %, into test-results; and what
// axe finds wrong with it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openBrowser, serve, visit } from "../support/chromium.mjs";
import { freshHome, root } from "../support/home.mjs";
import { openModel, say, want } from "../support/model.mjs";

const axe = readFileSync(join(root, "ui/node_modules/axe-core/axe.min.js"), "utf8");
let browser;
before(async () => (browser = await openBrowser()));
after(() => browser.close());

const answer = "Your notes say:\n\n- the **meeting** is on Thursday at ten\n- bring the *blue folder*\n\n```js\nconst when = \"Thursday\";\n```\n";
const looks = [
  { name: "en-light", lang: "en", theme: "light" },
  { name: "en-dark", lang: "en", theme: "dark" },
  { name: "zh-light", lang: "zh-CN", theme: "light" },
  { name: "zh-dark", lang: "zh-CN", theme: "dark" },
  { name: "en-760", lang: "en", theme: "light", viewport: { width: 760, height: 640 } },
  // A system's high contrast: its own few colours, so borders and focus must stand by themselves.
  { name: "en-forced", lang: "en", theme: "light", viewport: { width: 1180, height: 780 }, forcedColors: "active" },
  // 200 % text in a window of 1180×780 leaves half of each.
  { name: "zh-200", lang: "zh-CN", theme: "light", viewport: { width: 590, height: 390 }, deviceScaleFactor: 2 },
];

for (const { name, lang, theme, ...view } of looks) {
  test(`every page in ${name} fits and passes axe`, async () => {
    const model = await openModel();
    const home = freshHome({ model: model.url, settings: { theme } });
    const engine = await serve(home, { PARLEY_LANG: lang });
    const page = await visit(browser, engine.url, view);
    const check = async (what) => {
      await page.shot(`screen-${name}-${what}`);
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${what} is ${wide} px wider than its window`);
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      const said = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
      assert.deepEqual(said, [], `${what}: axe`);
    };
    try {
      await page.has('[data-testid="app"][data-state="ready"]');
      await check("chat-empty");
      model.next(want("files__read_file", { path: "notes.txt" }), say(answer));
      await page.send(lang === "en" ? "What do my notes say?" : "我的笔记写了什么？");
      await page.has('[data-testid="ask-allow-once"]:not([disabled])');
      await check("ask");
      await page.click_("ask-allow-once");
      await page.has('[data-testid="message"][data-role="assistant"][data-status="complete"]');
      await check("answer");
      for (const where of ["connections", "permissions", "activity", "models", "settings"]) {
        await page.click_(`nav-${where}`);
        if (where === "connections") {
          await page.has('[data-testid="connection"][data-status="ready"]');
          await page.click_("connection-tools");
          await page.has("tool-rule");
        }
        await check(where);
      }
    } finally {
      await page.leave();
      await engine.stop();
      await model.close();
      home.remove();
    }
  });
}

for (const lang of ["en", "zh-CN"]) {
  test(`the welcome in ${lang}`, async () => {
    const home = freshHome({ granted: false });
    const engine = await serve(home, { PARLEY_LANG: lang });
    const page = await visit(browser, engine.url);
    try {
      await page.has("welcome");
      for (let step = 1; step <= 3 && (await page.at("welcome").count()); step += 1) {
        await page.shot(`screen-${lang}-welcome-${step}`);
        await page.click_("welcome-next");
      }
      await page.has('[data-testid="app"][data-state="ready"]');
    } finally {
      await page.leave();
      await engine.stop();
      home.remove();
    }
  });
}
