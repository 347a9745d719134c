import type { Cluster } from "../cluster/mod.ts";

/**
 * Waits until the first node of every datacenter has a link to every other datacenter and a link
 * from it. Datacenters find each other only after they have started, and a link that comes up late
 * moves the metrics that a scenario may want to see at rest.
 */
export async function untilAllLinked(cluster: Cluster): Promise<void> {
  const others = cluster.datacenters.length - 1;
  for (const datacenter of cluster.datacenters) {
    const url = datacenter.adminUrl("/api/links");
    await cluster.until(async () => {
      const { hosts, incoming } = await (await fetch(url)).json() as {
        readonly hosts: readonly { readonly openLinks: number }[];
        readonly incoming: readonly { readonly host?: string }[];
      };
      const from = new Set(incoming.flatMap(({ host }) => host ?? []));
      return hosts.filter(({ openLinks }) => openLinks > 0).length === others &&
        from.size === others;
    }, { what: `${datacenter.name} is linked to all others, and they to it` });
  }
}
