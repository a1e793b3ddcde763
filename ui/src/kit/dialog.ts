/** What a dialog is told, by whoever opens it. */
export interface DialogProps {
  open?: boolean;
  title: string;
  body: string;
  cancel: string;
  confirm: string;
  danger?: boolean;
  /** Goes on the confirming button. */
  testid?: string;
  onconfirm: () => void;
}
