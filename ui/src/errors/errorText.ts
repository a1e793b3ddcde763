import type { Action, AppError, ErrorCode, JsonValue, ModelId, Page } from "@/contract/index.ts";
import { clock, language, m } from "@/i18n.svelte.ts";
import { oneLine } from "@/words/oneLine.ts";
import { FILES, toolName } from "@/words/tools.ts";

/** What a person reads about a failure: what happened, and what is safe or can be done. */
export type ErrorText = { title: string; body: string };

/** The values an error carries, read with their types checked: what does not fit is as good as absent. */
class Params {
  private readonly values: { [key in string]: JsonValue };

  constructor(values: { [key in string]: JsonValue }) {
    this.values = values;
  }

  text(name: string, longest?: number): string | null {
    const value = this.values[name];
    if (typeof value === "number") return String(value);
    if (typeof value !== "string") return null;
    const words = oneLine(value, longest);
    return words === "" ? null : words;
  }

  number(name: string): number | null {
    const value = this.values[name];
    return typeof value === "number" && Number.isFinite(value) ? value : null;
  }

  server = () => {
    const name = this.text("server");
    // The one connection that has a name in each language.
    if (name?.toLowerCase() === FILES) return m["connections.files"]();
    return name ?? m["errors.some.connection"]();
  };
  model = () => this.text("model") ?? m["errors.some.model"]();
  tool = () => {
    const tool = this.text("tool");
    if (tool === null) return m["errors.some.tool"]();
    return this.text("server")?.toLowerCase() === FILES ? toolName(FILES, tool) : tool;
  };
  folder = () => folderName(this.text("folder")) ?? m["errors.some.folder"]();
  file = () => fileName(this.text("file")) ?? m["errors.some.file"]();
}

function fileName(path: string | null): string | null {
  if (path === null) return null;
  const parts = path.split(/[\\/]/u).filter((part) => part !== "");
  return parts.at(-1) ?? path;
}

const folderName = fileName;

/** The product behind a command, where people know it by another name than what is typed. */
function productOf(program: string | null): string | null {
  const name = fileName(program);
  switch (name?.toLowerCase().replace(/\.(exe|cmd)$/u, "")) {
    case "node":
    case "npm":
    case "npx":
      return "Node.js";
    case "uv":
    case "uvx":
      return "uv";
    case "python":
    case "python3":
    case "pip":
    case "pipx":
      return "Python";
    case "docker":
      return "Docker";
    case "deno":
      return "Deno";
    case "bun":
    case "bunx":
      return "Bun";
    default:
      return name;
  }
}

/** Gigabytes and seconds read better without a tail of digits. */
function short(value: number): string {
  return new Intl.NumberFormat(language(), { maximumFractionDigits: 1 }).format(value);
}

/** Whole seconds for a sentence that counts them; a wait is never told as none. */
function seconds(value: number): number {
  return Math.max(1, Math.round(value));
}

/** Where an error is read: in a chat, whose messages are kept, or beside something else. */
export type Place = "chat" | "apart";

/** What is kept whatever happened; it is said in a chat alone. */
type Kept = "message" | "arrived" | "saved";

type Say = (p: Params, place: Place) => ErrorText & { kept?: Kept };

