/** What the drawn text itself has to say, in the person's language. */
export interface Words {
  copy: string;
  copied: string;
  image: string;
  /** The link's tooltip: where it goes. */
  opens: (host: string) => string;
}
