import type { CausewayConfiguration, Cluster } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Letters } from "./_letters.ts";
import { Stage } from "./_stage.ts";
import { endpointsTowards } from "./_two_endpoints.ts";

const EXPIRE_AFTER_SECONDS = 10;

/** A set that a live node renews never expires, so names of dead nodes must be removed from it. */
export const STALE_NAMES: Scenario = {
  name: "stale-node-names",
  summary: "names of dead nodes and datacenters are pruned, and no node uses them",
  replications: REPLICATIONS,
  options: {
    datacenters: 2,
    links: "direct",
    configure({ modules }: CausewayConfiguration) {
      const { connections, redis } = modules.mod_global_distrib;
      Object.assign(connections, {
        endpoint_refresh_interval: 1,
        endpoint_refresh_interval_when_empty: 1,
        disabled_gc_interval: 1,
      });
      Object.assign(redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    const nodes = `${dc2.localHost}#{nodes}`;
    const former = dc2.node.ready.node;
    const formerEndpoints = dc2.node.ready.links.map(({ host, port }) => `${host}#${port}`);
    await untilMembers(cluster, nodes, [former]);
    await untilMembers(cluster, "hosts", [dc1.localHost, dc2.localHost]);

    // A node with another name replaces one that was killed, as when a machine is replaced.
    await dc2.node.kill();
    const successor = `node2@${dc2.localHost}`;
    dc2.node.configuration.node_name = successor;
    await dc2.node.start();
    // Add the leftovers of a datacenter that was shut down long ago, including endpoints.
    const ghost = `dc9.${cluster.globalHost}`;
    for (const { redisClient } of cluster.datacenters) {
      await redisClient.call("SADD", nodes, `ghost@${dc2.localHost}`);
      await redisClient.call("SADD", `${dc2.localHost}#ghost@${dc2.localHost}#{endpoints}`, TRAP);
      await redisClient.call("SADD", "hosts", ghost);
      await redisClient.call("SADD", `${ghost}#{nodes}`, `node1@${ghost}`);
      await redisClient.call("SADD", `${ghost}#node1@${ghost}#{endpoints}`, TRAP);
    }
    await untilMembers(cluster, nodes, [successor]);
    await untilMembers(cluster, "hosts", [dc1.localHost, dc2.localHost]);
    say(`the tables list only ${successor} for dc2, and only the datacenters dc1 and dc2`);

    const { links } = dc2.node.ready;
    const wanted = links.map(({ host, port }) => `${host}#${port}`).join();
    await cluster.until(async () => {
      const endpoints = await endpointsTowards(dc1, dc2.localHost);
      return endpoints.map(({ endpoint }) => endpoint).join() === wanted &&
        endpoints.every(({ lanes }) => lanes.every(({ state }) => state === "open"));
    }, { what: "dc1 is linked to dc2's present node, and knows no other endpoint" });
    if (dc1.node.logs.some((line) => line.includes(TRAP))) {
      throw new Error("Expected nobody to try the endpoint of a node without a lease");
    }
    if (!dc1.node.logs.some((line) => formerEndpoints.some((name) => line.includes(name)))) {
      throw new Error("Expected dc1 to have been linked to the former node");
    }
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await stage.untilTableSaysOfSession(alice, "dc1");
    await new Letters(bob).expectOf(alice);
    await new Letters(alice).expectOf(bob);
    await alice.expectNothingElse(bob);
    await bob.expectNothingElse(alice);
    say("dc1 knows one endpoint of dc2, the live node's, and messages use it");
  },
};

/** Nobody listens there. */
const TRAP = "127.0.0.1#1";

/** Waits until a set has exactly these members in every datacenter's Redis. */
async function untilMembers(
  cluster: Cluster,
  key: string,
  wanted: readonly string[],
): Promise<void> {
  for (const { name, redisClient } of cluster.datacenters) {
    let seen: readonly string[] = [];
    await cluster.until(async () => {
      seen = await redisClient.call("SMEMBERS", key) as string[]; // SMEMBERS returns a list of members
      return seen.toSorted().join() === wanted.toSorted().join();
    }, {
      what: `${key} has ${wanted.join(", ")} in ${name}'s table`,
      evidence: () => `it has ${seen.join(", ")}`,
    });
  }
}
