// A model service that says what the test tells it to, over chat completions.
import { createServer } from "node:http";
import { until } from "./wait.mjs";

const piece = (delta, finish = null) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const begin = (response) => response.writeHead(200, { "content-type": "text/event-stream" });
const finish = (response, reason) => response.end(`${piece({}, reason)}data: [DONE]\n\n`);

/** Says `text` in a few pieces. */
export const say = (text, pieces = 4) => (response) => {
  begin(response);
  const size = Math.max(1, Math.ceil(text.length / pieces));
  for (let at = 0; at < text.length; at += size) response.write(piece({ content: text.slice(at, at + size) }));
  finish(response, "stop");
};

/** Wants a tool. `args` may be text, to send what is no JSON. */
export const want = (name, args, id = "call_1") => (response) => {
  begin(response);
  const text = typeof args === "string" ? args : JSON.stringify(args);
  const half = Math.ceil(text.length / 2);
  const call = (part) => piece({ tool_calls: [{ index: 0, ...part }] });
  response.write(call({ id, type: "function", function: { name, arguments: "" } }));
  response.write(call({ function: { arguments: text.slice(0, half) } }));
  response.write(call({ function: { arguments: text.slice(half) } }));
  finish(response, "tool_calls");
};

/** Says `text` and then nothing more, until the other side hangs up. */
export const hang = (text) => (response) => {
  begin(response);
  response.write(piece({ content: text }));
};

/** Says `text` and drops the line. */
export const cut = (text) => (response) => {
  begin(response);
  response.write(piece({ content: text }), () => response.destroy());
};

/** Refuses. */
export const refuse = (status, message, headers = {}) => (response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message, type: "test", code: String(status) } }));
};

/** Starts it. `next(...scripts)` queues what it does; `requests` is what it was sent. */
export async function openModel() {
  const queue = [];
  const requests = [];
  let hungUp = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    if (request.method !== "POST") return response.writeHead(200, { "content-type": "application/json" }).end('{"object":"list","data":[{"id":"peer"}]}');
    requests.push({ url: request.url, authorization: request.headers.authorization, ...JSON.parse(body) });
    response.on("close", () => response.writableEnded || (hungUp += 1));
    (queue.shift() ?? say("I have nothing to say."))(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    next: (...scripts) => queue.push(...scripts),
    /** Forgets what is queued. */
    clear: () => queue.splice(0),
    /** Until the other side has hung up on a reply for the `count`th time. */
    hungUp: (count = 1) => until("the app to hang up on the model", () => hungUp >= count),
    close: () => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))),
  };
}
