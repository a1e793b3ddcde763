import type { ServerId } from "@/contract/index.ts";
import type { App } from "./app.svelte.ts";

/** Lets the person pick a folder for a connection. False when they closed the picker; rejects as every command does. */
export async function pickFolder(app: App, server: ServerId): Promise<boolean> {
  const path = await app.host.rpc("root_pick", { server });
  if (path === null) return false;
  await addFolder(app, server, path);
  return true;
}

/** Grants a folder; one that is granted already stays as it is. */
export async function addFolder(app: App, server: ServerId, path: string): Promise<void> {
  const granted = app.server(server)?.roots.some((root) => root.path === path) ?? false;
  if (!granted) await app.host.rpc("root_add", { server, path });
}
