/**
 * Text in which nothing hides: control characters, zero-width characters and those that turn the writing direction
 * are written out, so that a name or a command cannot pose as another one. Line breaks and tabs stay if `multiline`.
 */
export function visible(text: string, multiline = false): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029\u115f\u1160\u3164\uffa0]/gu, (character) => {
    if (multiline && (character === "\n" || character === "\t")) return character;
    const code = character.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** A command as it will be passed, one line; an argument with blanks or nothing in it is quoted. */
export function commandLine(command: readonly string[]): string {
  return command.map((part) => (part === "" || /[\s"'\\$`|&;<>()*?#~]/.test(part) ? `"${visible(part).replace(/(["\\])/g, "\\$1")}"` : visible(part))).join(" ");
}

/** A host in two parts: what anyone may put before it, and the name that says whose it is. */
export function hostParts(host: string): { before: string; own: string } {
  const name = host.replace(/:\d+$/, "");
  const port = host.slice(name.length);
  const labels = name.split(".");
  if (labels.length <= 2 || name.startsWith("[") || /^\d+(\.\d+){3}$/.test(name)) return { before: "", own: host };
  const [second, last] = [labels.at(-2) ?? "", labels.at(-1) ?? ""];
  // co.uk, com.cn and their like: two letters of a country after a short general name.
  const depth = last.length === 2 && /^(com?|org|net|gov|edu|ac|or|ne|go)$/.test(second) ? 3 : 2;
  const own = labels.slice(-depth).join(".");
  return { before: name.slice(0, name.length - own.length), own: own + port };
}
