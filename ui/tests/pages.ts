import type { AppError, AuditRow, Level, LogLine, Model, Policy, Server, ServerDetail, Snapshot, ToolInfo } from "@/contract/index.ts";
import { ScriptedHost } from "@/host/scripted.ts";
import { appError, conversation, model, NOW, server, snapshot } from "./fixtures.ts";

export const nodeMissing: AppError = appError({
  code: "server.program_missing",
  params: { server: "Calendar", program: "npx" },
  cause: "npx: no such file or directory (os error 2)",
  actions: [{ type: "openUrl", url: "https://nodejs.org/" }, { type: "restartServer", server: "calendar" }],
});

/** One connection of each state, the failing one not first, as the file may have it. */
export const servers: Server[] = [
  server({
    roots: [
      { path: "/home/mira/House", name: "House", missing: false },
      { path: "/home/mira/Photos", name: "Photos", missing: false },
      { path: "/home/mira/Old desk", name: "Old desk", missing: true },
    ],
  }),
  server({ id: "mail", title: "Mail", builtIn: false, status: "sign-in", transport: "http", roots: [], toolCount: 0 }),
  server({ id: "calendar", title: "Calendar", builtIn: false, status: "failed", error: nodeMissing, roots: [], toolCount: 0 }),
  server({ id: "notes", title: "Notes", builtIn: false, status: "ready", roots: [{ path: "/home/mira/Notes", name: "Notes", missing: false }], toolCount: 12, skippedCount: 1 }),
  server({ id: "photos", title: "Photos", builtIn: false, status: "starting", roots: [], toolCount: 0 }),
  server({ id: "shop-2", title: "Shop", builtIn: false, status: "off", roots: [], toolCount: 0 }),
];

function tool(name: string, title: string, level: Level, rule: ToolInfo["rule"] = "ask", claimed = false): ToolInfo {
  const rules: ToolInfo["rules"] = level === "L3" ? ["ask", "never"] : level === "L2" ? ["ask", "never"] : ["ask", "always", "never"];
  return { name, title, description: null, level, claimed, rule, rules };
}

export const details: Record<string, Omit<ServerDetail, "server">> = {
  files: {
    tools: [
      tool("list_folder", "List folder", "L0", "always"),
      tool("read_file", "Read file", "L1"),
      tool("write_file", "Write file", "L2"),
      tool("trash_file", "Trash file", "L3"),
      tool("find_files", "Find files", "L0"),
      tool("search_text", "Search text", "L1"),
      tool("move_file", "Move file", "L2", "never"),
    ],
    skipped: [],
    instructions: null,
    name: "parley-files",
    version: "0.1.0",
    revision: "2025-11-25",
    command: [],
  },
  notes: {
    tools: [
      tool("search", "Search your notes", "L1", "ask", true),
      tool("send_page", "Send a page", "L2", "never"),
      tool("rtl", "ابحث في الملاحظات عن كلمة", "L2"),
      tool("long", "A tool whose title is so very long that nobody would ever read it to its end, and which goes on and on and on", "L2"),
      tool("extra", "Extra", "L2"),
    ],
    skipped: [{ kind: "tool", name: "make_table", reason: "inputSchema is not an object: expected an object at line 1 column 14" }],
    instructions:
      "Notes keeps your pages. Search before you write.\nPages have a title and tags.\nTags start with #.\nAsk before you send a page.\nA page may be long.\nOld pages are read only.\nThis is the seventh line, and it is beyond what is shown at once.",
    name: "notes-connector",
    version: "2.1.0",
    revision: "2025-06-18",
    command: ["npx", "-y", "@notes/connector@2.1.0", "--dir", "/home/mira/My Notes"],
  },
};

export const log: LogLine[] = [
  { at: NOW - 60_000, source: "app", text: "ready in 84 ms" },
  { at: NOW - 40_000, source: "stderr", text: "WARN  deprecated option --dir, use --root\n    at Object.<anonymous> (index.js:12)" },
  { at: NOW - 20_000, source: "noise", text: "listening" },
];

export function policy(over: Partial<Policy> = {}): Policy {
  return {
    id: "p1",
    effect: "allow",
    kind: "tool",
    server: "files",
    tool: "list_folder",
    conversationId: null,
    fingerprint: "f",
    createdAt: NOW - 18 * 86_400_000,
    lastUsedAt: NOW - 2 * 3_600_000,
    ...over,
  };
}

