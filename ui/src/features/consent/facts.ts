import type { Ask, AskSubject, FileTarget } from "@/contract/index.ts";
import { m } from "@/i18n.svelte.ts";
import { baseName, textArgument } from "@/state/paths.ts";
import { visible } from "@/state/visible.ts";
import { serverName } from "@/words/tools.ts";

/** One line of the ask. A place is drawn as folders and a name; everything else is a sentence. */
export interface Fact {
  label: string;
  text?: string;
  place?: FileTarget;
  /** Shown in the monospaced face, whole. */
  code?: string;
  /** Words that open the exact details beside the sentence. */
  more?: string;
}

/** What an ask says, in our words. Texts of the connection are only in `quote`. */
export interface AskWords {
  heading: string;
  from: string;
  facts: Fact[];
  no: string;
  yes: string;
  /** What could be lost, by name. */
  losses: string[];
  /** The connection's own words: first its title of the tool, then what it says of it. */
  quote: { title: string; text: string } | null;
  caution: string | null;
}

type ToolSubject = Extract<AskSubject, { kind: "tool" }>;

/** Everything the card says about an ask. */
export function askWords(ask: Ask): AskWords {
  const server = visible(serverName({ id: ask.server, title: ask.serverTitle, builtIn: ask.builtIn }));
  const { subject } = ask;
  switch (subject.kind) {
    case "tool":
      return ask.builtIn && ask.server === "files" ? fileWords(ask, subject, server) : toolWords(ask, subject, server);
    case "launch":
      return {
        heading: m["consent.launch.heading"]({ server }),
        from: m["consent.launch.from"](),
        facts: facts([
          { label: m["consent.fact.what"](), text: m["consent.launch.what"]() },
          ...subject.loaders.map(({ name, value }) => ({ label: m["consent.fact.danger"](), code: visible(`${name}=${value}`) })),
          subject.program === null ? null : { label: m["consent.fact.where"](), code: visible(subject.program) },
          subject.cwd === null ? null : { label: m["consent.fact.folder"](), code: visible(subject.cwd) },
          {
            label: m["consent.fact.data"](),
            text: subject.env.length === 0 ? m["consent.launch.data_none"]() : m["consent.launch.data"]({ names: subject.env.map((name) => visible(name)).join(m["consent.comma"]()) }),
          },
          { label: m["consent.fact.then"](), text: m["consent.launch.then"]() },
          { label: m["consent.fact.undo"](), text: m["consent.launch.undo"]({ server }) },
        ]),
        no: m["consent.launch.no"](),
        yes: m["consent.launch.yes"]({ server }),
        losses: [],
        quote: null,
        caution:
          subject.program === null
            ? m["consent.launch.missing"]({ program: visible(subject.command[0] ?? "") })
            : subject.loaders.length > 0 ? m["consent.launch.loads"]()
            : subject.changed ? m["consent.launch.changed"]() : null,
      };
    case "connect":
      return {
        heading: m["consent.connect.heading"]({ host: visible(subject.host) }),
        from: m["consent.connect.from"]({ server }),
        facts: facts([
          { label: m["consent.fact.what"](), text: m["consent.connect.what"]() },
          {
            label: m["consent.fact.data"](),
            text: subject.headers.length === 0 ? m["consent.connect.data"]() : m["consent.connect.data_headers"]({ names: subject.headers.map((name) => visible(name)).join(m["consent.comma"]()) }),
          },
          { label: m["consent.fact.then"](), text: m["consent.connect.then"]() },
          { label: m["consent.fact.undo"](), text: m["consent.launch.undo"]({ server }) },
        ]),
        no: m["consent.connect.no"](),
        yes: m["consent.connect.yes"](),
        losses: [],
        quote: null,
        caution: connectCaution(subject),
      };
  }
}

function connectCaution(subject: Extract<AskSubject, { kind: "connect" }>): string | null {
  if (/(^|\.)xn--/i.test(subject.host)) return m["consent.connect.letters"]();
  if (subject.url.startsWith("http:") && !/^(localhost|127\.|\[::1\])/.test(subject.host)) return m["consent.connect.open"]();
  return subject.changed ? m["consent.connect.changed"]() : null;
}

function facts(list: (Fact | null)[]): Fact[] {
  return list.filter((fact) => fact !== null);
}

function readerWords(subject: ToolSubject, what: "text" | "names" | "result"): string {
  const { model, local: here, host } = subject.reader;
  const to = { model: visible(model), host: visible(host ?? "") };
  // Our own model has no address. Another program of this computer may pass on what it is told.
  const local = here && host === null;
  if (here && !local) {
    switch (what) {
      case "text": return m["consent.reader.text_near"](to);
      case "names": return m["consent.reader.names_near"](to);
      case "result": return m["consent.reader.result_near"](to);
    }
  }
  switch (what) {
    case "text": return local ? m["consent.reader.text_here"](to) : m["consent.reader.text_there"](to);
    case "names": return local ? m["consent.reader.names_here"](to) : m["consent.reader.names_there"](to);
    case "result": return local ? m["consent.reader.result_here"](to) : m["consent.reader.result_there"](to);
  }
}

/** The name of a target: its last crumb, else the last part of the path in the arguments. */
function targetName(target: FileTarget | null, path: string): string {
  return visible(target?.crumbs.at(-1) ?? baseName(path));
}

