import type { Ask, Server, ServerDetail, ServerId } from "@/contract/index.ts";

/** How a connection stands, as the list says it: more exact than its status where its error or a question says more. */
export type Standing =
  | "ready"
  | "starting"
  | "waiting"
  | "signIn"
  | "cannotStart"
  | "cannotConnect"
  | "stopped"
  | "off";

/** `asks` are the open questions: a connection whose start waits for the person is not getting ready by itself. */
export function standing(server: Server, asks: readonly Ask[]): Standing {
  switch (server.status) {
    case "ready":
      return "ready";
    case "off":
      return "off";
    case "sign-in":
      return "signIn";
    case "starting":
      return asks.some((ask) => ask.server === server.id && isStart(ask)) ? "waiting" : "starting";
    case "failed":
      if (server.error?.code === "server.exited") return "stopped";
      return server.transport === "stdio" ? "cannotStart" : "cannotConnect";
  }
}

function isStart(ask: Ask): boolean {
  return ask.subject.kind === "launch" || ask.subject.kind === "connect";
}

/** Failing ones first; the others keep the order of the file. */
export function failingFirst(servers: readonly Server[]): Server[] {
  return [...servers.filter((s) => s.status === "failed"), ...servers.filter((s) => s.status !== "failed")];
}

/** A connection of ours that works with folders and has none: the one thing it needs is a folder. */
export function needsFolder(server: Server): boolean {
  return server.builtIn && server.status !== "off" && server.roots.length === 0;
}

/** How many tools are shown before "Show more". */
export const FIRST_TOOLS = 8;

/** The id of the panel a connection unfolds to. */
export const panelId = (id: ServerId): string => `connection-panel-${[...id].map((c) => (/[\w-]/u.test(c) ? c : `_${c.codePointAt(0) ?? 0}`)).join("")}`;

/** The command line as a person would type it: parts with blanks in quotes, so that each stays one. */
export function commandLine(command: ServerDetail["command"]): string {
  return command.map((part) => (part === "" || /[\s"']/u.test(part) ? JSON.stringify(part) : part)).join(" ");
}
