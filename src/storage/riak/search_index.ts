import type { RiakClient } from "./riak_client.ts";

/** Conditions in one pair of brackets. Solr takes 1024 of them. */
const MAX_CLAUSES = 500;

/** One query of a search index. */
export interface SearchQuery {
  /** At least one condition. All must hold. They are made with `solr_text.ts`. */
  readonly conditions: readonly string[];
  /** Field and direction, such as `sent_register asc`. */
  readonly sort: string;
  readonly limit: number;
  /** Fields of each document that are wanted. */
  readonly fields: readonly string[];
  readonly action: string;
}

/** A document that was found: its fields. */
export type FoundDocument = Readonly<Record<string, string | number>>;

/** Asks a search index. Documents are in it about a second after they were written. */
export async function searchIndex(
  client: RiakClient,
  index: string,
  { conditions, sort, limit, fields, action }: SearchQuery,
): Promise<{ readonly found: number; readonly documents: readonly FoundDocument[] }> {
  // The query may be longer than a path.
  const form = new URLSearchParams({
    wt: "json",
    // As filters (`fq`) Solr would evaluate each over the whole index, and keep them in its cache.
    q: allOf(conditions),
    sort,
    start: "0",
    rows: `${limit}`,
    fl: fields.join(","),
  });
  const { body } = await client.request({
    method: "POST",
    path: ["search", "query", index],
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: `${form}`,
    accepts: [200],
    action,
  });
  const { response } = JSON.parse(new TextDecoder().decode(body)) as {
    readonly response: { readonly numFound: number; readonly docs: readonly FoundDocument[] };
  };
  return { found: response.numFound, documents: response.docs };
}

/** Returns the condition that all of these hold. */
function allOf(conditions: readonly string[]): string {
  if (conditions.length <= MAX_CLAUSES) return conditions.join(" AND ");
  const groups: string[] = [];
  for (let i = 0; i < conditions.length; i += MAX_CLAUSES) {
    groups.push(`(${conditions.slice(i, i + MAX_CLAUSES).join(" AND ")})`);
  }
  return groups.join(" AND ");
}
