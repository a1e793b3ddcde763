// Generated from src-tauri/crates/contract; `UPDATE=1 cargo test -p parley-architecture` writes it anew.

export type Action = { "type": "retry" } | { "type": "continue" } | { "type": "restartServer", server: ServerId, } | { "type": "showLog", server: ServerId, } | { "type": "openPage", page: Page, } | { "type": "chooseFolder", server: ServerId, } | { "type": "removeFolder", server: ServerId, path: string, } | { "type": "checkKey", model: ModelId, } | { "type": "useModel", model: ModelId, } | { "type": "waitUntil", at: number, } | { "type": "openFile", path: string, line: number | null, } | { "type": "openUrl", url: string, };

export type AppError = { code: ErrorCode, 
/**
 * Values for the message: names, seconds, paths. Texts and numbers only.
 */
params: { [key in string]: JsonValue }, 
/**
 * The technical chain, secrets removed, shown behind "Details".
 */
cause: string | null, 
/**
 * What a person can do about it, the mending one first.
 */
actions: Array<Action>, 
/**
 * True when doing the same again may work.
 */
retryable: boolean, 
/**
 * Found again in the log under this number.
 */
traceId: string, };

export type AppInfo = { version: string, 
/**
 * False where there is no native folder picker: the UI offers a text field instead.
 */
picksFolders: boolean, };

export type Ask = { id: AskId, 
/**
 * The chat it belongs to; absent for what concerns no chat (starting a program).
 */
conversationId: ConversationId | null, 
/**
 * The tool call it belongs to.
 */
itemId: ItemId | null, server: ServerId, serverTitle: string, builtIn: boolean, level: Level, 
/**
 * What may be answered, in the order to show it. `Deny` is always among them.
 */
options: Array<AskOption>, subject: AskSubject, openedAt: number, };

export type AskAnswer = { "type": "choice", option: AskOption, };

export type AskAnswerParams = { id: AskId, answer: AskAnswer, };

export type AskId = string;

export type AskOption = "deny" | "allowOnce" | "allowChat" | "allowAlways" | "never";

export type AskOutcome = "allowed" | "denied" | "withdrawn" | "expired" | "turnStopped";

export type AskSubject = { "kind": "tool", 
/**
 * The server's own name of the tool.
 */
tool: string, 
/**
 * The server's title of it, or its name.
 */
title: string, 
/**
 * The server's description, quoted as its words.
 */
description: string | null, arguments: JsonValue, 
/**
 * The file or folder it is about, where the connection is ours and there is one.
 */
target: FileTarget | null, 
/**
 * The second one of a move.
 */
destination: FileTarget | null, 
/**
 * True when the level is the server's claim, not our knowledge.
 */
claimed: boolean, 
/**
 * Where the result goes.
 */
reader: DataReader, 
/**
 * The tool is not the one that was allowed before.
 */
changed: boolean, } | { "kind": "launch", 
/**
 * Program and arguments, whole, each as it will be passed.
 */
command: Array<string>, 
/**
 * The file the program was found in; absent when it was not found.
 */
program: string | null, cwd: string | null, 
/**
 * Names of the variables that are set, never their values.
 */
env: Array<string>, 
/**
 * Those of them that make a program load or run something else, with their values: part of what is started.
 */
loaders: Array<Variable>, 
/**
 * Something else of this name was allowed before.
 */
changed: boolean, } | { "kind": "connect", url: string, host: string, headers: Array<string>, changed: boolean, };

export type AuditActor = "person" | "policy" | "app";

export type AuditList = { before: number | null, text: string | null, };

export type AuditOutcome = "allowed" | "denied" | "withdrawn" | "expired" | "turnStopped";

export type AuditRow = { id: number, at: number, actor: AuditActor, kind: SubjectKind, server: ServerId, tool: string | null, conversationId: ConversationId | null, outcome: AuditOutcome, 
/**
 * What it was about in a word: a file name, a program. Never arguments or content.
 */
object: string | null, 
/**
 * Where the data went: a model's name, or nothing.
 */
reader: string | null, };

