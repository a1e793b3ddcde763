import type { AppError, CommandMap, FeedMessage } from "@/contract/index.ts";
import { HostError, ownError, toAppError, type Command, type Host } from "./index.ts";

type Incoming = { feed: FeedMessage } | { id: number; ok: unknown } | { id: number; error: unknown };

interface Waiting {
  resolve: (value: never) => void;
  reject: (error: HostError) => void;
}

/**
 * The engine behind a WebSocket, for development and browser tests. The page came with a cookie that lets it in.
 * @param address where the socket is; http(s) is read as ws(s)
 */
export function socketHost(address: URL): Host {
  const url = new URL(address);
  url.protocol = url.protocol.replace("http", "ws");

  let socket: Promise<WebSocket> | null = null;
  let lastId = 0;
  let generation = 0;
  let hear: (message: FeedMessage) => void = () => {};
  let lost: (error: AppError) => void = () => {};
  const waiting = new Map<number, Waiting>();

  function dropAll(cause: string) {
    socket = null;
    const error = ownError(cause);
    for (const one of waiting.values()) one.reject(new HostError(error));
    waiting.clear();
    lost(error);
  }

  function connect(): Promise<WebSocket> {
    socket ??= new Promise((resolve, reject) => {
      const opening = new WebSocket(url);
      opening.onopen = () => resolve(opening);
      opening.onmessage = (event) => receive(JSON.parse(String(event.data)) as Incoming);
      opening.onclose = (event) => {
        const cause = `The line closed (${event.code}).`;
        reject(new HostError(ownError(cause)));
        dropAll(cause);
      };
    });
    return socket;
  }

  function receive(message: Incoming) {
    if ("feed" in message) {
      hear(message.feed);
      return;
    }
    const one = waiting.get(message.id);
    waiting.delete(message.id);
    if (!one) return;
    if ("error" in message) one.reject(new HostError(toAppError(message.error)));
    else one.resolve(message.ok as never);
  }

  async function send<Name extends Command | "subscribe">(name: Name, params: unknown): Promise<never> {
    const open = await connect();
    lastId += 1;
    const id = lastId;
    const reply = new Promise<never>((resolve, reject) => waiting.set(id, { resolve, reject }));
    open.send(JSON.stringify({ id, name, params }));
    return reply;
  }

  return {
    rpc: <Name extends Command>(name: Name, params: CommandMap[Name]["params"]) => send(name, params),
    async subscribe(onMessage, onLost) {
      generation += 1;
      const own = generation;
      // Set before anything is sent, so that the snapshot finds its listener.
      hear = (message) => {
        if (own === generation) onMessage(message);
      };
      lost = onLost;
      await send("subscribe", {});
    },
  };
}
