import { syntaxError, TdsError } from "./tds_error.ts";
import type { Token } from "./transact_sql.ts";
import { RESERVED, TokenReader } from "./transact_sql.ts";
import type { Parameter, ValueKind } from "./values.ts";

/** Facts about a database that a translation needs. */
export interface Catalogue {
  /** Kinds of the columns of that name, in whatever tables. */
  kindsOf(column: string): ReadonlySet<ValueKind>;
}

/** A statement for SQLite. Its parameters are named `p_` and their name. */
export interface Translation {
  readonly sql: string;
  /** True when it needs the lock of those who write. */
  readonly writes: boolean;
}

/** Words of queries that mean the same to SQLite. */
const KEYWORDS = new Set([
  ...["select", "distinct", "from", "where", "and", "or", "not", "in", "exists", "between", "like"],
  ...["is", "null", "case", "when", "then", "else", "end", "as", "on", "inner", "left", "outer"],
  ...["join", "cross", "group", "by", "having", "order", "asc", "desc", "union", "all", "insert"],
  ...["into", "values", "update", "set", "delete", "escape", "default", "over", "partition"],
]);

/** Functions, with the names that SQLite has for them. */
const FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ...["count", "sum", "min", "max", "coalesce", "lower", "upper", "replicate", "row_number"].map(
    (name): [string, string] => [name, name],
  ),
  ...["serverproperty", "db_id", "schema_id", "object_id", "db_name", "abs"].map(
    (name): [string, string] => [name, name],
  ),
  ["count_big", "count"],
  ["datalength", "length"],
  ["isnull", "ifnull"],
]);

const COMPARISONS = new Set(["=", "<>", "!=", "<", ">", "<=", ">="]);
/** Hints of a table that lock what is read. */
const LOCKING_HINTS = new Set(["updlock", "xlock", "holdlock", "rowlock", "serializable"]);

/**
 * Translates a query or change of rows from T-SQL for SQLite. It knows the constructs that it knows,
 * and refuses every other one.
 *
 * @throws TdsError as the server would
 */
export function translate(
  tokens: readonly Token[],
  parameters: readonly Parameter[],
  catalogue: Catalogue,
): Translation {
  return new Translator(tokens, parameters, catalogue).run();
}

class Translator {
  readonly #reader: TokenReader;
  readonly #parameters: ReadonlyMap<string, Parameter>;
  readonly #catalogue: Catalogue;
  #writes: boolean;
  /** The column in front of a comparison. */
  #column: string | undefined;

  constructor(
    tokens: readonly Token[],
    parameters: readonly Parameter[],
    catalogue: Catalogue,
  ) {
    this.#reader = new TokenReader(tokens);
    this.#parameters = new Map(parameters.map((each) => [each.name.toLowerCase(), each]));
    this.#catalogue = catalogue;
    this.#writes = tokens[0]?.text !== "select";
  }

  run(): Translation {
    const sql = this.#block(0);
    this.#reader.end();
    return { sql, writes: this.#writes };
  }

  /** Translates up to the parenthesis that closes this block, or to the end. */
  #block(depth: number): string {
    const out: string[] = [];
    let limit: string | undefined;
    let [isOrdered, isUnion, isQuery, rows] = [false, false, false, 0];
    while (!this.#reader.isAtEnd && this.#reader.peek()!.text !== ")") {
      if (this.#reader.take("order", "by")) {
        isOrdered = true;
        out.push("ORDER BY");
        continue;
      }
      if (this.#reader.take("offset")) {
        limit = this.#page();
        continue;
      }
      const token = this.#reader.next();
      if (token.kind === "word" && token.text === "top") {
        if (!isQuery) throw syntaxError("top");
        limit = `LIMIT ${this.#count()}`;
        continue;
      }
      if (token.text === "select") isQuery = true;
      if (token.text === "union") isUnion = true;
      if (token.text === "values" && ++rows > 0) this.#checkRows();
      out.push(this.#translated(token, depth));
    }
    if (limit !== undefined && isUnion) throw syntaxError("union");
    if (isOrdered && limit === undefined && depth > 0) {
      throw new TdsError(1033, "The ORDER BY clause is invalid in subqueries without TOP.", 15);
    }
    return [...out, ...limit === undefined ? [] : [limit]].join(" ");
  }

  #translated(token: Token, depth: number): string {
    switch (token.kind) {
      case "number":
        return token.text;
      case "binary":
        return `X'${token.text.slice(2)}'`;
      case "text":
        this.#checkKind("text");
        return `'${token.text.replaceAll("'", "''")}'`;
      case "variable":
        return this.#variable(token.text);
      case "name":
        return this.#named(token.text);
      case "symbol":
        return this.#symbol(token.text, depth);
      default:
        return this.#word(token.text, depth);
    }
  }

