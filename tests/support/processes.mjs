// Starting programs, ending them, and looking at what still runs. Everything ends by its own id.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { createServer } from "node:net";
import { until, within } from "./wait.mjs";

const running = new Set();
// A test file that ends early leaves nothing behind.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** Starts a program. `lines` collects its output; `line(pattern)` waits for one. */
export function start(program, args = [], options = {}) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"], ...options });
  running.add(child);
  child.on("exit", () => running.delete(child));
  const lines = [];
  const waiting = new Set();
  for (const stream of [child.stdout, child.stderr, child.stdio[3]].filter((stream) => stream?.readable)) {
    createInterface({ input: stream }).on("line", (line) => {
      lines.push(line);
      for (const look of waiting) look(line);
    });
  }
  const ended = new Promise((resolve) => {
    child.on("error", (error) => resolve({ error }));
    child.on("exit", (code, signal) => resolve({ code, signal }));
  });
  const line = (pattern, limit = 15_000) =>
    within(`${program} to print ${pattern}`, new Promise((resolve, reject) => {
      const look = (text) => pattern.test(text) && (waiting.delete(look), resolve(text));
      const before = lines.find((text) => pattern.test(text));
      if (before !== undefined) return resolve(before);
      waiting.add(look);
      ended.then((end) => reject(new Error(`${program} ended: ${JSON.stringify(end)}\n${lines.join("\n")}`)));
    }), limit);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    try {
      await within(`${program} to end`, ended, 6_000);
    } catch {
      child.kill("SIGKILL");
      await ended;
    }
  };
  return { child, pid: child.pid, lines, line, ended, stop };
}

/** A loopback port that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** `{pid, parent, state, name}` of every process. */
function processes() {
  const found = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const end = stat.lastIndexOf(")");
      const [state, parent] = stat.slice(end + 2).split(" ");
      found.push({ pid: Number(pid), parent: Number(parent), state, name: stat.slice(stat.indexOf("(") + 1, end) });
    } catch {
      // It ended while we looked.
    }
  }
  return found;
}

/** A process and all below it, without the dead. */
export function tree(pid) {
  const all = processes().filter(({ state }) => state !== "Z");
  const inside = new Set([pid]);
  for (let grew = true; grew; ) {
    grew = false;
    for (const { pid: id, parent } of all) {
      if (inside.has(parent) && !inside.has(id)) grew = inside.add(id) && true;
    }
  }
  return all.filter(({ pid: id }) => inside.has(id));
}

/** Processes that carry `NAME=value` in their environment, wherever they hang. */
export function withEnvironment(entry) {
  return processes().filter(({ pid, state }) => {
    if (state === "Z" || pid === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(entry);
    } catch {
      return false;
    }
  });
}

/** Waits until none of these processes runs any more. */
export function gone(list, limit = 5_000) {
  const alive = () => processes().filter((now) => now.state !== "Z" && list.some(({ pid, name }) => now.pid === pid && now.name === name));
  return until(`the end of ${list.map(({ pid, name }) => `${name} (${pid})`).join(", ")}`, () => alive().length === 0, limit);
}
