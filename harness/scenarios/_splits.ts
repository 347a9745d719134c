import type { Cluster, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import { Figures } from "./_figures.ts";

const LINK_SILENCE_SECONDS = 1.5;

/**
 * Options of datacenters that drop silent links quickly, cache locations for a moment only, and let
 * entries expire after `expireAfterSeconds`.
 */
export function easilySplit(expireAfterSeconds: number): ClusterOptions {
  return {
    configure(configuration) {
      const distribution = configuration.modules.mod_global_distrib;
      Object.assign(distribution.redis, { expire_after: expireAfterSeconds, refresh_after: 1 });
      distribution["cache"] = { jid_lifetime_seconds: 1 };
      configuration["limits"] = { link_silence_timeout: LINK_SILENCE_SECONDS };
    },
  };
}

/** Waits until `here` has no link to `there`. */
export async function untilLinkIsDown(
  cluster: Cluster,
  here: Datacenter,
  there: Datacenter,
): Promise<void> {
  const labels = { host: there.localHost };
  await cluster.until(
    async () => (await Figures.read(here)).sum("mod_global_distrib_links_open", labels) === 0,
    { what: `${here.name} has given up its links to ${there.name}` },
  );
}
