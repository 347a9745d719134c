import { z } from "zod";
import { withWords } from "./schema_words.ts";

/** Options of a pool belong to its backend; here only the shape `outgoing_pools.KIND.NAME` is fixed. */
function pools(product: string) {
  return withWords(z.record(z.string().min(1), z.looseObject({})), {
    allowed: "a table of pools by name",
  }).optional().describe(`pools to ${product}`);
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
