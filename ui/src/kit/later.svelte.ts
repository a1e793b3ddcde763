import type { Component } from "svelte";

/** A part of the page that is fetched when it is first drawn. */
export interface Later<Part> {
  /** The part, or null while it is on its way. Reading it begins to fetch it, and follows its coming. */
  readonly part: Part | null;
  /** Fetches it. */
  load(): Promise<void>;
}

const known = new Set<Later<unknown>>();

/**
 * Keeps a component out of what every start has to read and hold.
 * @param fetch imports it; when that fails the next look at the part tries again
 */
// A component's own properties are checked where it is drawn.
export function later<Part extends Component<any, any, any>>(fetch: () => Promise<{ default: Part }>): Later<Part> {
  let part = $state.raw<Part | null>(null);
  let coming: Promise<void> | null = null;
  const load = () =>
    (coming ??= fetch().then(
      (module) => void (part = module.default),
      (cause: unknown) => {
        coming = null;
        console.error("a part of the page did not load", cause);
      },
    ));
  const made: Later<Part> = {
    get part() {
      if (part === null) void load();
      return part;
    },
    load,
  };
  known.add(made);
  return made;
}

/** Fetches every part that is known, and those that become known with them. A failure is told, and the rest is fetched. */
export async function loadAll(): Promise<void> {
  for (let before = -1; before !== known.size; ) {
    before = known.size;
    await Promise.all([...known].map((one) => one.load()));
  }
}