// One entry a code: a new code does not compile until somebody has said what it means.
const texts: Record<ErrorCode, Say> = {
  "server.program_missing": (p) => ({
    title: m["errors.server.program_missing.title"]({ server: p.server() }),
    body: m["errors.server.program_missing.body"]({
      program: productOf(p.text("program")) ?? m["errors.some.program"](),
    }),
  }),
  "server.exited": (p) => {
    const after = p.number("seconds");
    return {
      title: m["errors.server.exited.title"]({ server: p.server() }),
      body: after === null ? m["errors.server.exited.plain"]() : m["errors.server.exited.body"]({ seconds: seconds(after) }),
    };
  },
  "server.no_answer": (p) => {
    const waited = p.number("seconds");
    return {
      title: m["errors.server.no_answer.title"]({ server: p.server() }),
      body:
        waited === null
          ? m["errors.server.no_answer.plain"]()
          : m["errors.server.no_answer.body"]({ seconds: seconds(waited) }),
    };
  },
  "server.garbage": (p) => ({
    title: m["errors.server.garbage.title"]({ server: p.server() }),
    body: m["errors.server.garbage.body"](),
  }),
  "server.too_large": (p) => {
    const megabytes = p.number("megabytes");
    return {
      title: m["errors.server.too_large.title"]({ server: p.server() }),
      body:
        megabytes === null
          ? m["errors.server.too_large.plain"]()
          : m["errors.server.too_large.body"]({ megabytes: short(megabytes) }),
    };
  },
  "server.refused": (p) => {
    const message = p.text("message");
    return {
      title: m["errors.server.refused.title"]({ server: p.server() }),
      body: message === null ? m["errors.server.refused.plain"]() : m["errors.server.refused.body"]({ message }),
    };
  },
  "server.version": (p) => {
    const offered = p.text("offered");
    const server = p.server();
    return {
      title: m["errors.server.version.title"]({ server }),
      body:
        offered === null
          ? m["errors.server.version.plain"]({ server })
          : m["errors.server.version.body"]({ offered, server }),
    };
  },
  "server.unreachable": (p) => ({
    title: m["errors.server.unreachable.title"]({ server: p.server() }),
    body: m["errors.server.unreachable.body"](),
  }),
  "server.untrusted": (p) => ({
    title: m["errors.server.untrusted.title"]({ server: p.server() }),
    body: m["errors.server.untrusted.body"](),
  }),
  "server.busy": (p) => ({
    title: m["errors.server.busy.title"]({ server: p.server() }),
    body: m["errors.server.busy.body"](),
  }),
  "server.sign_in": (p) => ({
    title: m["errors.server.sign_in.title"]({ server: p.server() }),
    body: m["errors.server.sign_in.body"](),
  }),
  "server.not_mcp": (p) => ({
    title: m["errors.server.not_mcp.title"]({ server: p.server() }),
    body: m["errors.server.not_mcp.body"](),
  }),
  "server.broken": (p) => ({
    title: m["errors.server.broken.title"]({ server: p.server() }),
    body: m["errors.server.broken.body"](),
  }),
  "server.needs": (p) => ({
    title: m["errors.server.needs.title"]({ server: p.server() }),
    body: m["errors.server.needs.body"](),
  }),
  "server.not_offered": (p) => ({
    title: m["errors.server.not_offered.title"]({ server: p.server() }),
    body: m["errors.server.not_offered.body"](),
  }),
  "server.resting": (p) => ({
    title: m["errors.server.resting.title"]({ server: p.server() }),
    body: m["errors.server.resting.body"](),
  }),
  "server.http": (p) => {
    const status = p.number("status");
    return {
      title: m["errors.server.http.title"]({ server: p.server() }),
      body: status === null ? m["errors.server.http.plain"]() : m["errors.server.http.body"]({ status }),
    };
  },
  "server.redirected": (p) => {
    const to = p.text("to");
    return {
      title: m["errors.server.redirected.title"]({ server: p.server() }),
      body: to === null ? m["errors.server.redirected.plain"]() : m["errors.server.redirected.body"]({ to }),
    };
  },
  "server.off": (p) => ({
    title: m["errors.server.off.title"]({ server: p.server() }),
    body: m["errors.server.off.body"](),
  }),
  "server.unknown": (p) => ({
    title: m["errors.server.unknown.title"]({ server: p.server() }),
    body: m["errors.server.unknown.body"](),
  }),
  "tool.unknown": (p) => ({
    title: m["errors.tool.unknown.title"]({ server: p.server(), tool: p.tool() }),
    body: m["errors.tool.unknown.body"](),
  }),
  "tool.arguments": (p) => ({
    title: m["errors.tool.arguments.title"]({ server: p.server() }),
    body: m["errors.tool.arguments.body"](),
  }),
  "tool.timeout": (p) => {
    const ran = p.number("seconds");
    const server = p.server();
    return {
      title: m["errors.tool.timeout.title"]({ tool: p.tool() }),
      body:
        ran === null
          ? m["errors.tool.timeout.plain"]({ server })
          : m["errors.tool.timeout.body"]({ server, seconds: seconds(ran) }),
    };
  },
  "tool.failed": (p) => {
    const message = p.text("message");
    const server = p.server();
    return {
      title: m["errors.tool.failed.title"]({ tool: p.tool() }),
      body:
        message === null ? m["errors.tool.failed.plain"]({ server }) : m["errors.tool.failed.body"]({ server, message }),
    };
  },
  "launch.not_allowed": (p) => ({
    title: m["errors.launch.not_allowed.title"]({ server: p.server() }),
    body: m["errors.launch.not_allowed.body"](),
  }),
  "connect.not_allowed": (p) => ({
    title: m["errors.connect.not_allowed.title"]({ server: p.server() }),
    body: m["errors.connect.not_allowed.body"](),
  }),
  "ask.already_closed": () => ({
    title: m["errors.ask.already_closed.title"](),
    body: m["errors.ask.already_closed.body"](),
  }),
  "ask.unanswered": () => ({
    title: m["errors.ask.unanswered.title"](),
    body: m["errors.ask.unanswered.body"](),
  }),
  "ask.choice": () => ({ title: m["errors.ask.choice.title"](), body: m["errors.ask.choice.body"]() }),
  "model.key_refused": (p) => {
    const missing = p.text("missing") !== null;
    return {
      title: missing ? m["errors.model.key_refused.missing"]({ model: p.model() }) : m["errors.model.key_refused.title"]({ model: p.model() }),
      body: missing ? m["errors.model.key_refused.untilQuit"]() : m["errors.model.key_refused.body"](),
      kept: "message",
    };
  },
  "model.quota": (p) => ({
    title: m["errors.model.quota.title"]({ model: p.model() }),
    body: m["errors.model.quota.body"](),
    kept: "message",
  }),
  "model.rate_limited": (p) => {
    const until = p.number("until");
    return {
      title: m["errors.model.rate_limited.title"]({ model: p.model() }),
      body:
        until === null
          ? m["errors.model.rate_limited.plain"]()
          : m["errors.model.rate_limited.body"]({ time: clock(until) }),
      ...(until === null ? { kept: "message" as const } : {}),
    };
  },
  "model.offline": (p) => ({
    title: m["errors.model.offline.title"]({ model: p.model() }),
    body: m["errors.model.offline.body"](),
    kept: "message",
  }),
  "model.overloaded": (p) => ({
    title: m["errors.model.overloaded.title"]({ model: p.model() }),
    body: m["errors.model.overloaded.body"](),
    kept: "message",
  }),
  "model.stream_cut": (p, place) => ({
    title: m["errors.model.stream_cut.title"]({ model: p.model() }),
    body: place === "chat" ? m["errors.model.stream_cut.body"]() : m["errors.model.stream_cut.apart"](),
  }),
  "model.no_answer": (p) => {
    const waited = p.number("seconds");
    return {
      title: m["errors.model.no_answer.title"]({ model: p.model() }),
      body:
        waited === null
          ? m["errors.model.no_answer.plain"]()
          : m["errors.model.no_answer.body"]({ seconds: seconds(waited) }),
      kept: "arrived",
    };
  },
  "model.context_too_long": (p) => ({
    title: m["errors.model.context_too_long.title"]({ model: p.model() }),
    body: m["errors.model.context_too_long.body"](),
  }),
  "model.bad_request": (p) => {
    const message = p.text("message");
    return {
      title: m["errors.model.bad_request.title"]({ model: p.model() }),
      body: message === null ? m["errors.model.bad_request.plain"]() : m["errors.model.bad_request.body"]({ message }),
      ...(message === null ? { kept: "message" as const } : {}),
    };
  },
  "model.unknown": (p) => ({
    title: m["errors.model.unknown.title"]({ name: p.text("name") ?? p.model() }),
    body: m["errors.model.unknown.body"]({ model: p.model() }),
  }),
  "model.garbage": (p) => ({
    title: m["errors.model.garbage.title"]({ model: p.model() }),
    body: m["errors.model.garbage.body"](),
    kept: "message",
  }),
  "model.none": () => ({ title: m["errors.model.none.title"](), body: m["errors.model.none.body"](), kept: "message" }),
  "model.file_missing": (p) => ({
    title: m["errors.model.file_missing.title"]({ model: p.model() }),
    body: m["errors.model.file_missing.body"](),
  }),
  "model.crashed": (p) => ({
    title: m["errors.model.crashed.title"]({ model: p.model() }),
    body: m["errors.model.crashed.body"](),
    kept: "saved",
  }),
  "model.processor": (p) => ({
    title: m["errors.model.processor.title"]({ model: p.model() }),
    body: m["errors.model.processor.body"](),
  }),
  "model.memory": (p) => {
    const needed = p.number("needed");
    const free = p.number("free");
    return {
      title: m["errors.model.memory.title"]({ model: p.model() }),
      body:
        needed === null || free === null
          ? m["errors.model.memory.plain"]()
          : m["errors.model.memory.body"]({ needed: short(needed), free: short(free) }),
    };
  },
  "keychain.unavailable": () => ({
    title: m["errors.keychain.unavailable.title"](),
    body: m["errors.keychain.unavailable.body"](),
  }),
  "keychain.locked": () => ({
    title: m["errors.keychain.locked.title"](),
    body: m["errors.keychain.locked.body"](),
  }),
  "storage.full": () => ({ title: m["errors.storage.full.title"](), body: m["errors.storage.full.body"]() }),
  "storage.broken": (p) => {
    const path = p.text("path");
    return {
      title: m["errors.storage.broken.title"](),
      body: path === null ? m["errors.storage.broken.plain"]() : m["errors.storage.broken.body"]({ path }),
    };
  },
  "storage.newer": () => ({ title: m["errors.storage.newer.title"](), body: m["errors.storage.newer.body"]() }),
  "storage.in_the_way": (p) => {
    const path = p.text("path");
    return {
      title: m["errors.storage.in_the_way.title"](),
      body: path === null ? m["errors.storage.in_the_way.plain"]() : m["errors.storage.in_the_way.body"]({ path }),
    };
  },
  "storage.not_writable": (p) => {
    const path = p.text("path");
    return {
      title: m["errors.storage.not_writable.title"](),
      body: path === null ? m["errors.storage.not_writable.plain"]() : m["errors.storage.not_writable.body"]({ path }),
    };
  },
  "storage.in_use": () => ({ title: m["errors.storage.in_use.title"](), body: m["errors.storage.in_use.body"]() }),
  "config.unreadable": (p) => {
    const path = p.text("path");
    return {
      title: m["errors.config.unreadable.title"]({ file: p.file() }),
      body: path === null ? m["errors.config.unreadable.plain"]() : m["errors.config.unreadable.body"]({ path }),
    };
  },
  "config.broken": (p) => {
    const line = p.number("line");
    const file = p.file();
    return {
      title: line === null ? m["errors.config.broken.titlePlain"]({ file }) : m["errors.config.broken.title"]({ file, line }),
      body: m["errors.config.broken.body"](),
    };
  },
  "config.entry": (p) => ({
    title: m["errors.config.entry.title"]({ file: p.file(), entry: p.text("entry") ?? m["errors.some.entry"]() }),
    body: m["errors.config.entry.body"](),
  }),
  "folder.gone": (p) => ({
    title: m["errors.folder.gone.title"]({ folder: p.folder() }),
    body: m["errors.folder.gone.body"](),
  }),
  "folder.refused": (p) => ({
    title: m["errors.folder.refused.title"]({ folder: p.folder() }),
    body: m["errors.folder.refused.body"](),
  }),
  "desktop.cannot_open": (p) => {
    // Whole: it is there to be found.
    const place = p.text("place", 4096);
    if (place !== null && isAddress(place)) {
      return { title: m["errors.desktop.cannot_open.address"](), body: m["errors.desktop.cannot_open.addressBody"]({ place }) };
    }
    return {
      title: m["errors.desktop.cannot_open.title"]({ name: oneLine(fileName(place) ?? "") || m["errors.some.file"]() }),
      body: place === null ? m["errors.desktop.cannot_open.plain"]() : m["errors.desktop.cannot_open.body"]({ place }),
    };
  },
  "conversation.unknown": () => ({
    title: m["errors.conversation.unknown.title"](),
    body: m["errors.conversation.unknown.body"](),
  }),
  "turn.running": () => ({ title: m["errors.turn.running.title"](), body: m["errors.turn.running.body"](), kept: "message" }),
  "turn.rounds": (p) => {
    const rounds = p.number("rounds");
    return {
      title: m["errors.turn.rounds.title"](),
      body: rounds === null ? m["errors.turn.rounds.plain"]() : m["errors.turn.rounds.body"]({ rounds }),
    };
  },
  "request.value": () => ({ title: m["errors.request.value.title"](), body: m["errors.request.value.body"]() }),
  "request.arguments": () => ({ title: m["errors.request.arguments.title"](), body: m["errors.request.arguments.body"]() }),
  "request.bad": () => ({ title: m["errors.request.bad.title"](), body: m["errors.request.bad.body"]() }),
  internal: () => ({ title: m["errors.internal.title"](), body: m["errors.internal.body"]() }),
};

