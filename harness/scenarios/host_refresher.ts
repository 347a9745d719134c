import type { CausewayConfiguration } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { EndpointLog } from "./_endpoint_log.ts";
import { endpointsTowards } from "./_two_endpoints.ts";

const EXPIRE_AFTER_SECONDS = 10;

/**
 * A datacenter's endpoints die with it, and nobody sends a stanza to it: only the host refresher
 * can find it again. Its own links to dc1, which would announce it, are blocked.
 */
export const HOST_REFRESHER: Scenario = {
  name: "host-refresher",
  summary: "the pool of a killed datacenter is closed, and opened again without any stanza for it",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration, { name }) {
      const distribution = configuration.modules.mod_global_distrib;
      distribution["hosts_refresh_interval"] = 200;
      Object.assign(distribution.connections, {
        endpoint_refresh_interval: 1,
        endpoint_refresh_interval_when_empty: 1,
        disabled_gc_interval: 1,
      });
      Object.assign(distribution.redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
      // dc1 takes addresses from Redis; dc2's links to dc1 run through the harness' proxies.
      if (name === "dc1") configuration.global_distrib_addr = {};
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    const endpoints = () => endpointsTowards(dc1, dc2.localHost);
    const first = await cluster.until(async () => {
      const [only, ...others] = await endpoints();
      return others.length === 0 && only?.lanes.every(({ state }) => state === "open") && only;
    }, { what: "dc1 is linked to dc2" });
    const alice = await stage.enterAvailable("alice", "dc1");
    for (const proxy of cluster.links("dc2", "dc1")) {
      proxy.refuse();
      proxy.cut();
    }

    await dc2.node.kill();
    await cluster.until(async () => (await endpoints()).length === 0, {
      what: "dc1 has closed dc2's pool",
    });
    const log = new EndpointLog(dc1.node);
    log.expect(first.endpoint, ["opened", "disabled", "closed"]);
    say("dc2 is killed: its endpoint is disabled when it expires, and then closed");

    await dc2.node.start();
    const again = await cluster.until(async () => {
      const [only, ...others] = await endpoints();
      return others.length === 0 && only?.lanes.every(({ state }) => state === "open") && only;
    }, { what: "dc1 is linked to dc2 again" });
    if (again.endpoint === first.endpoint) throw new Error("Expected another port after a restart");
    log.expect(again.endpoint, ["opened"]);
    const refused = cluster.links("dc2", "dc1").reduce(
      (sum, { counts }) => sum + counts.refusals,
      0,
    );
    if (refused === 0) throw new Error("Expected dc2's own links to have been kept away");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await alice.sendMessage(bob.jid, "welcome back");
    await bob.expectMessage("welcome back");
    await bob.expectNothingElse(alice);
    await alice.expectNothingElse();
    say("dc2 starts again on another port: dc1 has a new pool to it before any stanza needs one");
  },
};
