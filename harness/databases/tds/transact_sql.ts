import { syntaxError, TdsError } from "./tds_error.ts";

/** A word of T-SQL. Words that are not quoted are in lower case. */
export interface Token {
  readonly kind: "word" | "name" | "text" | "binary" | "number" | "variable" | "symbol";
  readonly text: string;
  /** Place of its first character in the batch, and of the one behind its last. */
  readonly from: number;
  readonly to: number;
}

/** One statement of a batch. */
export interface Statement {
  readonly tokens: readonly Token[];
  /** As it was sent. */
  readonly text: string;
}

const PATTERNS: readonly (readonly [Token["kind"] | "space", RegExp])[] = [
  ["space", /\s+|--[^\n]*|\/\*[^]*?\*\//y],
  ["text", /N?'(?:[^']|'')*'/y],
  ["name", /"(?:[^"]|"")*"|\[(?:[^\]]|\]\])*\]/y],
  ["binary", /0[xX][0-9a-fA-F]*/y],
  ["number", /\d+(?:\.\d+)?/y],
  ["variable", /@@?\w+/y],
  ["word", /[A-Za-z_#][\w#$]*/y],
  ["symbol", /<>|<=|>=|!=|::|[-+*/%=<>(),.;]/y],
];

/** @throws TdsError 102 for what is no T-SQL */
export function tokensOf(batch: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < batch.length;) {
    const [kind, text] = tokenAt(batch, at);
    if (kind !== "space") {
      const content = kind === "word" ? text.toLowerCase() : contentOf(kind, text);
      tokens.push({ kind, text: content, from: at, to: at + text.length });
    }
    at += text.length;
  }
  return tokens;
}

/** Divides a batch at semicolons, and in front of each SET that follows another one. */
export function statementsOf(batch: string): readonly Statement[] {
  const statements: Statement[] = [];
  let current: Token[] = [];
  const end = () => {
    const [first, last] = [current[0], current.at(-1)];
    if (first !== undefined && last !== undefined) {
      statements.push({ tokens: current, text: batch.slice(first.from, last.to) });
    }
    current = [];
  };
  for (const token of tokensOf(batch)) {
    const isSet = token.kind === "word" && token.text === "set";
    if (isSet && current[0]?.text === "set") end();
    if (token.kind === "symbol" && token.text === ";") end();
    else current.push(token);
  }
  end();
  return statements;
}

/** Reads the tokens of a statement one after the other. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#tokens.length;
  }

  peek(ahead = 0): Token | undefined {
    return this.#tokens[this.#at + ahead];
  }

  next(): Token {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw syntaxError("the end of the statement");
    return token;
  }

  /** Takes these words or symbols if they are next. */
  take(...texts: readonly string[]): boolean {
    const isNext = texts.every((text, ahead) => {
      const token = this.peek(ahead);
      return (token?.kind === "word" || token?.kind === "symbol") && token.text === text;
    });
    if (isNext) this.#at += texts.length;
    return isNext;
  }

  /** @throws TdsError 102 when they are not next */
  expect(...texts: readonly string[]): void {
    if (!this.take(...texts)) throw syntaxError(this.peek()?.text ?? "the end of the statement");
  }

  /** Takes the name of a table or column, `dbo.` in front of it included. */
  name(): string {
    this.take("dbo", ".");
    const token = this.next();
    if (token.kind !== "word" && token.kind !== "name") throw syntaxError(token.text);
    if (token.kind === "word" && RESERVED.has(token.text)) {
      throw new TdsError(156, `Incorrect syntax near the keyword '${token.text}'.`, 15);
    }
    return token.text;
  }

  /** @throws TdsError 102 when something is left */
  end(): void {
    if (!this.isAtEnd) throw syntaxError(this.peek()!.text);
  }
}

/** Words that name nothing unless they are quoted: those of T-SQL that schemas are likely to use. */
export const RESERVED: ReadonlySet<string> = new Set([
  ...["add", "all", "alter", "and", "any", "as", "asc", "authorization", "backup", "begin"],
  ...[
    "between",
    "break",
    "browse",
    "bulk",
    "by",
    "cascade",
    "case",
    "check",
    "checkpoint",
    "close",
  ],
  ...["clustered", "coalesce", "collate", "column", "commit", "constraint", "contains", "continue"],
  ...["convert", "create", "cross", "current", "cursor", "database", "default", "delete", "deny"],
  ...["desc", "distinct", "double", "drop", "dump", "else", "end", "escape", "except", "exec"],
  ...["execute", "exists", "exit", "external", "fetch", "file", "for", "foreign", "from", "full"],
  ...["function", "goto", "grant", "group", "having", "holdlock", "identity", "if", "in", "index"],
  ...["inner", "insert", "intersect", "into", "is", "join", "key", "kill", "left", "like", "load"],
  ...["merge", "national", "not", "null", "of", "off", "offsets", "on", "open", "option", "or"],
  ...["order", "outer", "over", "percent", "pivot", "plan", "primary", "print", "proc", "public"],
  ...["raiserror", "read", "references", "restore", "return", "revoke", "right", "rollback"],
  ...["rule", "save", "schema", "select", "set", "statistics", "table", "then", "to", "top"],
  ...["tran", "transaction", "trigger", "truncate", "union", "unique", "update", "use", "user"],
  ...["values", "view", "when", "where", "while", "with"],
]);

function tokenAt(batch: string, at: number): readonly [Token["kind"] | "space", string] {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = at;
    const [text] = pattern.exec(batch) ?? [];
    if (text !== undefined) return [kind, text];
  }
  throw syntaxError(batch[at]!);
}

function contentOf(kind: Token["kind"], text: string): string {
  if (kind === "text") return text.slice(text.indexOf("'") + 1, -1).replaceAll("''", "'");
  if (kind !== "name") return text;
  const inner = text.slice(1, -1);
  return text.startsWith("[") ? inner.replaceAll("]]", "]") : inner.replaceAll('""', '"');
}
