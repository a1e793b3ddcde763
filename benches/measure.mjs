// Prints the ratios that benches/run promises. All starts alternate between app and floor, and the middle one counts.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { log } from "../tests/support/app.mjs";
import { openDesktop } from "../tests/support/desktop.mjs";
import { freshHome } from "../tests/support/home.mjs";
import { openModel } from "../tests/support/model.mjs";
import { start, tree } from "../tests/support/processes.mjs";
import { until } from "../tests/support/wait.mjs";
import { drive } from "../tests/support/webdriver.mjs";

const app = join(process.env.BENCH_TARGET, "parley");
const empty = join(process.env.BENCH_TARGET, "empty-window");
const STARTS = 9;
const STREAMS = 3;
const CHARACTERS = 20_000;

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const stamp = (text, word) => {
  const line = text.split("\n").find((one) => one.includes(word));
  return line && Date.parse(line.match(/\d{4}-\d\d-\d\dT[\d:.]+Z/)[0]);
};
const ticks = (pid) => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
};
const pss = (pid) => Number(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").match(/^Pss:\s+(\d+)/m)[1]) / 1024;
const work = (list) => list.reduce((sum, { pid }) => sum + ticks(pid), 0);

/** Until these processes did next to nothing for a second. */
const quiet = (list) =>
  until("the processes to be idle", async () => {
    const before = work(list());
    await pause(1_000);
    return work(list()) - before <= 1;
  }, 60_000);

const desktop = await openDesktop();
// The quickest and leanest way to draw where there is no graphics card; the same for both.
const env = { ...desktop.env, WEBKIT_DISABLE_DMABUF_RENDERER: "1" };

async function started(which) {
  const home = freshHome({ settings: { welcomed: true }, granted: false });
  const began = Date.now();
  const made = start(which === "app" ? app : empty, [], { env: { ...env, ...home.env } });
  const text = () => (which === "app" ? log(home) : made.lines.join("\n"));
  const painted = await until("the first paint", () => stamp(text(), "painted"));
  return { made, home, ms: painted - began };
}

async function starts() {
  const found = { app: [], empty: [] };
  for (let round = 0; round <= STARTS; round += 1) {
    for (const which of ["app", "empty"]) {
      const { made, home, ms } = await started(which);
      // The first round only warms the page cache.
      if (round > 0) found[which].push(ms);
      await made.stop();
      home.remove();
    }
  }
  return { app: median(found.app), empty: median(found.empty) };
}

async function memory(which) {
  const { made, home } = await started(which);
  await quiet(() => tree(made.pid));
  const all = tree(made.pid).map(({ pid, name }) => ({ name, mb: pss(pid) }));
  await made.stop();
  home.remove();
  return { mb: all.reduce((sum, { mb }) => sum + mb, 0), all };
}

/** An answer as models write them: paragraphs, a list, a piece of code, again and again. */
function answer() {
  const part = (n) => `## Part ${n}\n\nThe **${n}th** paragraph says something in plain words, with \`code\` in it and a [link](https://example.org/${n}), and goes on for a while so that it wraps over several lines of the window.\n\n- one thing to do\n- another thing, a little longer than the first\n- the last\n\n\`\`\`js\nfor (const item of list) {\n  console.log(item, ${n});\n}\n\`\`\`\n\n`;
  let text = "";
  for (let n = 1; text.length < CHARACTERS; n += 1) text += part(n);
  return text.slice(0, CHARACTERS);
}

const web = (page) => tree(page.pid).filter(({ name }) => name.startsWith("WebKitWebProces"));

async function streamed(text) {
  const model = await openModel();
  let sent;
  const all = new Promise((resolve) => (sent = resolve));
  model.next(async (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, reason = null) => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
    for (let at = 0, next = Date.now(); at < text.length; at += 50) {
      send({ content: text.slice(at, at + 50) });
      next += 50;
      await pause(Math.max(0, next - Date.now()));
    }
    send({}, "stop");
    response.end("data: [DONE]\n\n");
    sent();
  });
  const home = freshHome({ model: model.url, granted: false });
  const page = await drive(app, { ...env, ...home.env });
  await page.has('[data-testid="app"][data-state="ready"]');
  await page.type("composer", "Go");
  await quiet(() => web(page));
  const before = work(web(page));
  await page.click("send");
  await all;
  await quiet(() => web(page));
  const after = work(web(page));
  await page.has('[data-testid="message"][data-role="assistant"][data-status="complete"]');
  await page.close();
  await model.close();
  home.remove();
  return (after - before) / 100;
}

async function floor(file) {
  const page = await drive(empty, { ...env, EMPTY_STREAM: file });
  const list = web(page);
  const before = work(list);
  await page.driver.line(/streamed/, 60_000);
  await quiet(() => web(page));
  const after = work(web(page));
  await page.close();
  return (after - before) / 100;
}

const report = [];
const row = (what, ours, theirs, verdict) => report.push(`${what.padEnd(44)} ${ours.padStart(10)} ${theirs.padStart(10)}   ${verdict}`);
const ratio = (a, b, limit) => `${(a / b).toFixed(2)}x (at most ${limit}x)${a / b > limit ? "  OVER" : ""}`;
try {
  const paint = await starts();
  row("first paint, ms", paint.app.toFixed(0), paint.empty.toFixed(0), ratio(paint.app, paint.empty, 1.5));

  const idle = { app: await memory("app"), empty: await memory("empty") };
  const more = idle.app.mb - idle.empty.mb;
  row("idle memory (PSS, all processes), MB", idle.app.mb.toFixed(0), idle.empty.mb.toFixed(0), `+${more.toFixed(0)} MB (at most +25)${more > 25 ? "  OVER" : ""}`);
  for (const which of ["app", "empty"]) report.push(`    ${which}: ${idle[which].all.map(({ name, mb }) => `${name} ${mb.toFixed(0)}`).join(", ")}`);

  const folder = mkdtempSync(join(tmpdir(), "parley-bench-"));
  const file = join(folder, "answer.md");
  writeFileSync(file, answer());
  const stream = { app: [], floor: [] };
  for (let round = 0; round < STREAMS; round += 1) {
    stream.app.push(await streamed(answer()));
    stream.floor.push(await floor(file));
  }
  rmSync(folder, { recursive: true });
  const [ours, theirs] = [median(stream.app), median(stream.floor)];
  row("20,000 characters streamed, web process CPU s", ours.toFixed(2), theirs.toFixed(2), ratio(ours, theirs, 1.4));
} finally {
  await desktop.close();
}
console.log(`${"".padEnd(44)} ${"app".padStart(10)} ${"floor".padStart(10)}`);
console.log(report.join("\n"));
process.exitCode = report.some((line) => line.endsWith("OVER")) ? 1 : 0;
