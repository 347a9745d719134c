import type { RiakClient } from "./riak_client.ts";

/** One query of a search index. */
export interface SearchQuery {
  /** Conditions that must all hold, made with `solr_text.ts`. */
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
    q: "*:*",
    sort,
    start: "0",
    rows: `${limit}`,
    fl: fields.join(","),
  });
  for (const condition of conditions) form.append("fq", condition);
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
