import type {
  AppError, Ask, AskSubject, Conversation, DataReader, Item, ItemBody, Model, Server, Snapshot, ToolCall, Turn,
} from "@/contract/index.ts";

/** Monday, 30 November 2026, 14:05 in UTC. */
export const NOW = Date.UTC(2026, 10, 30, 14, 5);

export const local: DataReader = { model: "Qwen 1.5B", local: true, host: null };
export const remote: DataReader = { model: "DeepSeek Chat", local: false, host: "api.deepseek.com" };

export function conversation(id: string, title: string, updatedAt = NOW): Conversation {
  return { id, title, createdAt: updatedAt, updatedAt };
}

export function turn(conversationId: string, status: Turn["status"] = "running", error: AppError | null = null): Turn {
  return { id: `turn-${conversationId}`, conversationId, status, error, startedAt: NOW - 20_000, endedAt: status === "running" ? null : NOW };
}

export function item(conversationId: string, ordinal: number, body: ItemBody, status: Item["status"] = "complete"): Item {
  return {
    id: `${conversationId}-${ordinal}`,
    conversationId,
    turnId: `turn-${conversationId}`,
    ordinal,
    status,
    createdAt: NOW - 20_000,
    completedAt: status === "streaming" ? null : NOW,
    body,
  };
}

export function toolCall(over: Partial<ToolCall> = {}): ItemBody {
  return {
    kind: "toolCall",
    callId: "call-1",
    server: "files",
    serverTitle: "Files",
    builtIn: true,
    tool: "read_file",
    title: "Read a document",
    arguments: { path: "/home/mira/House/Offers/Offer Brandt.pdf" },
    level: "L1",
    status: "done",
    progress: null,
    result: { parts: [{ type: "text", text: "Heat pump, 6 kW.", blob: null }], shortenedFrom: null },
    error: null,
    startedAt: NOW - 900,
    endedAt: NOW - 500,
    ...over,
  };
}

export function server(over: Partial<Server> = {}): Server {
  return {
    id: "files",
    title: "Files",
    builtIn: true,
    status: "ready",
    error: null,
    toolCount: 7,
    skippedCount: 0,
    roots: [{ path: "/home/mira/House", name: "House", missing: false }],
    transport: "stdio",
    ...over,
  };
}

export function model(over: Partial<Model> = {}): Model {
  return {
    id: "qwen",
    provider: "local",
    title: "Qwen 1.5B",
    name: "qwen2.5-coder-1.5b",
    baseUrl: null,
    host: null,
    local: true,
    hasKey: false,
    keySessionOnly: false,
    keyMissing: false,
    onDevice: { state: "ready", firstTokenMs: 400, tokensPerSecond: 12 },
    ...over,
  };
}

export function toolSubject(over: Partial<Extract<AskSubject, { kind: "tool" }>> = {}): AskSubject {
  return {
    kind: "tool",
    tool: "read_file",
    title: "Read a document",
    description: "Reads one document.",
    arguments: { path: "/home/mira/House/Offers/Offer Solvent.docx" },
    target: { crumbs: ["House", "Offers", "Offer Solvent.docx"], isFolder: false, bytes: 84_000 },
    destination: null,
    claimed: false,
    reader: local,
    changed: false,
    ...over,
  };
}

export function ask(over: Partial<Ask> = {}): Ask {
  return {
    id: "ask-1",
    conversationId: "c1",
    itemId: null,
    server: "files",
    serverTitle: "Files",
    builtIn: true,
    level: "L1",
    options: ["deny", "allowOnce", "allowChat", "allowAlways", "never"],
    subject: toolSubject(),
    openedAt: NOW,
    ...over,
  };
}

export function launchAsk(over: Partial<Ask> = {}): Ask {
  return ask({
    id: "ask-launch",
    conversationId: null,
    server: "notes",
    serverTitle: "Notes",
    builtIn: false,
    level: "L2",
    options: ["deny", "allowAlways"],
    subject: {
      kind: "launch",
      command: ["npx", "-y", "@notes/connector@2.1.0", "--dir", "/home/mira/Notes"],
      program: "/usr/bin/npx",
      cwd: null,
      env: ["NOTES_TOKEN"],
      loaders: [],
      changed: false,
    },
    ...over,
  });
}

export function connectAsk(over: Partial<Ask> = {}): Ask {
  return ask({
    id: "ask-connect",
    conversationId: null,
    server: "post",
    serverTitle: "Post",
    builtIn: false,
    level: "L2",
    options: ["deny", "allowAlways"],
    subject: { kind: "connect", url: "https://mcp.post.example/v1/mcp", host: "mcp.post.example", headers: ["Authorization"], changed: false },
    ...over,
  });
}

export function appError(over: Partial<AppError> = {}): AppError {
  return {
    code: "model.stream_cut",
    params: { model: "DeepSeek" },
    cause: "connection reset by api.deepseek.com",
    actions: [{ type: "continue" }, { type: "retry" }],
    retryable: true,
    traceId: "01JDYQ7M3K",
    ...over,
  };
}

export function snapshot(over: Partial<Snapshot> = {}): Snapshot {
  return {
    seq: 1,
    conversations: [conversation("c1", "Heating offers")],
    turns: [],
    asks: [],
    servers: [server()],
    models: { models: [model(), model({ id: "deepseek", provider: "openai-compatible", title: "DeepSeek Chat", name: "deepseek-chat", local: false, host: "api.deepseek.com", baseUrl: "https://api.deepseek.com/v1", hasKey: true, onDevice: null })], active: "qwen" },
    settings: { language: "system", effectiveLanguage: "en", theme: "system", welcomed: true },
    notices: [],
    app: { version: "0.1.0", picksFolders: true },
    ...over,
  };
}
