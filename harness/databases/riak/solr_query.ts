import { Refusal } from "./data_types.ts";

/** A query of Solr's standard parser, as far as the double knows its syntax. */
export type SolrClause =
  | { readonly kind: "all" }
  | { readonly kind: "term"; readonly field: string; readonly text: string }
  | { readonly kind: "prefix"; readonly field: string; readonly text: string }
  | {
    readonly kind: "range";
    readonly field: string;
    readonly from: string | undefined;
    readonly to: string | undefined;
  }
  | { readonly kind: "and" | "or"; readonly clauses: readonly SolrClause[] }
  | { readonly kind: "not"; readonly clause: SolrClause };

/** Clauses that Solr takes between one pair of brackets. */
const MAX_CLAUSES = 1_024;

/** Characters that end a bare word or mean something in it. */
const SPECIAL = new Set([...'+-!(){}[]^"~*?:/&| \t\r\n']);

/**
 * Parses a query: fields with words, phrases, prefixes and ranges, with AND, OR, NOT and brackets.
 * Two clauses need AND or OR between them: what Solr does without depends on its settings.
 *
 * @throws Refusal with Solr's status
 */
export function parseSolrQuery(text: string): SolrClause {
  const parser = new SolrParser(text);
  const clause = parser.parseOr();
  parser.expectEnd();
  return clause;
}

class SolrParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parseOr(): SolrClause {
    const clauses = [this.#parseAnd()];
    while (this.#takeWord("OR")) clauses.push(this.#parseAnd());
    return clauses.length === 1 ? clauses[0]! : { kind: "or", clauses };
  }

  expectEnd(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#error();
  }

  #parseAnd(): SolrClause {
    const clauses = [this.#parseClause()];
    while (this.#takeWord("AND")) clauses.push(this.#parseClause());
    if (clauses.length > MAX_CLAUSES) {
      throw new Refusal(400, "org.apache.solr.search.SyntaxError: too many boolean clauses");
    }
    return clauses.length === 1 ? clauses[0]! : { kind: "and", clauses };
  }

  #parseClause(): SolrClause {
    if (this.#takeWord("NOT")) return { kind: "not", clause: this.#parseClause() };
    this.#skipSpace();
    if (this.#take("(")) {
      const inner = this.parseOr();
      this.#skipSpace();
      if (!this.#take(")")) throw this.#error();
      return inner;
    }
    if (this.#text.startsWith("*:*", this.#at)) {
      this.#at += 3;
      return { kind: "all" };
    }
    const field = /^[A-Za-z_][\w.]*/.exec(this.#text.slice(this.#at))?.[0];
    if (field === undefined) throw this.#error();
    this.#at += field.length;
    if (!this.#take(":")) throw this.#error();
    if (this.#take("[")) return this.#parseRange(field);
    if (this.#take('"')) return { kind: "term", field, text: this.#parsePhrase() };
    const word = this.#parseWord();
    if (word === "") throw this.#error();
    return this.#take("*")
      ? { kind: "prefix", field, text: word }
      : { kind: "term", field, text: word };
  }

  #parseRange(field: string): SolrClause {
    const bound = () => {
      this.#skipSpace();
      if (this.#take("*")) return undefined;
      if (this.#take('"')) return this.#parsePhrase();
      const word = this.#parseWord();
      if (word === "") throw this.#error();
      return word;
    };
    const from = bound();
    if (!this.#takeWord("TO")) throw this.#error();
    const to = bound();
    this.#skipSpace();
    if (!this.#take("]")) throw this.#error();
    return { kind: "range", field, from, to };
  }

  #parsePhrase(): string {
    let phrase = "";
    for (;;) {
      const character = this.#text[this.#at++];
      if (character === undefined) throw this.#error();
      if (character === '"') return phrase;
      phrase += character === "\\" ? this.#escaped() : character;
    }
  }

  #parseWord(): string {
    let word = "";
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined || SPECIAL.has(character)) return word;
      this.#at++;
      word += character === "\\" ? this.#escaped() : character;
    }
  }

  #escaped(): string {
    const character = this.#text[this.#at++];
    if (character === undefined) throw this.#error();
    return character;
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at++;
  }

  #take(token: string): boolean {
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  #takeWord(word: string): boolean {
    this.#skipSpace();
    const next = this.#text[this.#at + word.length] ?? " ";
    if (!/[\s(]/.test(next)) return false;
    return this.#take(word);
  }

  #error(): Refusal {
    return new Refusal(
      400,
      `org.apache.solr.search.SyntaxError: Cannot parse '${
        this.#text.slice(0, 200)
      }' at ${this.#at}`,
    );
  }
}
