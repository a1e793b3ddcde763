// Runs each client over each mode, one process for each, and prints the scores. `ONLY` is a
// regular expression of modes, `JOBS` how many run at a time.
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const nasty = process.env.NASTY ?? "target/release/nasty";
const commands = {
  rmcp: [`${nasty}-rmcp`],
  typescript: ["node", "tests/interop/clients/typescript.mjs"],
  python: ["target/interop-venv/bin/python", "tests/interop/clients/python.py"],
};
// Beyond every limit of the table: who is still at it hangs.
const hung = 60_000;
const memory = 1_500_000;
const results = "test-results/interop";

const { modes, ...constants } = JSON.parse(execFileSync(nasty, ["--list"], { maxBuffer: 1 << 26 }));
const only = new RegExp(process.env.ONLY ?? ".");
const wanted = modes.filter((mode) => only.test(mode.name));
const temporary = mkdtempSync(join(tmpdir(), "nasty-"));
mkdirSync(results, { recursive: true });

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether the process runs; one that nobody has waited for has ended. */
function runs(pid) {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function resident(pid) {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Serves an HTTP mode. */
async function serve(mode) {
  const child = spawn(nasty, [mode.name], { stdio: ["pipe", "pipe", "ignore"] });
  const url = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.stdout.once("data", (line) => resolve(String(line).trim().replace("listening ", "")));
  });
  return { child, url };
}

async function run(client, mode, number) {
  const pids = join(temporary, `${client}-${number}.pids`);
  const server = mode.transport === "http" ? await serve(mode) : undefined;
  const target = server ? { url: server.url } : { command: nasty, args: [mode.name, pids] };
  const file = join(temporary, `${client}-${number}.json`);
  writeFileSync(file, JSON.stringify({ mode, target, ...constants }));
  const [program, ...args] = commands[client];
  const child = spawn(program, [...args, file], { stdio: ["ignore", "pipe", "ignore"] });
  let said = "";
  let ended = "ended without a word";
  child.stdout.on("data", (text) => {
    said += text;
  });
  const kill = (why) => {
    ended = why;
    child.kill("SIGKILL");
  };
  const clock = setTimeout(() => kill("hung"), hung);
  const watch = setInterval(() => {
    if (resident(child.pid) > memory) kill("took more than 1.5 GB of memory");
  }, 200);
  await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(clock);
  clearInterval(watch);
  let outcome;
  try {
    outcome = JSON.parse(said.trim().split("\n").at(-1));
  } catch {
    outcome = { ok: false, why: ended, ms: 0 };
  }
  server?.child.kill("SIGKILL");
  const left = () => {
    try {
      return readFileSync(pids, "utf8").split("\n").filter(Boolean).filter(runs);
    } catch {
      return [];
    }
  };
  const end = Date.now() + constants.ends_within_ms;
  while (left().length && Date.now() < end) await pause(50);
  const survivors = left();
  for (const pid of survivors) process.kill(Number(pid), "SIGKILL");
  if (survivors.length && outcome.ok) {
    outcome = { ...outcome, ok: false, why: `left ${survivors.length} process(es) behind` };
  }
  return { client, mode: mode.name, transport: mode.transport, ...outcome };
}

const rows = [];
for (const client of process.argv.slice(2)) {
  const log = join(results, `${client}.jsonl`);
  rmSync(log, { force: true });
  const scores = { stdio: [0, 0], http: [0, 0] };
  let next = 0;
  const worker = async () => {
    while (next < wanted.length) {
      const number = next++;
      const outcome = await run(client, wanted[number], number);
      scores[outcome.transport][1] += 1;
      if (outcome.ok) scores[outcome.transport][0] += 1;
      appendFileSync(log, `${JSON.stringify(outcome)}\n`);
    }
  };
  await Promise.all(Array.from({ length: Number(process.env.JOBS ?? 2) }, worker));
  rows.push([client, ...["stdio", "http"].map((transport) => scores[transport].join("/"))]);
}
rmSync(temporary, { recursive: true });
console.log("client       stdio      HTTP");
for (const [client, stdio, http] of rows) console.log(client.padEnd(12), stdio.padEnd(10), http);
