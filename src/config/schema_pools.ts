import { z } from "zod";
import { withWords } from "./schema_words.ts";

/**
 * Any pool is a finding until a backend opens it (`not_yet.ts`); its options come with that backend, so here
 * only the shape `outgoing_pools.KIND.NAME` is fixed.
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