function parent(target: FileTarget | null): FileTarget | null {
  return target && target.crumbs.length > 1 ? { crumbs: target.crumbs.slice(0, -1), isFolder: true, bytes: null } : null;
}

function fileWords(ask: Ask, subject: ToolSubject, server: string): AskWords {
  const argument = (name: string) => textArgument(subject.arguments, name);
  const { target, destination } = subject;
  const name = targetName(target, argument("path"));
  const label = {
    what: m["consent.fact.what"](),
    where: m["consent.fact.where"](),
    data: m["consent.fact.data"](),
    undo: m["consent.fact.undo"](),
  };
  const nothing: Fact = { label: label.undo, text: m["consent.undo.nothing"]() };
  const place = (at: FileTarget | null): Fact | null => (at ? { label: label.where, place: at } : null);
  const base = { from: m["consent.built_in"]({ server }), no: m["consent.deny"](), yes: m["consent.allow_once"](), losses: [] as string[], quote: null, caution: subject.changed ? m["consent.changed"]() : null };

  switch (subject.tool) {
    case "list_folder":
      return {
        ...base,
        heading: name === "" || name === "." ? m["consent.files.list_all"]({ server }) : m["consent.files.list"]({ server, name }),
        facts: facts([{ label: label.what, text: m["consent.files.list_what"]() }, place(target), { label: label.data, text: readerWords(subject, "names") }, nothing]),
      };
    case "find_files":
      return {
        ...base,
        heading: m["consent.files.find"]({ server, text: visible(argument("name")) }),
        facts: facts([{ label: label.what, text: m["consent.files.find_what"]() }, place(target), { label: label.data, text: readerWords(subject, "names") }, nothing]),
      };
    case "search_text":
      return {
        ...base,
        heading: m["consent.files.search"]({ server, text: visible(argument("text")) }),
        facts: facts([{ label: label.what, text: m["consent.files.search_what"]() }, place(target), { label: label.data, text: readerWords(subject, "text") }, nothing]),
      };
    case "read_file":
      return {
        ...base,
        heading: m["consent.files.read"]({ server, name }),
        facts: facts([
          { label: label.what, text: m["consent.files.read_what"]() },
          { label: label.data, ...(target ? { place: target } : {}), text: readerWords(subject, "text") },
          nothing,
        ]),
      };
    case "write_file": {
      const exists = target?.bytes != null;
      const lines = argument("text") === "" ? 0 : argument("text").replace(/\n$/, "").split("\n").length;
      return {
        ...base,
        heading: m["consent.files.write"]({ server, name }),
        facts: facts([
          { label: label.what, text: exists ? m["consent.files.write_over"]() : m["consent.files.write_new"]() },
          place(target),
          { label: label.data, text: m["consent.files.write_data"]({ count: lines, model: visible(subject.reader.model) }), more: m["consent.see_them"]() },
          { label: label.undo, text: exists ? m["consent.files.write_over_undo"]() : m["consent.files.write_undo"]() },
        ]),
      };
    }
    case "move_file": {
      const from = targetName(target, argument("from"));
      const to = targetName(destination, argument("to"));
      return {
        ...base,
        heading: from === to ? m["consent.files.move"]({ server, name: from }) : m["consent.files.rename"]({ server, from, to }),
        facts: facts([
          { label: label.what, text: m["consent.files.move_what"]() },
          target ? { label: m["consent.fact.from"](), place: target } : null,
          destination ? { label: m["consent.fact.to"](), place: destination } : null,
          { label: label.undo, text: m["consent.files.move_undo"]() },
        ]),
      };
    }
    case "trash_file":
      return {
        ...base,
        heading: target?.isFolder ? m["consent.files.trash_folder"]({ server, name }) : m["consent.files.trash"]({ server, name }),
        losses: [name],
        facts: facts([place(parent(target)), { label: label.undo, text: m["consent.files.trash_undo"]() }]),
        no: m["consent.files.trash_no"](),
        yes: m["consent.files.trash_yes"]({ count: 1 }),
      };
    default:
      return { ...toolWords(ask, subject, server), from: base.from };
  }
}

function toolWords(ask: Ask, subject: ToolSubject, server: string): AskWords {
  return {
    heading: m["consent.tool.heading"]({ server }),
    from: ask.builtIn ? m["consent.built_in"]({ server }) : m["consent.added"](),
    facts: facts([
      { label: m["consent.fact.what"](), text: subject.claimed ? m["consent.tool.claims"]() : whatLevel(ask) },
      { label: m["consent.fact.data"](), text: m["consent.tool.data"]({ server }), more: m["consent.see_it"]() },
      { label: m["consent.fact.then"](), text: readerWords(subject, "result") },
      { label: m["consent.fact.undo"](), text: ask.builtIn && (ask.level === "L0" || ask.level === "L1") ? m["consent.undo.nothing"]() : m["consent.tool.undo"]({ server }) },
    ]),
    no: m["consent.deny"](),
    yes: m["consent.allow_once"](),
    losses: [],
    quote: { title: visible(subject.title), text: visible(subject.description ?? "", true) },
    caution: subject.changed ? m["consent.changed"]() : null,
  };
}

function whatLevel(ask: Ask): string {
  switch (ask.level) {
    case "L0": return m["consent.tool.what_L0"]();
    case "L1": return m["consent.tool.what_L1"]();
    case "L2": return m["consent.tool.what_L2"]();
    case "L3": return m["consent.tool.what_L3"]();
  }
}
