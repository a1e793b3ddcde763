import type { ModelId } from "@/contract/index.ts";

/** The model whose form the models page is asked to show, as from "Check the key"; the page empties it once shown. */
export const editModel = $state<{ id: ModelId | null }>({ id: null });
