// Waiting for something to become true, with a limit. Nothing in these tests sleeps for luck.
import { setTimeout as pause } from "node:timers/promises";

/** Calls `check` until it gives something truthy, and gives that. After `limit` ms: an error that says `what`. */
export async function until(what, check, limit = 15_000) {
  const deadline = Date.now() + limit;
  let last;
  for (;;) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) {
      const seen = last instanceof Error ? last.message : JSON.stringify(last);
      throw new Error(`waited ${limit} ms for: ${what} (last seen: ${seen})`);
    }
    await pause(40);
  }
}

/** The same for a promise. */
export function within(what, promise, limit = 15_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${limit} ms for: ${what}`)), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