export type Batch = { seq: number, events: Array<Event>, };

export type BlobId = string;

export type BlobRead = { id: BlobId, };

export type CallStop = { itemId: ItemId, };

export type Conversation = { id: ConversationId, 
/**
 * Empty until the first message gives it one.
 */
title: string, createdAt: number, updatedAt: number, };

export type ConversationCreate = Record<symbol, never>;

export type ConversationDelete = { id: ConversationId, };

export type ConversationId = string;

export type ConversationOpen = { id: ConversationId, before: number | null, };

export type ConversationPage = { conversation: Conversation, items: Array<Item>, 
/**
 * Give it back as `before` for the items above; absent when these are the first.
 */
earlier: number | null, 
/**
 * The turn that runs now.
 */
turn: Turn | null, };

export type ConversationRename = { id: ConversationId, title: string, };

export type ConversationSearch = { text: string, };

export type DataReader = { 
/**
 * The model's name as the person knows it.
 */
model: string, 
/**
 * True when it runs on this computer.
 */
local: boolean, 
/**
 * Whose address it is otherwise.
 */
host: string | null, };

export type Done = Record<symbol, never>;

export type ErrorCode = "server.program_missing" | "server.exited" | "server.no_answer" | "server.garbage" | "server.too_large" | "server.refused" | "server.version" | "server.unreachable" | "server.untrusted" | "server.http" | "server.busy" | "server.sign_in" | "server.redirected" | "server.not_mcp" | "server.broken" | "server.needs" | "server.not_offered" | "server.resting" | "server.off" | "server.unknown" | "tool.unknown" | "tool.arguments" | "tool.timeout" | "tool.failed" | "launch.not_allowed" | "connect.not_allowed" | "ask.already_closed" | "ask.unanswered" | "ask.choice" | "model.key_refused" | "model.quota" | "model.rate_limited" | "model.offline" | "model.overloaded" | "model.stream_cut" | "model.no_answer" | "model.context_too_long" | "model.bad_request" | "model.unknown" | "model.garbage" | "model.none" | "model.file_missing" | "model.crashed" | "model.processor" | "model.memory" | "keychain.unavailable" | "keychain.locked" | "storage.full" | "storage.broken" | "storage.newer" | "storage.in_the_way" | "storage.not_writable" | "storage.in_use" | "config.broken" | "config.unreadable" | "config.entry" | "folder.gone" | "folder.refused" | "desktop.cannot_open" | "conversation.unknown" | "turn.running" | "turn.rounds" | "request.value" | "request.arguments" | "request.bad" | "internal";

export type Event = { "type": "conversationChanged", conversation: Conversation, } | { "type": "conversationRemoved", id: ConversationId, } | { "type": "turnStarted", turn: Turn, } | { "type": "itemStarted", item: Item, } | { "type": "textDelta", conversationId: ConversationId, itemId: ItemId, at: number, text: string, } | { "type": "progress", conversationId: ConversationId, itemId: ItemId, progress: Progress, } | { "type": "itemChanged", item: Item, } | { "type": "itemsRemoved", conversationId: ConversationId, after: number, } | { "type": "itemCompleted", item: Item, } | { "type": "turnCompleted", turn: Turn, } | { "type": "askOpened", ask: Ask, } | { "type": "askClosed", id: AskId, outcome: AskOutcome, } | { "type": "serversChanged", servers: Array<Server>, } | { "type": "serverChanged", server: Server, } | { "type": "serverLogged", id: ServerId, } | { "type": "modelsChanged", models: Models, } | { "type": "settingsChanged", settings: Settings, } | { "type": "noticesChanged", notices: Array<AppError>, } | { "type": "policiesChanged" } | { "type": "auditChanged" };

export type FeedMessage = { "type": "snapshot" } & Snapshot | { "type": "batch" } & Batch;

export type FileOpen = { path: string, };

export type FileTarget = { 
/**
 * The granted folder's own name, then the folders below it, then the file.
 */
crumbs: Array<string>, isFolder: boolean, 
/**
 * Absent when there is nothing there (yet).
 */
bytes: number | null, };

