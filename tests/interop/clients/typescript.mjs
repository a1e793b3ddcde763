// Drives the TypeScript SDK's client over one mode and prints what came of it as one line of JSON.
// Usage: node typescript.mjs <file with JSON of {mode, target, echo_text, patience_ms, total_ms}>
import { readFileSync } from "node:fs";
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { mode, target, echo_text: echoText, patience_ms: patience, total_ms: total } = given;
const options = { timeout: patience, resetTimeoutOnProgress: true, maxTotalTimeout: total, onprogress() {} };
const quick = { timeout: patience };
const open = new Set();

class Wrong extends Error {}

function within(ms, work, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Wrong(`${what} took more than ${ms} ms`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

async function connect() {
  const client = new Client(
    { name: "typescript", version: "1.0.0" },
    { versionNegotiation: { mode: "auto", probe: { timeoutMs: 2_000 } } },
  );
  open.add(client);
  const transport = target.command
    ? new StdioClientTransport({ command: target.command, args: target.args, stderr: "ignore" })
    : mode.name.startsWith("old-sse")
      ? new SSEClientTransport(new URL(target.url))
      : new StreamableHTTPClientTransport(new URL(target.url));
  await client.connect(transport, quick);
  const { tools } = await client.listTools(undefined, quick);
  return { client, tools: tools.map((tool) => tool.name) };
}

function textOf(result) {
  const texts = (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text);
  if (result.structuredContent !== undefined) texts.push(JSON.stringify(result.structuredContent));
  return texts.join("\n");
}

/** As sets: what to do with a name that is there twice is the app's, not the SDK's. */
function same(found, wanted) {
  const names = new Set(found);
  return names.size === wanted.length && wanted.every((name) => names.has(name));
}

async function echo(client) {
  const result = await within(
    patience + 2_000,
    client.callTool({ name: "echo", arguments: { text: echoText } }, options),
    "echo",
  );
  if (textOf(result) !== echoText) throw new Wrong(`echo gave ${JSON.stringify(result).slice(0, 200)}`);
}

function checkTools(tools) {
  const { exactly, including } = mode.tools;
  const fine = exactly ? same(tools, exactly) : including.every((name) => tools.includes(name));
  if (!fine) throw new Wrong(`the tools are ${JSON.stringify(tools).slice(0, 200)}`);
}

async function list(client, offer) {
  if (offer === "prompts") return (await client.listPrompts(undefined, quick)).prompts.map((one) => one.name);
  if (offer === "resources") return (await client.listResources(undefined, quick)).resources.map((one) => one.uri);
  const { resourceTemplates } = await client.listResourceTemplates(undefined, quick);
  return resourceTemplates.map((one) => one.uriTemplate);
}

async function judge() {
  const { expect } = mode;
  const connecting = expect.call ? 10_000 : expect.within_ms;
  if (expect.kind === "fails_plainly" || expect.kind === "ends") {
    let error;
    await within(connecting, connect(), "connecting").catch((caught) => {
      error = caught;
    });
    if (error instanceof Wrong) throw error;
    if (expect.kind === "fails_plainly" && !error) throw new Wrong("it connected");
    return;
  }
  const { client, tools } = await within(connecting, connect(), "connecting");
  checkTools(tools);
  if (!expect.call) {
    await echo(client);
    if (expect.kind === "lists") {
      const names = await within(expect.within_ms, list(client, expect.offer), "listing");
      if (!same(names, expect.names)) throw new Wrong(`the list is ${JSON.stringify(names).slice(0, 200)}`);
    }
    return;
  }
  const { tool, arguments: args } = expect.call;
  const request = args === null ? { name: tool } : { name: tool, arguments: args };
  let error;
  let result;
  try {
    result = await within(expect.within_ms, client.callTool(request, options), "the call");
  } catch (caught) {
    if (caught instanceof Wrong) throw caught;
    error = caught;
  }
  if (expect.kind === "call_fails" && result && !result.isError) throw new Wrong(`the call gave ${JSON.stringify(result).slice(0, 200)}`);
  if (expect.kind === "call_works") {
    if (error) throw new Wrong(`the call failed: ${error.message}`);
    if (!textOf(result).includes(expect.text)) throw new Wrong(`the call gave ${JSON.stringify(result).slice(0, 200)}`);
  }
  if (expect.then === "echo_after_restart") {
    await within(3_000, client.close(), "closing").catch(() => {});
    const again = await within(10_000, connect(), "connecting again");
    await echo(again.client);
  } else {
    await echo(client);
  }
}

const begun = Date.now();
let why = "";
process.on("uncaughtException", (error) => {
  why ||= `crashed: ${error.message}`;
});
process.on("unhandledRejection", (error) => {
  why ||= `crashed: ${error?.message}`;
});
try {
  await judge();
} catch (error) {
  why = error.message || String(error);
}
for (const client of open) {
  await within(6_000, client.close(), "closing").catch((error) => {
    if (error instanceof Wrong) why ||= error.message;
  });
}
process.stdout.write(`${JSON.stringify({ ok: !why, why: why.slice(0, 300), ms: Date.now() - begun })}\n`, () => process.exit(0));
