import type { PartialFile } from "./partial_file.ts";
import type { Mistake } from "./shape_findings.ts";

/**
 * What the configuration may say by contract and this version does not do. Each is an error, since
 * going on without it would be silent; a version that does it deletes the line here.
 */
export function findNotYetServed(file: PartialFile): Mistake[] {
  const mistakes: Mistake[] = Object.entries(file.outgoing_pools ?? {}).flatMap(([kind, pools]) =>
    Object.keys(pools ?? {}).map((name) => ({
      path: ["outgoing_pools", kind, name],
      problem:
        "connections to other databases are not served by this version: accounts are kept in " +
        "the built-in store (storage.internal), and the session table in " +
        "modules.mod_global_distrib.redis; remove the table",
    }))
  );
  for (const [host, config] of Object.entries(file.host_config ?? {})) {
    if (config?.modules?.mod_offline !== undefined) {
      mistakes.push({
        path: ["host_config", host, "modules", "mod_offline"],
        problem: "offline storage is not served by this version; remove the table",
      });
    }
  }
  return mistakes;
}