export type Item = { id: ItemId, conversationId: ConversationId, turnId: TurnId, 
/**
 * Rises within a chat; gaps are allowed.
 */
ordinal: number, status: ItemStatus, createdAt: number, completedAt: number | null, body: ItemBody, };

export type ItemBody = { "kind": "user", text: string, } | { "kind": "assistant", 
/**
 * Markdown, written by a model: data, never markup to trust.
 */
text: string, 
/**
 * The name of the model that wrote it, for the record.
 */
model: string, } | { "kind": "toolCall" } & ToolCall | { "kind": "notice", error: AppError, };

export type ItemId = string;

export type ItemStatus = "streaming" | "complete" | "interrupted" | "failed";

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

export type Language = "en" | "zh-CN";

export type LanguageChoice = "system" | "en" | "zh-CN";

export type Level = "L0" | "L1" | "L2" | "L3";

export type LogLine = { at: number, source: LogSource, text: string, };

export type LogSource = "stderr" | "noise" | "app";

export type Model = { id: ModelId, provider: Provider, 
/**
 * The name a person reads.
 */
title: string, 
/**
 * The service's name of the model.
 */
name: string, 
/**
 * What precedes `/chat/completions`; absent for a local one.
 */
baseUrl: string | null, 
/**
 * The host of `base_url`, with its port where one is named.
 */
host: string | null, 
/**
 * True for the model on this computer, and for an address of this computer. What the program at such an address
 * does with what it is told is its own affair.
 */
local: boolean, hasKey: boolean, 
/**
 * The key is in memory only, until the app quits.
 */
keySessionOnly: boolean, 
/**
 * It had a key that was kept until the app quit, and needs it again.
 */
keyMissing: boolean, 
/**
 * State of a local model's file and program; absent for others.
 */
onDevice: OnDevice | null, };

export type ModelDraft = { id: ModelId | null, provider: Provider, baseUrl: string, name: string, 
/**
 * A new key, or `env:NAME`; absent keeps the one that is there. It goes to the keychain and nowhere else.
 */
key: string | null, };

export type ModelId = string;

export type ModelRemove = { id: ModelId, };

export type ModelSave = { model: ModelDraft, sessionOnly: boolean, };

export type ModelTest = { ok: boolean, error: AppError | null, firstTokenMs: number | null, };

export type ModelTestParams = { id: ModelId, };

export type ModelTry = { model: ModelDraft, };

export type ModelUse = { id: ModelId, };

export type Models = { models: Array<Model>, active: ModelId | null, };

export type OnDevice = { "state": "absent" } | { "state": "idle" } | { "state": "loading" } | { "state": "ready", firstTokenMs: number | null, tokensPerSecond: number | null, } | { "state": "failed", error: AppError, };

export type OutputPart = { "type": "text", text: string, blob: BlobId | null, } | { "type": "data", json: JsonValue, } | { "type": "media", mime: string, blob: BlobId, } | { "type": "link", uri: string, name: string, } | { "type": "unsupported", what: string, };

export type Page = "chat" | "connections" | "permissions" | "activity" | "models" | "settings";

export type Policy = { id: PolicyId, effect: PolicyEffect, kind: SubjectKind, server: ServerId, 
/**
 * Absent for launch and connect.
 */
tool: string | null, 
/**
 * Absent: everywhere.
 */
conversationId: ConversationId | null, 
/**
 * Hash of the definition it was given for; a changed definition asks again.
 */
fingerprint: string, createdAt: number, lastUsedAt: number | null, };

export type PolicyEffect = "allow" | "deny";

export type PolicyId = string;

export type PolicyList = Record<symbol, never>;

export type PolicyRestore = { id: PolicyId, };

export type PolicyRevoke = { id: PolicyId, };

export type Progress = { 
/**
 * Rises; at most `total` where one is known.
 */
value: number, total: number | null, message: string | null, };

export type Provider = "anthropic" | "openai" | "gemini" | "ollama" | "openai-compatible" | "local";

export type Root = { 
/**
 * Absolute.
 */
path: string, 
/**
 * The folder's own name.
 */
name: string, 
/**
 * Not there any more.
 */
missing: boolean, };

