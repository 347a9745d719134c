import type { ServerProductId } from "../catalogue/catalogue.ts";
import { isAtLeast } from "../catalogue/catalogue.ts";

/** A server as it describes itself. */
export interface ElasticVersion {
  readonly product: Extract<ServerProductId, "elasticsearch" | "opensearch">;
  /** Such as `7.17.29`. */
  readonly version: string;
}

/** State of a document that a change of it refers to, so that it fails when another came first. */
export type DocumentStamp = Readonly<Record<string, number>>;

/** Fields of a document in answers, apart from its content. */
export interface StampFields {
  readonly _version?: number;
  readonly _seq_no?: number;
  readonly _primary_term?: number;
}

/** Differences between versions of the servers. Pure. */
export interface ElasticDialect {
  /** True below Elasticsearch 7: paths and mappings name a type. */
  readonly hasTypes: boolean;
  /** True for Elasticsearch 5, whose indices have a field of all texts unless told otherwise. */
  readonly hasAllField: boolean;
  /** Fields of a search that need no count of all hits; undefined where each search has it. */
  readonly countsAtMost: boolean;
  /** Returns what a change needs so that it hits this state of the document alone. */
  stampOf(fields: StampFields): DocumentStamp;
}

/** Returns the dialect of a server. */
export function dialectOf({ product, version }: ElasticVersion): ElasticDialect {
  const isTyped = product === "elasticsearch" && !isAtLeast(version, "7");
  if (isTyped) {
    return {
      hasTypes: true,
      hasAllField: !isAtLeast(version, "6"),
      countsAtMost: false,
      stampOf: ({ _version }) => ({ version: _version! }), // each answer about a document has it
    };
  }
  return {
    hasTypes: false,
    hasAllField: false,
    countsAtMost: true,
    stampOf: ({ _seq_no, _primary_term }) => ({
      if_seq_no: _seq_no!, // as above
      if_primary_term: _primary_term!,
    }),
  };
}