export const policies: Policy[] = [
  policy(),
  policy({ id: "p2", tool: "read_file", conversationId: "c1", createdAt: NOW - 180_000, lastUsedAt: NOW - 120_000 }),
  policy({ id: "p3", server: "notes", tool: "send_page", effect: "deny", createdAt: NOW - 9 * 86_400_000, lastUsedAt: null }),
  policy({ id: "p4", server: "notes", kind: "launch", tool: null, createdAt: NOW - 27 * 86_400_000, lastUsedAt: NOW - 5 * 3_600_000 }),
  policy({ id: "p5", server: "post", kind: "connect", tool: null, createdAt: NOW - 400 * 86_400_000, lastUsedAt: NOW - 40 * 86_400_000 }),
];

export function auditRow(over: Partial<AuditRow> = {}): AuditRow {
  return {
    id: 1204,
    at: NOW - 120_000,
    actor: "person",
    kind: "tool",
    server: "files",
    tool: "read_file",
    conversationId: "c1",
    outcome: "allowed",
    object: "Offer Solvent.docx",
    reader: "Qwen 1.5B",
    ...over,
  };
}

export const audit: AuditRow[] = [
  auditRow(),
  auditRow({ id: 1203, at: NOW - 180_000, actor: "policy", object: "Offer Brandt.pdf", conversationId: "gone" }),
  auditRow({ id: 1202, at: NOW - 3_000_000, server: "notes", tool: "send_page", object: null, actor: "policy", outcome: "denied", reader: null }),
  auditRow({ id: 1201, at: NOW - 9_000_000, server: "calendar", kind: "launch", tool: null, object: "npx", outcome: "denied", reader: null, conversationId: null }),
  auditRow({ id: 1200, at: NOW - 9_600_000, server: "notes", kind: "launch", tool: null, object: "npx", reader: null, conversationId: null }),
  auditRow({ id: 1199, at: NOW - 19 * 3_600_000, tool: "trash_file", object: "Offers (old)", outcome: "withdrawn", actor: "app", reader: null }),
  auditRow({ id: 1198, at: NOW - 20 * 3_600_000, tool: "write_file", object: "Comparison.md", outcome: "turnStopped", actor: "app", reader: null }),
  auditRow({ id: 1197, at: NOW - 21 * 3_600_000, server: "post", kind: "connect", tool: null, object: "mcp.post.example", outcome: "expired", actor: "app", reader: null, conversationId: null }),
];

export const deepseek: Model = model({
  id: "deepseek",
  provider: "openai-compatible",
  title: "DeepSeek Chat",
  name: "deepseek-chat",
  baseUrl: "https://api.deepseek.com/v1",
  host: "api.deepseek.com",
  local: false,
  hasKey: true,
  onDevice: null,
});

export const models: Model[] = [
  model({ title: "Qwen Coder 1.5B", onDevice: { state: "ready", firstTokenMs: 820, tokensPerSecond: 11.6 } }),
  deepseek,
  model({ id: "ollama", provider: "openai-compatible", title: "qwen3:8b", name: "qwen3:8b", baseUrl: "http://127.0.0.1:11434/v1", host: "127.0.0.1:11434", local: true, onDevice: null }),
];

/** An engine that answers what the pages ask. */
export function pagesHost(over: Partial<Snapshot> = {}): ScriptedHost {
  const shot = snapshot({
    servers,
    models: { models, active: "qwen" },
    conversations: [conversation("c1", "Heating offers"), conversation("c2", "Letter to the landlord", NOW - 86_400_000)],
    ...over,
  });
  return new ScriptedHost(shot, {
    server_detail: ({ id }) => {
      const own = shot.servers.find((one) => one.id === id) ?? server({ id });
      return { server: own, ...(details[id] ?? { tools: [], skipped: [], instructions: null, name: null, version: null, revision: null, command: id === "calendar" ? ["npx", "-y", "calendar-mcp"] : [] }) };
    },
    server_log: () => log,
    policy_list: () => policies,
    audit_list: ({ before, text }) => (before === null ? audit.filter((row) => text === null || (row.object ?? "").includes(text)) : []),
    root_pick: () => "/home/mira/Letters",
    model_save: () => "new-model",
    model_test: () => ({ ok: true, error: null, firstTokenMs: 640 }),
    model_try: () => ({ ok: true, error: null, firstTokenMs: 640 }),
  });
}
