import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import { LinkProxy, type Target } from "../faults/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Letters } from "./_letters.ts";
import { Stage } from "./_stage.ts";
import { endpointsTowards, linksTowards } from "./_two_endpoints.ts";

const EXPIRE_AFTER_SECONDS = 10;

/** Links as in production: addresses come from Redis. */
const OPTIONS = {
  datacenters: 2,
  links: "direct",
  configure({ modules }: CausewayConfiguration) {
    const { connections, redis } = modules.mod_global_distrib;
    Object.assign(connections, {
      endpoint_refresh_interval: 1,
      endpoint_refresh_interval_when_empty: 1,
    });
    Object.assign(redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
  },
} as const;

const ADVERTISED: Scenario = {
  name: "advertised-endpoints",
  summary: "other datacenters connect to the advertised endpoints, not to the listening addresses",
  replications: ["builtin"],
  options: OPTIONS,
  async run(cluster, say) {
    await using proxy = new LinkProxy("advertised");
    await proxy.start();
    const dc2 = cluster.datacenter("dc2");
    await startAnew(dc2, ({ modules }) => {
      // A name stays a name: the other datacenters resolve it.
      const advertised = [{ host: "localhost", port: proxy.address.port }];
      modules.mod_global_distrib.connections["advertised_endpoints"] = advertised;
    });
    proxy.setTarget(dc2.node.ready.links[0]);
    const name = `localhost#${proxy.address.port}`;
    await untilListed(cluster, [name]);
    await untilLinked(cluster, [name]);
    const bytes = proxy.counts.forwardBytes;
    await talkBothWays(cluster);
    if (proxy.counts.forwardBytes === bytes) throw new Error("Expected the proxy to be used");
    say(`the tables have ${name} alone, dc1 is linked to it alone, and messages go that way`);
  },
};

const OVERRIDE: Scenario = {
  name: "global-distrib-addr",
  summary: "global_distrib_addr replaces the advertised endpoints, and nobody connects to those",
  options: OPTIONS,
  async run(cluster, say) {
    await using proxy = new LinkProxy("override");
    await using trap = new LinkProxy("advertised");
    await Promise.all([proxy.start(), trap.start()]);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    await dc1.node.stop();
    await startAnew(dc2, ({ modules }) => {
      modules.mod_global_distrib.connections["advertised_endpoints"] = [trap.address];
    });
    proxy.setTarget(dc2.node.ready.links[0]);
    await startAnew(dc1, (configuration) => {
      configuration.global_distrib_addr[dc2.localHost] = [proxy.address];
    });
    await untilListed(cluster, [nameOf(trap.address)]);
    await untilLinked(cluster, [nameOf(proxy.address)]);
    await talkBothWays(cluster);
    const { accepted, refusals } = trap.counts;
    if (accepted + refusals > 0) throw new Error("Expected nobody to try what is advertised");
    say("dc1 uses the endpoints of its own configuration, whatever the tables say");
  },
};

const ADDRESS_KINDS: Scenario = {
  name: "ipv6-and-named-endpoints",
  summary: "a datacenter listens on an IPv6 address and a name, and accepts links at both",
  replications: ["builtin"],
  options: OPTIONS,
  async run(cluster, say) {
    const dc2 = cluster.datacenter("dc2");
    await startAnew(dc2, ({ modules }) => {
      modules.mod_global_distrib.connections.endpoints = [
        { host: "::1", port: 0 },
        { host: "localhost", port: 0 },
      ];
    });
    const { links } = dc2.node.ready;
    if (links[0]?.host !== "::1" || !/^(127\.0\.0\.1|::1)$/.test(links[1]?.host ?? "")) {
      throw new Error(`Expected both to be bound as addresses: got ${JSON.stringify(links)}`);
    }
    const names = links.map(nameOf);
    await untilListed(cluster, names);
    await untilLinked(cluster, names);
    // Each new sender goes to the lane that has fewest: two senders use both.
    await talkBothWays(cluster, 2);
    const lanes = (await endpointsTowards(cluster.datacenter("dc1"), dc2.localHost))
      .filter(({ endpoint }) => names.includes(endpoint)) // without the endpoint of dc2's first process
      .map((endpoint) => endpoint.lanes.reduce((sum, { senders }) => sum + senders, 0));
    if (lanes.join() !== "1,1") throw new Error(`Expected a sender on each: there are ${lanes}`);
    say(`${names.join(" and ")}: resolved once, listed, linked to, and both used`);
  },
};

const NONE: Scenario = {
  name: "empty-endpoints",
  summary: "a datacenter without endpoints reaches others; messages to it wait, and come back",
  replications: ["builtin"],
  options: OPTIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    await startAnew(dc2, ({ modules }) => {
      modules.mod_global_distrib.connections.endpoints = [];
    });
    if (dc2.node.ready.links.length > 0) throw new Error("Expected dc2 to listen nowhere");
    await untilListed(cluster, []);
    await untilLinked(cluster, []);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(alice, "dc1");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await bob.sendMessage(alice.jid, "can you hear me?");
    await alice.expectMessage("can you hear me?");
    const ids = [
      await alice.sendMessage(bob.jid, "I can"),
      await alice.sendMessage(bob.jid, "can you?"),
    ];
    await cluster.until(
      async () => (await linksTowards(dc1, dc2.localHost))?.parkedItems === ids.length,
      { what: "dc1 holds what is for dc2" },
    );
    say("bob reaches alice; her answer waits for an endpoint");
    for (const id of ids) await alice.expectError(id, "remote-server-timeout");
    await bob.expectNothingElse();
    await alice.expectNothingElse(bob);
    say(
      `after expire_after (${EXPIRE_AFTER_SECONDS} s) the answer comes back, and nothing else ` +
        `arrived`,
    );
  },
};

