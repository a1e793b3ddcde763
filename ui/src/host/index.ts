import type { AppError, CommandMap, FeedMessage } from "@/contract/index.ts";

/** The name of something the engine can be told to do. */
export type Command = keyof CommandMap;

/** How the engine is reached. The rest of the UI knows nothing of windows or sockets. */
export interface Host {
  /** Tells the engine to do something. Rejects with a {@link HostError} only. */
  rpc<Name extends Command>(name: Name, params: CommandMap[Name]["params"]): Promise<CommandMap[Name]["reply"]>;
  /**
   * Starts the feed: one snapshot, then batches. Calling it again starts anew, and the earlier one falls silent.
   * `onLost` tells that the engine cannot be heard any more.
   */
  subscribe(onMessage: (message: FeedMessage) => void, onLost: (error: AppError) => void): Promise<void>;
}

/** What a command that did not work rejects with. */
export class HostError extends Error {
  constructor(readonly error: AppError) {
    super(error.code);
  }
}

/** An error of our own making, for what never reached the engine. */
export function ownError(cause: string): AppError {
  return { code: "internal", params: {}, cause, actions: [{ type: "retry" }], retryable: true, traceId: "" };
}

/** Whatever was thrown, as an error that can be shown. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof HostError) return thrown.error;
  if (isAppError(thrown)) return thrown;
  return ownError(thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : String(thrown));
}

function isAppError(value: unknown): value is AppError {
  return typeof value === "object" && value !== null && "code" in value && "actions" in value && "traceId" in value;
}

/** True in the desktop window, whose program holds all files of the page; elsewhere they come from the engine's address. */
export const inWindow = (): boolean => "__TAURI_INTERNALS__" in window;

/** The host for where this page runs: the desktop window, else the address it was loaded from. */
export async function chooseHost(): Promise<Host> {
  if (inWindow()) return (await import("./tauri.ts")).tauriHost();
  const { socketHost } = await import("./socket.ts");
  return socketHost(new URL("/ws", location.href));
}