export type RootAdd = { server: ServerId, path: string, };

export type RootPick = { server: ServerId, };

export type RootRemove = { server: ServerId, path: string, };

export type Server = { id: ServerId, 
/**
 * The server's own title where it has one, else the id.
 */
title: string, builtIn: boolean, status: ServerStatus, 
/**
 * Why, when `failed`; in any other state, what of its entry is not used, such as a refused folder.
 */
error: AppError | null, toolCount: number, 
/**
 * How many of its tools, prompts or resources could not be read.
 */
skippedCount: number, 
/**
 * Folders it may use, in the person's order.
 */
roots: Array<Root>, 
/**
 * How it is reached.
 */
transport: ServerTransport, };

export type ServerDetail = { server: Server, tools: Array<ToolInfo>, skipped: Array<SkippedEntry>, 
/**
 * The server's own words about itself.
 */
instructions: string | null, name: string | null, version: string | null, revision: string | null, 
/**
 * The command line or address, as configured.
 */
command: Array<string>, };

export type ServerDetailParams = { id: ServerId, };

export type ServerId = string;

export type ServerLog = { id: ServerId, };

export type ServerRemove = { id: ServerId, };

export type ServerRestart = { id: ServerId, };

export type ServerStatus = "off" | "starting" | "ready" | "sign-in" | "failed";

export type ServerToggle = { id: ServerId, on: boolean, };

export type ServerTransport = "stdio" | "http" | "sse";

export type Settings = { language: LanguageChoice, 
/**
 * What `language` comes to: the choice, else `PARLEY_LANG`, else the system's, else English.
 */
effectiveLanguage: Language, theme: Theme, 
/**
 * The welcome was seen.
 */
welcomed: boolean, };

export type SettingsChange = { language?: LanguageChoice, theme?: Theme, welcomed?: boolean, };

export type SettingsChangeParams = { change: SettingsChange, };

export type SkippedEntry = { kind: string, name: string, 
/**
 * English, technical, for "Details" and `doctor`.
 */
reason: string, };

export type Snapshot = { 
/**
 * The number of the last batch this already holds.
 */
seq: number, 
/**
 * Newest first.
 */
conversations: Array<Conversation>, turns: Array<Turn>, asks: Array<Ask>, servers: Array<Server>, models: Models, settings: Settings, 
/**
 * What is wrong with the app as a whole, such as a broken file.
 */
notices: Array<AppError>, app: AppInfo, };

export type SubjectKind = "tool" | "sampling" | "sampling-reply" | "form" | "url" | "launch" | "connect" | "sign-in" | "folder";

export type Theme = "system" | "light" | "dark";

export type ToolCall = { 
/**
 * The id the model gave the call, repeated to it with the result.
 */
callId: string, server: ServerId, serverTitle: string, 
/**
 * True for the connections we ship: the UI has its own words for their tools.
 */
builtIn: boolean, 
/**
 * The server's own name of the tool, `""` when the model named one that does not exist.
 */
tool: string, title: string, 
/**
 * As sent, or the model's raw text as a JSON string where it was no JSON.
 */
arguments: JsonValue, level: Level, status: ToolStatus, progress: Progress | null, result: ToolOutput | null, error: AppError | null, startedAt: number | null, endedAt: number | null, };

export type ToolInfo = { name: string, title: string, description: string | null, level: Level, claimed: boolean, rule: ToolRule, 
/**
 * Which rules the level allows, in order.
 */
rules: Array<ToolRule>, };

export type ToolOutput = { parts: Array<OutputPart>, 
/**
 * What the model was given, when it had to be shortened: the length of the whole in characters.
 */
shortenedFrom: number | null, };

export type ToolRule = "ask" | "always" | "never";

export type ToolRuleParams = { server: ServerId, tool: string, rule: ToolRule, };

export type ToolStatus = "pending" | "asking" | "running" | "done" | "error" | "declined" | "cancelled";

export type Turn = { id: TurnId, conversationId: ConversationId, status: TurnStatus, error: AppError | null, startedAt: number, endedAt: number | null, };