/**
 * Scenarios about listening addresses, advertised endpoints, and their use by other datacenters.
 */
export const ENDPOINT_ADDRESSES: readonly Scenario[] = [ADVERTISED, OVERRIDE, ADDRESS_KINDS, NONE];

async function startAnew(
  { node }: Datacenter,
  change: (configuration: CausewayConfiguration) => void,
): Promise<void> {
  change(node.configuration);
  await node.restart();
}

function nameOf({ host, port }: Target): string {
  return `${host}#${port}`;
}

/** Waits until the table of every datacenter lists exactly these endpoints of dc2's node. */
async function untilListed(cluster: Cluster, names: readonly string[]): Promise<void> {
  const { localHost, node } = cluster.datacenter("dc2");
  const key = `${localHost}#${node.ready.node}#{endpoints}`;
  for (const { name, redisClient } of cluster.datacenters) {
    await cluster.until(async () => {
      const members = await redisClient.call("SMEMBERS", key) as string[]; // SMEMBERS returns a list of members
      return members.toSorted().join() === names.toSorted().join();
    }, { what: `${name}'s table lists of dc2: ${names.join(", ") || "nothing"}` });
  }
}

/** Waits until dc1 has links to exactly these endpoints of dc2, all open. */
async function untilLinked(cluster: Cluster, names: readonly string[]): Promise<void> {
  const { localHost } = cluster.datacenter("dc2");
  await cluster.until(async () => {
    const enabled = (await endpointsTowards(cluster.datacenter("dc1"), localHost))
      .filter(({ state }) => state === "enabled");
    return enabled.map(({ endpoint }) => endpoint).toSorted().join() === names.toSorted().join() &&
      enabled.every(({ lanes }) => lanes.every(({ state }) => state === "open"));
  }, { what: `dc1 is linked to ${names.join(", ") || "nothing"}` });
}

/**
 * Lets alice's sessions at dc1 and bob at dc2 write to each other, and checks that nothing else
 * arrives. Resolves when every stanza that dc1 sent is settled.
 */
async function talkBothWays(cluster: Cluster, senders = 1): Promise<void> {
  await using stage = new Stage(cluster);
  const bob = await stage.enterAvailable("bob", "dc2");
  await stage.untilTableSaysOfSession(bob, "dc2");
  const toBob = new Letters(bob);
  for (let number = 0; number < senders; number++) {
    const alice = await stage.enter("alice", "dc1");
    await stage.untilTableSaysOfSession(alice, "dc1");
    await toBob.expectOf(alice);
    await new Letters(alice).expectOf(bob);
    await alice.expectNothingElse(bob);
    await bob.expectNothingElse(alice);
  }
  const { localHost } = cluster.datacenter("dc2");
  await cluster.until(async () => {
    const endpoints = await endpointsTowards(cluster.datacenter("dc1"), localHost);
    return endpoints.every(({ lanes }) => lanes.every(({ items }) => items === 0));
  }, { what: "dc1 holds nothing for dc2 any more" });
}
