import { Lexer, type Token } from "marked";
import remend from "remend";

/** One block of a text: a paragraph, a list, a code block. */
export interface Block {
  /** Where it begins in the text; stays the same while the text grows. */
  key: number;
  raw: string;
  token: Token;
  /** More of it may come. */
  open: boolean;
  /** The next words come behind it. */
  end: boolean;
}

/** A text cut into blocks. Of a growing text only what follows `doneLength` is read again. */
export interface Split {
  text: string;
  done: Block[];
  doneLength: number;
  /** The last block and, while it streams, how it looks with its half-written marks closed. */
  tail: Block[];
}

const empty: Split = { text: "", done: [], doneLength: 0, tail: [] };

/**
 * Cuts `text` into blocks. Given what the same text gave when it was shorter, the finished blocks are taken over as they are.
 * @param before the last result for this text, or null
 * @param finished nothing more comes
 */
export function split(before: Split | null, text: string, finished: boolean): Split {
  const grown = before !== null && text.startsWith(before.text.slice(0, before.doneLength));
  const base = grown ? before : empty;
  const rest = text.slice(base.doneLength);

  const fresh: Block[] = [];
  let at = base.doneLength;
  for (const token of lex(rest)) {
    if (token.type !== "space") fresh.push({ key: at, raw: token.raw, token, open: false, end: false });
    at += token.raw.length;
  }
  if (finished) return { text, done: [...base.done, ...fresh], doneLength: text.length, tail: [] };

  // The last block may still grow: a list goes on after an empty line, a paragraph becomes a heading.
  const last = fresh.pop();
  if (!last) return { text, done: base.done, doneLength: base.doneLength, tail: [] };
  return { text, done: fresh.length > 0 ? [...base.done, ...fresh] : base.done, doneLength: last.key, tail: preview(last) };
}

/** The open block with its half-written marks closed, which may be several blocks for a moment. */
function preview(block: Block): Block[] {
  if (block.token.type === "code") return [{ ...block, open: true, end: true }];
  const closed = remend(block.raw, { linkMode: "text-only", images: false });
  if (closed === block.raw) return [{ ...block, open: true, end: true }];
  return lex(closed)
    .filter((token) => token.type !== "space")
    .map((token, index, all) => ({ key: block.key + index / 1000, raw: token.raw, token, open: true, end: index === all.length - 1 }));
}

function lex(text: string): Token[] {
  return [...new Lexer({ gfm: true }).lex(text)];
}