const keptWords: Record<Kept, () => string> = {
  message: m["errors.kept.message"],
  arrived: m["errors.kept.arrived"],
  saved: m["errors.kept.saved"],
};

/**
 * The words for a failure, in the language on screen. Values that are absent or of the wrong type leave a general word.
 * What became of a message is said only in a chat.
 */
export function errorText(error: AppError, place: Place = "chat"): ErrorText {
  const say: Say | undefined = texts[error.code];
  const { title, body, kept } = (say ?? texts.internal)(new Params(error.params ?? {}), place);
  if (kept === undefined || place !== "chat") return { title, body };
  const also = keptWords[kept]();
  return { title, body: language() === "en" ? `${body} ${also}` : `${body}${also}` };
}

/** Both in one line, for beside a field. */
export function errorSentence(error: AppError, place: Place = "apart"): string {
  const { title, body } = errorText(error, place);
  return language() === "en" ? `${title}. ${body}` : `${title}。${body}`;
}

/** The place that could not be opened, whole, for copying: an error of that kind has one. */
export function placeToCopy(error: AppError): { label: string; text: string } | null {
  const place = error.params?.["place"];
  if (error.code !== "desktop.cannot_open" || typeof place !== "string") return null;
  return { label: isAddress(place) ? m["errors.desktop.copyAddress"]() : m["errors.desktop.copyPath"](), text: place };
}

