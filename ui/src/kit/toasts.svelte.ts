/** What a toast says. Only for things already done: never an error, never a question. */
export interface Toast {
  text: string;
  /** Undo, or the like: it makes the toast stay for 8 s instead of 5. */
  action?: { label: string; run: () => void };
}

/** The toast on screen: one at a time, a newer one takes the place. */
export const toasts = $state<{ current: (Toast & { id: number }) | null }>({ current: null });

let last = 0;

/** Shows a toast. */
export function toast(said: Toast): void {
  last += 1;
  toasts.current = { ...said, id: last };
}

/** Takes the toast away. */
export function dismissToast(): void {
  toasts.current = null;
}