export type TurnId = string;

export type TurnRetry = { conversationId: ConversationId, continue: boolean, };

export type TurnStart = { conversationId: ConversationId, text: string, };

export type TurnStatus = "running" | "completed" | "interrupted" | "failed";

export type TurnStop = { conversationId: ConversationId, };

export type UrlOpen = { url: string, };

export type Variable = { name: string, value: string, };

export type CommandMap = {
  conversation_create: { params: ConversationCreate; reply: Conversation };
  conversation_open: { params: ConversationOpen; reply: ConversationPage };
  conversation_rename: { params: ConversationRename; reply: Done };
  conversation_delete: { params: ConversationDelete; reply: Done };
  conversation_search: { params: ConversationSearch; reply: Array<ConversationId> };
  turn_start: { params: TurnStart; reply: TurnId };
  turn_stop: { params: TurnStop; reply: Done };
  call_stop: { params: CallStop; reply: Done };
  turn_retry: { params: TurnRetry; reply: TurnId };
  ask_answer: { params: AskAnswerParams; reply: Done };
  server_detail: { params: ServerDetailParams; reply: ServerDetail };
  server_log: { params: ServerLog; reply: Array<LogLine> };
  server_toggle: { params: ServerToggle; reply: Done };
  server_restart: { params: ServerRestart; reply: Done };
  server_remove: { params: ServerRemove; reply: Done };
  tool_rule: { params: ToolRuleParams; reply: Done };
  root_pick: { params: RootPick; reply: string | null };
  root_add: { params: RootAdd; reply: Done };
  root_remove: { params: RootRemove; reply: Done };
  model_save: { params: ModelSave; reply: ModelId };
  model_remove: { params: ModelRemove; reply: Done };
  model_use: { params: ModelUse; reply: Done };
  model_test: { params: ModelTestParams; reply: ModelTest };
  model_try: { params: ModelTry; reply: ModelTest };
  policy_list: { params: PolicyList; reply: Array<Policy> };
  policy_revoke: { params: PolicyRevoke; reply: Done };
  policy_restore: { params: PolicyRestore; reply: Done };
  audit_list: { params: AuditList; reply: Array<AuditRow> };
  settings_change: { params: SettingsChangeParams; reply: Done };
  blob_read: { params: BlobRead; reply: string };
  url_open: { params: UrlOpen; reply: Done };
  file_open: { params: FileOpen; reply: Done };
};

export const errorCodes: ErrorCode[] = [
  "server.program_missing",
  "server.exited",
  "server.no_answer",
  "server.garbage",
  "server.too_large",
  "server.refused",
  "server.version",
  "server.unreachable",
  "server.untrusted",
  "server.http",
  "server.busy",
  "server.sign_in",
  "server.redirected",
  "server.not_mcp",
  "server.broken",
  "server.needs",
  "server.not_offered",
  "server.resting",
  "server.off",
  "server.unknown",
  "tool.unknown",
  "tool.arguments",
  "tool.timeout",
  "tool.failed",
  "launch.not_allowed",
  "connect.not_allowed",
  "ask.already_closed",
  "ask.unanswered",
  "ask.choice",
  "model.key_refused",
  "model.quota",
  "model.rate_limited",
  "model.offline",
  "model.overloaded",
  "model.stream_cut",
  "model.no_answer",
  "model.context_too_long",
  "model.bad_request",
  "model.unknown",
  "model.garbage",
  "model.none",
  "model.file_missing",
  "model.crashed",
  "model.processor",
  "model.memory",
  "keychain.unavailable",
  "keychain.locked",
  "storage.full",
  "storage.broken",
  "storage.newer",
  "storage.in_the_way",
  "storage.not_writable",
  "storage.in_use",
  "config.broken",
  "config.unreadable",
  "config.entry",
  "folder.gone",
  "folder.refused",
  "desktop.cannot_open",
  "conversation.unknown",
  "turn.running",
  "turn.rounds",
  "request.value",
  "request.arguments",
  "request.bad",
  "internal",
];
