import { Channel, invoke } from "@tauri-apps/api/core";
import type { FeedMessage } from "@/contract/index.ts";
import { HostError, toAppError, type Host } from "./index.ts";

/** The engine in the same program, behind the window's two commands. */
export function tauriHost(): Host {
  let generation = 0;
  return {
    async rpc(name, params) {
      try {
        return await invoke("rpc", { name, params });
      } catch (thrown) {
        throw new HostError(toAppError(thrown));
      }
    },
    async subscribe(onMessage) {
      generation += 1;
      const own = generation;
      const channel = new Channel<FeedMessage>();
      channel.onmessage = (message) => {
        if (own === generation) onMessage(message);
      };
      try {
        await invoke("subscribe", { channel });
      } catch (thrown) {
        throw new HostError(toAppError(thrown));
      }
    },
  };
}
