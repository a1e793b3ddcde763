import type { ServerId } from "@/contract/index.ts";
import { m } from "@/i18n.svelte.ts";
import { oneLine } from "./oneLine.ts";

/** The tools of the connection we ship: the only ones that have words of our own. */
export const fileTools = [
  "list_folder",
  "read_file",
  "find_files",
  "search_text",
  "write_file",
  "move_file",
  "trash_file",
] as const;

export type FileTool = (typeof fileTools)[number];

/** The built-in connection that works with the granted folders. */
export const FILES = "files";

/** The tool as one of ours, where it is one. A connection of another name may call its tools what it likes. */
export function fileTool(server: ServerId, tool: string | null): FileTool | null {
  if (server !== FILES) return null;
  return fileTools.find((name) => name === tool) ?? null;
}

const names: Record<FileTool, () => string> = {
  list_folder: m["connections.tool.list_folder"],
  read_file: m["connections.tool.read_file"],
  find_files: m["connections.tool.find_files"],
  search_text: m["connections.tool.search_text"],
  write_file: m["connections.tool.write_file"],
  move_file: m["connections.tool.move_file"],
  trash_file: m["connections.tool.trash_file"],
};

/** What a tool is called on screen: our words for ours, else its title as the connection wrote it, cleaned. */
export function toolName(server: ServerId, tool: string, title?: string): string {
  const ours = fileTool(server, tool);
  return ours === null ? oneLine(title ?? tool) || oneLine(tool) : names[ours]();
}

/** What a connection is called on screen. */
export function serverName(server: { id: ServerId; title: string; builtIn: boolean }): string {
  if (server.builtIn && server.id === FILES) return m["connections.files"]();
  return oneLine(server.title, 60) || oneLine(server.id, 60);
}
