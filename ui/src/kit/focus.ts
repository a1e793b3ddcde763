/** Whether nothing holds the focus: what had it is gone, or cannot be used any more. */
export function focusIsLost(): boolean {
  const at = document.activeElement;
  return at === null || at === document.body || (at instanceof HTMLButtonElement && at.disabled);
}
