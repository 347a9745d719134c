import type { PartialFile } from "./partial_file.ts";
import type { Mistake } from "./shape_findings.ts";

/**
 * Finds options that the configuration format defines but this version does not implement. Each is
 * an error: ignoring it would be silent. The version that implements an option deletes its line
 * here.
 */
export function findNotYetServed(file: PartialFile): Mistake[] {
  const { rdbms: _rdbms, ldap: _ldap, ...others } = file.outgoing_pools ?? {};
  return Object.entries(others).flatMap(([kind, pools]) =>
    Object.keys(pools ?? {}).map((name) => ({
      path: ["outgoing_pools", kind, name],
      problem: "pools of this kind are not served by this version: accounts are kept in the " +
        "built-in store (storage.internal) or in an SQL database (outgoing_pools.rdbms), and " +
        "the session table in modules.mod_global_distrib.redis; remove the table",
    }))
  );
}
