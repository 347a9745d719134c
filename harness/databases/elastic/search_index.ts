import type { Document, Source } from "./documents.ts";
import { compile, objectOf, only, RefusedQuery } from "./documents.ts";

/** An answer with its HTTP status. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Types of fields that the double knows, with the parameters of each. */
const FIELD_TYPES: Readonly<Record<string, readonly string[]>> = {
  keyword: ["type", "doc_values"],
  text: ["type", "norms", "index_options"],
  long: ["type"],
  integer: ["type"],
};

/** A change of a document, as it is kept. */
export type Change =
  | { readonly kind: "put"; readonly document: Document }
  | { readonly kind: "delete"; readonly id: string };

/** One index: its newest documents, and those that searches find. */
export class SearchIndex {
  readonly type: string;
  readonly mapping: Source;
  readonly uuid = crypto.randomUUID();
  readonly blocks = new Set<string>();
  readonly #newest = new Map<string, Document>();
  readonly #searchable = new Map<string, Document>();
  readonly #changed = new Set<string>();

  /** @throws RefusedQuery for a mapping that a server of this version refuses */
  constructor(body: Source, major: number) {
    const { mappings } = only(body, ["mappings"]);
    const [[type, mapping] = [], ...more] = Object.entries(objectOf(mappings, "mappings"));
    if (type === undefined || more.length > 0) {
      throw new RefusedQuery("Rejecting mapping update: the mapping would have no or many types");
    }
    const known = ["dynamic", "_routing", "_meta", "properties", ...(major === 5 ? ["_all"] : [])];
    const { properties, _routing: routing } = only(objectOf(mapping, type), known);
    for (const [name, field] of Object.entries(objectOf(properties, "properties"))) {
      const { type: fieldType } = objectOf(field, name);
      const parameters = FIELD_TYPES[String(fieldType)];
      if (parameters === undefined) throw new RefusedQuery(`No handler for type [${fieldType}]`);
      only(objectOf(field, name), parameters);
    }
    if (routing !== undefined) only(objectOf(routing, "_routing"), ["required"]);
    this.type = type;
    this.mapping = objectOf(mapping, type);
  }

  get(id: string): Document | undefined {
    return this.#newest.get(id);
  }

  apply(change: Change): void {
    const id = change.kind === "put" ? change.document.id : change.id;
    if (change.kind === "put") this.#newest.set(id, change.document);
    else this.#newest.delete(id);
    this.#changed.add(id);
  }

  /** Lets searches find what was changed. */
  refresh(): void {
    for (const id of this.#changed) {
      const document = this.#newest.get(id);
      if (document === undefined) this.#searchable.delete(id);
      else this.#searchable.set(id, document);
    }
    this.#changed.clear();
  }

  search(body: Source, routing: string | undefined): unknown {
    const { size = 10, sort, _source: fields, query } = only(body, [
      ...["size", "sort", "_source", "query"] as const,
    ]);
    if (!Number.isInteger(size) || (size as number) > 10_000) {
      throw new RefusedQuery("Result window is too large, from + size must be less than [10000]");
    }
    const test = compile(query);
    const found = [...this.#searchable.values()].filter((document) =>
      (routing === undefined || document.routing === routing) && test(document)
    );
    sortBy(found, sort);
    return {
      took: 1,
      timed_out: false,
      _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
      hits: {
        total: found.length,
        max_score: null,
        hits: found.slice(0, size as number).map(({ id, routing, source }) => ({
          _type: this.type,
          _id: id,
          _score: null,
          _routing: routing,
          ...sourceOf(source, fields),
        })),
      },
    };
  }
}

/** Returns what an answer shows of a document. */
export function sourceOf(source: Source, fields: unknown): { readonly _source?: Source } {
  if (fields === false) return {};
  if (!Array.isArray(fields)) throw new RefusedQuery("[_source] is neither false nor a list");
  const shown = fields.filter((name) => name in source).map((name) => [name, source[name]]);
  return { _source: Object.fromEntries(shown) };
}

function sortBy(documents: Document[], sort: unknown): void {
  if (sort === undefined) return;
  const [key, ...more] = Array.isArray(sort) ? sort : [];
  if (more.length > 0) throw new RefusedQuery("more than one [sort]");
  if (key === "_doc") return;
  const { position } = only(objectOf(key, "sort"), ["position"]);
  if (position !== "asc" && position !== "desc") throw new RefusedQuery("Illegal sort order");
  const sign = position === "asc" ? 1 : -1;
  documents.sort((one, other) =>
    sign * (Number(one.source["position"]) - Number(other.source["position"]))
  );
}