function isAddress(place: string): boolean {
  return /^https?:/u.test(place);
}

const pages: Record<Page, () => string> = {
  chat: m["errors.action.openPage.chat"],
  connections: m["errors.action.openPage.connections"],
  permissions: m["errors.action.openPage.permissions"],
  activity: m["errors.action.openPage.activity"],
  models: m["errors.action.openPage.models"],
  settings: m["errors.action.openPage.settings"],
};

/**
 * The label of the button for `action`. Beside its error some are told more exactly: trying a cut answer again is
 * starting it over. `modelTitle` names a model by its id; without it the label says "another model".
 */
export function actionText(action: Action, error?: AppError, modelTitle?: (id: ModelId) => string | undefined): string {
  switch (action.type) {
    case "retry":
      if (error?.code === "model.stream_cut") return m["errors.action.startOver"]();
      if (error?.code === "keychain.locked") return m["errors.action.unlock"]();
      return m["errors.action.retry"]();
    case "continue":
      return m["errors.action.continue"]();
    case "restartServer":
      return error?.code === "server.exited" ? m["errors.action.restart"]() : m["errors.action.retry"]();
    case "showLog":
      return m["errors.action.showLog"]();
    case "openPage":
      return pages[action.page]();
    case "chooseFolder":
      return error?.code === "folder.gone" ? m["errors.action.chooseAgain"]() : m["errors.action.chooseFolder"]();
    case "removeFolder":
      return m["errors.action.removeFolder"]();
    case "checkKey":
      return m["errors.action.checkKey"]();
    case "useModel": {
      const title = modelTitle?.(action.model);
      return title === undefined
        ? m["errors.action.useOther"]()
        : m["errors.action.useModel"]({ model: oneLine(title) });
    }
    case "waitUntil":
      return m["errors.action.waitUntil"]({ time: clock(action.at) });
    case "openFile":
      return action.line === null
        ? m["errors.action.openFile"]({ file: fileName(action.path) ?? m["errors.some.file"]() })
        : m["errors.action.showLine"]();
    case "openUrl": {
      if (error?.code === "server.program_missing") {
        const program = new Params(error.params).text("program");
        if (program !== null) return m["errors.action.getProgram"]({ program: productOf(program) ?? program });
      }
      return m["errors.action.openUrl"]({ host: hostOf(action.url) });
    }
  }
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return oneLine(url);
  }
}
