import { Refusal } from "./data_types.ts";
import type { SolrSchema } from "./solr_schema.ts";
import { parseSolrQuery } from "./solr_query.ts";
import type { SolrClause } from "./solr_query.ts";

/** A document, by the names of its fields. */
export type SolrDocument = ReadonlyMap<string, readonly string[]>;

/** Bytes of the longest term that Lucene takes. */
const MAX_TERM_BYTES = 32_766;

/** Place of an object. */
export interface ObjectPlace {
  readonly type: string;
  readonly bucket: string;
  readonly key: string;
}

/** A search index: documents become visible with a commit, as Solr's soft commits do it. */
export class SolrIndex {
  readonly schemaName: string;
  readonly #schema: SolrSchema;
  readonly #visible = new Map<string, SolrDocument>();
  readonly #waiting = new Map<string, SolrDocument | undefined>();
  /** Reasons why objects were not indexed. Riak logs them and says nothing to the writer. */
  readonly failures: string[] = [];

  constructor(schemaName: string, schema: SolrSchema) {
    this.schemaName = schemaName;
    this.#schema = schema;
  }

  /** Indexes an object with its next commit; without fields, it is removed. */
  put(place: ObjectPlace, fields: readonly (readonly [string, string])[] | undefined): void {
    const id = JSON.stringify([place.type, place.bucket, place.key]);
    if (fields === undefined) {
      this.#waiting.set(id, undefined);
      return;
    }
    const document = new Map<string, string[]>([
      ["_yz_id", [id]],
      ["_yz_rt", [place.type]],
      ["_yz_rb", [place.bucket]],
      ["_yz_rk", [place.key]],
    ]);
    for (const [name, text] of fields) {
      const kind = this.#schema.kindOf(name);
      if (kind === undefined) return void this.failures.push(`unknown field '${name}'`);
      if (kind === "ignored") continue;
      if (kind === "long" && !/^-?\d{1,19}$/.test(text)) {
        return void this.failures.push(`not a long in '${name}': ${text}`);
      }
      if (kind === "string" && new TextEncoder().encode(text).length > MAX_TERM_BYTES) {
        return void this.failures.push(`immense term in '${name}'`);
      }
      document.set(name, [...document.get(name) ?? [], text]);
    }
    this.#waiting.set(id, document);
  }

  /** Makes visible what was indexed. */
  commit(): void {
    for (const [id, document] of this.#waiting) {
      if (document === undefined) this.#visible.delete(id);
      else this.#visible.set(id, document);
    }
    this.#waiting.clear();
  }

  clear(): void {
    this.#visible.clear();
    this.#waiting.clear();
  }

  /** Answers a query, as JSON. @throws Refusal */
  select(parameters: URLSearchParams): unknown {
    for (const name of parameters.keys()) {
      if (!["q", "sort", "start", "rows", "fl", "wt", "df"].includes(name)) {
        throw new Refusal(400, `The double does not know the parameter ${name}`);
      }
    }
    if (parameters.get("wt") !== "json") throw new Refusal(400, "The double answers wt=json alone");
    const clause = parseSolrQuery(parameters.get("q") ?? "");
    const found = [...this.#visible.values()].filter((document) => this.#matches(document, clause));
    const sorted = this.#sorted(found, parameters.get("sort"));
    const start = Number(parameters.get("start") ?? 0);
    const rows = Number(parameters.get("rows") ?? 10);
    if (!(Number.isInteger(start) && Number.isInteger(rows) && start >= 0 && rows >= 0)) {
      throw new Refusal(400, "start and rows are numbers");
    }
    const names = (parameters.get("fl") ?? "*").split(",");
    const docs = sorted.slice(start, start + rows).map((document) =>
      Object.fromEntries(
        [...document].filter(([name]) =>
          this.#schema.isStored(name) && (names.includes("*") || names.includes(name))
        )
          .map(([name, values]) => [
            name,
            this.#schema.kindOf(name) === "long" ? Number(values[0]) : values[0],
          ]),
      )
    );
    return {
      responseHeader: { status: 0, QTime: 1 },
      response: { numFound: found.length, start, docs },
    };
  }

  #sorted(documents: readonly SolrDocument[], sort: string | null): readonly SolrDocument[] {
    if (sort === null) return documents;
    const [, field = "", direction] = /^(\w+) (asc|desc)$/.exec(sort) ?? [];
    const kind = this.#schema.kindOf(field);
    if (kind === undefined || kind === "text") throw new Refusal(400, `Cannot sort by ${sort}`);
    const compare = (one: SolrDocument, other: SolrDocument) => {
      const [a, b] = [one.get(field)?.[0] ?? "", other.get(field)?.[0] ?? ""];
      return kind === "long" ? Number(a) - Number(b) : compareCodePoints(a, b);
    };
    return documents.toSorted((one, other) =>
      compare(one, other) * (direction === "desc" ? -1 : 1)
    );
  }

  #matches(document: SolrDocument, clause: SolrClause): boolean {
    switch (clause.kind) {
      case "all":
        return true;
      case "not":
        return !this.#matches(document, clause.clause);
      case "and":
        return clause.clauses.every((each) => this.#matches(document, each));
      case "or":
        return clause.clauses.some((each) => this.#matches(document, each));
      default: {
        const kind = this.#schema.kindOf(clause.field);
        if (kind === undefined) throw new Refusal(400, `undefined field ${clause.field}`);
        if (kind === "ignored" || kind === "shown") {
          throw new Refusal(400, `${clause.field} is not indexed`);
        }
        const values = document.get(clause.field) ?? [];
        if (clause.kind === "range") {
          return values.some((value) => isWithin(value, clause, kind === "long"));
        }
        if (clause.kind === "prefix") {
          const tokens = kind === "text" ? values.flatMap(tokensOf) : values;
          return tokens.some((token) => token.startsWith(clause.text));
        }
        if (kind !== "text") return values.includes(clause.text);
        const wanted = tokensOf(clause.text);
        return wanted.length > 0 && values.some((value) => holds(tokensOf(value), wanted));
      }
    }
  }
}

/** Compares texts as Lucene does: by the bytes of their UTF-8. */
export function compareCodePoints(one: string, other: string): number {
  // Without surrogates UTF-16 has the same order.
  if (!/[\ud800-\udfff]/.test(`${one}${other}`)) return one === other ? 0 : one < other ? -1 : 1;
  const [a, b] = [[...one], [...other]];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a[i]!.codePointAt(0)! - b[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Cuts a text into words in lower case, as Solr's standard tokenizer does with most scripts. */
function tokensOf(text: string): string[] {
  return (text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).map((token) => token.toLowerCase());
}

function holds(tokens: readonly string[], wanted: readonly string[]): boolean {
  return tokens.some((_, i) => wanted.every((token, j) => tokens[i + j] === token));
}

function isWithin(
  value: string,
  { from, to }: { readonly from: string | undefined; readonly to: string | undefined },
  isNumber: boolean,
): boolean {
  const compare = (one: string, other: string) =>
    isNumber ? Number(one) - Number(other) : compareCodePoints(one, other);
  return (from === undefined || compare(value, from) >= 0) &&
    (to === undefined || compare(value, to) <= 0);
}
