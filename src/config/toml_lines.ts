/** A place in a document: table keys and list positions from the top. */
export type KeyPath = readonly (string | number)[];

/** Line numbers of the keys of a TOML document. */
export interface TomlLines {
  /**
   * Returns the line of the key or list item at `path`, or of the nearest key above it that is
   * written.
   */
  lineOf(path: KeyPath): number | undefined;
}

/**
 * Finds the line of each key and list item of `text`, a TOML document that a parser has accepted
 * already. The parser gives values without lines, and messages need lines.
 */
export function indexTomlLines(text: string): TomlLines {
  const lines = new TomlLineScanner(text).scan();
  return {
    lineOf(path: KeyPath): number | undefined {
      for (let depth = path.length; depth > 0; depth--) {
        const line = lines.get(JSON.stringify(path.slice(0, depth)));
        if (line !== undefined) return line;
      }
      return undefined;
    },
  };
}

/** Walks a valid document once, front to back, and skips everything it need not understand. */
class TomlLineScanner {
  readonly #text: string;
  readonly #lines = new Map<string, number>();
  /** Number of tables begun, by path of their list. */
  readonly #tableCounts = new Map<string, number>();
  #at = 0;
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): ReadonlyMap<string, number> {
    let table: KeyPath = [];
    for (;;) {
      this.#skipBlank();
      if (this.#at >= this.#text.length) return this.#lines;
      if (this.#text[this.#at] === "[") {
        const line = this.#line;
        table = this.#header();
        this.#mark(table, line);
      } else this.#keyValue(table);
    }
  }

  #header(): KeyPath {
    const isList = this.#text.startsWith("[[", this.#at);
    this.#at += isList ? 2 : 1;
    const keys = this.#keys("]");
    this.#at += isList ? 2 : 1;
    const path = this.#resolve(keys.slice(0, isList ? -1 : undefined));
    if (!isList) return path;
    const list = [...path, keys.at(-1)!];
    const name = JSON.stringify(list);
    const position = this.#tableCounts.get(name) ?? 0;
    this.#tableCounts.set(name, position + 1);
    return [...list, position];
  }

  /** Puts the position of the newest table behind each key that names a list of tables. */
  #resolve(keys: readonly string[]): KeyPath {
    let path: KeyPath = [];
    for (const key of keys) {
      path = [...path, key];
      const count = this.#tableCounts.get(JSON.stringify(path));
      if (count !== undefined) path = [...path, count - 1];
    }
    return path;
  }

  #keyValue(table: KeyPath): void {
    const line = this.#line;
    const path = [...table, ...this.#keys("=")];
    this.#at++;
    this.#mark(path, line);
    this.#skipBlank();
    this.#value(path);
  }

  /** A dotted key up to `end`, which is not consumed. */
  #keys(end: string): string[] {
    const keys: string[] = [];
    for (;;) {
      this.#skipBlank();
      const char = this.#text[this.#at];
      if (char === end || char === undefined) return keys;
      if (char === ".") this.#at++;
      else if (char === '"' || char === "'") keys.push(this.#quotedKey(char));
      else keys.push(this.#bare());
    }
  }

  #quotedKey(quote: string): string {
    const start = this.#at;
    this.#string(quote);
    const written = this.#text.slice(start + 1, this.#at - 1);
    if (quote === "'") return written;
    try {
      return JSON.parse(`"${written}"`);
    } catch {
      // TOML has escapes that JSON does not have. A key written with one is never found, so its
      // message has no line.
      return written;
    }
  }

  /** Reads a run of characters without a delimiter. */
  #bare(): string {
    const start = this.#at;
    while (this.#at < this.#text.length && !/[\s,.=#\[\]{}]/.test(this.#text[this.#at]!)) {
      this.#at++;
    }
    if (this.#at === start) this.#at++;
    return this.#text.slice(start, this.#at);
  }

  #value(path: KeyPath): void {
    const char = this.#text[this.#at];
    if (char === '"' || char === "'") this.#string(char);
    else if (char === "[") this.#list(path);
    else if (char === "{") this.#inlineTable(path);
    else {while (this.#at < this.#text.length && !/[,\]}#\n]/.test(this.#text[this.#at]!)) {
        this.#at++;
      }}
  }

  #list(path: KeyPath): void {
    this.#at++;
    for (let position = 0;; position++) {
      if (this.#skipToItem("]")) return;
      const item = [...path, position];
      this.#mark(item, this.#line);
      this.#value(item);
    }
  }

  #inlineTable(path: KeyPath): void {
    this.#at++;
    while (!this.#skipToItem("}")) this.#keyValue(path);
  }

  /** Skips blanks and commas. If `end` follows, consumes it and returns true. */
  #skipToItem(end: string): boolean {
    for (;;) {
      this.#skipBlank();
      const char = this.#text[this.#at];
      if (char !== "," && char !== end && char !== undefined) return false;
      this.#at++;
      if (char !== ",") return true;
    }
  }

  #string(quote: string): void {
    const isMultiline = this.#text.startsWith(quote.repeat(3), this.#at);
    const end = isMultiline ? quote.repeat(3) : quote;
    this.#at += end.length;
    while (this.#at < this.#text.length && !this.#text.startsWith(end, this.#at)) {
      if (this.#text[this.#at] === "\\" && quote === '"') this.#advance();
      this.#advance();
    }
    this.#at += end.length;
    // A multi-line string may end in up to two quotes of its own.
    while (isMultiline && this.#text[this.#at] === quote) this.#at++;
  }

  #skipBlank(): void {
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]!;
      if (char === "#") {
        while (this.#at < this.#text.length && this.#text[this.#at] !== "\n") this.#at++;
      } else if (/\s/.test(char)) this.#advance();
      else return;
    }
  }

  #advance(): void {
    if (this.#text[this.#at] === "\n") this.#line++;
    this.#at++;
  }

  #mark(path: KeyPath, line: number): void {
    // A dotted key or header also defines the tables on its path.
    for (let depth = path.length; depth > 0; depth--) {
      const name = JSON.stringify(path.slice(0, depth));
      if (!this.#lines.has(name)) this.#lines.set(name, line);
    }
  }
}