  #symbol(text: string, depth: number): string {
    if (text === "(") {
      const column = this.#column;
      const inner = this.#block(depth + 1);
      this.#reader.expect(")");
      this.#column = column;
      return `(${inner})`;
    }
    if (text === ".") return ".";
    if (text === ",") return ","; // the values of an IN keep their column
    if (!COMPARISONS.has(text)) this.#column = undefined;
    if (text === "::") throw syntaxError("::");
    return text;
  }

  #word(text: string, depth: number): string {
    if (text === "with") return this.#hints();
    if (text === "convert") return this.#convert();
    if (text === "datediff") return this.#secondsSince2020();
    if (text === "sys" && this.#reader.take(".")) return `sys_${this.#reader.name()}`;
    if (text === "dbo" && this.#reader.take(".")) return this.#named(this.#reader.name());
    if (this.#reader.peek()?.text === "(" && FUNCTIONS.has(text)) {
      this.#column = undefined;
      return FUNCTIONS.get(text)!;
    }
    if (KEYWORDS.has(text)) {
      if (text !== "in") this.#column = undefined;
      if (text === "insert" && depth === 0 && this.#reader.peek()?.text !== "into") {
        throw syntaxError("insert"); // T-SQL allows it, and nobody of ours sends it
      }
      return text.toUpperCase();
    }
    if (this.#reader.peek()?.text === "(" && !this.#isColumnList()) {
      throw new TdsError(195, `'${text}' is not a recognized built-in function name.`, 15);
    }
    if (RESERVED.has(text)) {
      throw new TdsError(156, `Incorrect syntax near the keyword '${text}'.`, 15);
    }
    return this.#named(text);
  }

  /** True when a name is followed by the columns of an insertion. */
  #isColumnList(): boolean {
    for (let ahead = 1;; ahead += 2) {
      const [name, separator] = [this.#reader.peek(ahead), this.#reader.peek(ahead + 1)];
      if (name?.kind !== "name" && name?.kind !== "word") return false;
      if (separator?.text === ")") {
        const next = this.#reader.peek(ahead + 2)?.text;
        return next === "values" || next === "select";
      }
      if (separator?.text !== ",") return false;
    }
  }

  #named(text: string): string {
    this.#column = text;
    return `"${text.replaceAll('"', '""')}"`;
  }

  #variable(text: string): string {
    const name = text.slice(1).toLowerCase();
    const parameter = this.#parameters.get(name);
    if (parameter === undefined) {
      throw new TdsError(137, `Must declare the scalar variable "${text}".`, 15);
    }
    this.#checkKind(parameter.kind);
    return `@p_${name}`;
  }

  /** Text is not compared with bytes: the server does not make one of the other by itself. */
  #checkKind(kind: ValueKind): void {
    if (kind !== "text" || this.#column === undefined) return;
    const kinds = this.#catalogue.kindsOf(this.#column);
    if (kinds.size !== 1 || !kinds.has("binary")) return;
    const message = "Implicit conversion from data type nvarchar to varbinary is not allowed.";
    throw new TdsError(257, message);
  }

  /** The hints behind a table. They say nothing to SQLite, but some of them lock. */
  #hints(): string {
    this.#reader.expect("(");
    do {
      const hint = this.#reader.next().text;
      if (!LOCKING_HINTS.has(hint)) throw syntaxError(hint);
      this.#writes = true;
    } while (this.#reader.take(","));
    this.#reader.expect(")");
    return "";
  }

  /** `CONVERT(type, value [, style])`; the style 2 reads hexadecimal digits. */
  #convert(): string {
    this.#reader.expect("(");
    this.#column = undefined;
    const type = this.#reader.next().text;
    let length = "-1";
    if (this.#reader.take("(")) {
      const token = this.#reader.next();
      length = token.text === "max" ? "-1" : String(Number(token.text));
      this.#reader.expect(")");
    }
    this.#reader.expect(",");
    const parts: string[] = [];
    let style = "";
    for (;;) {
      if (this.#reader.isAtEnd) throw syntaxError("convert");
      if (this.#reader.take(")")) break;
      if (this.#reader.take(",")) {
        style = this.#reader.next().text;
        this.#reader.expect(")");
        break;
      }
      parts.push(this.#translated(this.#reader.next(), 1));
    }
    const value = parts.join(" ");
    if (type === "binary" || type === "varbinary") {
      if (style === "") return `CAST(${value} AS BLOB)`;
      if (style !== "2") throw syntaxError("convert");
      return `tds_hex(${value}, ${length})`;
    }
    if (["varchar", "nvarchar", "char"].includes(type)) return `CAST(${value} AS TEXT)`;
    if (["int", "bigint"].includes(type)) return `CAST(${value} AS INTEGER)`;
    throw new TdsError(243, `Type ${type} is not a defined system type.`);
  }

  /** `DATEDIFF(SECOND, '2020-01-01', SYSUTCDATETIME())`, the only difference of times that is known. */
  #secondsSince2020(): string {
    const expected = ["(", "second", ",", "2020-01-01", ",", "sysutcdatetime", "(", ")", ")"];
    for (const text of expected) {
      const token = this.#reader.next();
      if (token.text !== text) throw syntaxError(token.text);
    }
    return "(unixepoch() - 1577836800)";
  }

  #count(): string {
    const hasParentheses = this.#reader.take("(");
    const token = this.#reader.next();
    if (token.kind !== "number" && token.kind !== "variable") throw syntaxError(token.text);
    if (hasParentheses) this.#reader.expect(")");
    return token.kind === "number" ? token.text : this.#variable(token.text);
  }

  /** `OFFSET n ROWS [FETCH NEXT m ROWS ONLY]` */
  #page(): string {
    const offset = this.#count();
    if (!this.#reader.take("rows")) this.#reader.expect("row");
    let count = "-1";
    if (this.#reader.take("fetch")) {
      if (!this.#reader.take("next")) this.#reader.expect("first");
      count = this.#count();
      if (!this.#reader.take("rows")) this.#reader.expect("row");
      this.#reader.expect("only");
    }
    return `LIMIT ${count} OFFSET ${offset}`;
  }

  /** Refuses more rows than one insertion may have. */
  #checkRows(): void {
    let [depth, rows] = [0, 0];
    for (let ahead = 0;; ahead++) {
      const text = this.#reader.peek(ahead)?.text;
      if (text === undefined) break;
      if (text === "(" && depth++ === 0) rows++;
      if (text === ")") depth--;
    }
    if (rows > 1000) {
      throw new TdsError(10738, "The number of row value expressions exceeds 1000.", 15);
    }
  }
}
