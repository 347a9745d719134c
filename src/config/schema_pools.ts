import { z } from "zod";
import { withWords } from "./schema_words.ts";

/**
 * Builds the schema of one kind of pool. Any pool is a finding until a backend opens it
 * (`not_yet.ts`). The options of a pool come with that backend, so only the shape
 * `outgoing_pools.KIND.NAME` is fixed here.
 */
function pools(product: string) {
  return withWords(z.record(z.string().min(1), z.looseObject({})), {
    allowed: "a table of pools by name",
  }).optional().describe(`pools to ${product}; not served yet`);
}

/** `[outgoing_pools]`. */
export const OUTGOING_POOLS = z.strictObject({
  cassandra: pools("Cassandra"),
  elastic: pools("Elasticsearch"),
  ldap: pools("LDAP"),
  rdbms: pools("MySQL, PostgreSQL or Microsoft SQL Server"),
  redis: pools("Redis"),
  riak: pools("Riak"),
});
