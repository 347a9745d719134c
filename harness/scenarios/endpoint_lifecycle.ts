import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { EndpointLog } from "./_endpoint_log.ts";
import { type Letter, Letters } from "./_letters.ts";
import { Stage } from "./_stage.ts";
import { CONNECTIONS, linksTowards, TwoEndpoints } from "./_two_endpoints.ts";

const WAITING = 20;

/**
 * All state changes of an endpoint. The admin API shows which of the two endpoints each step uses,
 * and the log has each change once.
 */
export const ENDPOINT_LIFECYCLE: Scenario = {
  name: "endpoint-lifecycle",
  summary: "messages arrive while endpoints are disabled, enabled, missing and collected",
  options: {
    datacenters: 2,
    links: "direct",
    configure({ modules }: CausewayConfiguration) {
      const { connections, redis } = modules.mod_global_distrib;
      Object.assign(connections, {
        connections_per_endpoint: CONNECTIONS,
        endpoint_refresh_interval: 1,
        endpoint_refresh_interval_when_empty: 1,
        disabled_gc_interval: 1,
      });
      redis["refresh_after"] = 4; // a node renews its entries four times in this span
    },
  },
  async run(cluster, say) {
    await using endpoints = await TwoEndpoints.start(cluster);
    await using stage = new Stage(cluster);
    const dc1 = cluster.datacenter("dc1");
    const log = new EndpointLog(dc1.node);
    const [a, b] = endpoints.both;
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    const letters = new Letters(bob);
    const enter = (): Promise<ChatClient> => stage.enterAvailable("alice", "dc1");

    await endpoints.disable(a);
    const accepted = a.proxy.counts.accepted;
    const bytes = a.proxy.counts.forwardBytes;
    for (let number = 0; number < 3; number++) await letters.expectOf(await enter());
    const disabled = await endpoints.view(a.name);
    if (disabled?.lanes.some(({ senders, state }) => senders > 0 || state !== "open")) {
      throw new Error("Expected a disabled endpoint to stay open, and to get no new senders");
    }
    say("a disabled endpoint stays open; new senders use the other one");

    await endpoints.disable(b);
    b.proxy.refuse();
    b.proxy.cut();
    await cluster.until(async () => await endpoints.view(b.name) === undefined, {
      what: "dc1 has collected the disabled endpoint whose connections are dead",
    });
    await letters.expectOf(await enter()); // the disabled endpoint is the only one left
    if (a.proxy.counts.forwardBytes === bytes) throw new Error("Expected the open one to be used");
    const open = await endpoints.view(a.name);
    if (open?.state !== "disabled" || open.lanes.some(({ state }) => state !== "open")) {
      throw new Error(`Expected the collector to leave the open one: ${JSON.stringify(open)}`);
    }
    log.expect(a.name, ["opened", "disabled"]);
    log.expect(b.name, ["opened", "disabled", "closed"]);
    say(
      "a disabled endpoint with dead connections is closed; one with open connections stays, " +
        "and is used",
    );

    await endpoints.enable();
    if (a.proxy.counts.accepted !== accepted) throw new Error("Expected its links to be kept");
    log.expect(a.name, ["opened", "disabled", "enabled"]);
    log.expect(b.name, ["opened", "disabled", "closed", "opened"]);
    await letters.expectOf(await enter());
    say(
      "listed again: the open endpoint is enabled with its connections, the closed one gets a " +
        "new pool",
    );

    for (const endpoint of endpoints.both) {
      await endpoints.disable(endpoint);
      endpoint.proxy.refuse();
      endpoint.proxy.cut();
    }
    const { localHost } = cluster.datacenter("dc2");
    await cluster.until(async () => {
      const view = await linksTowards(dc1, localHost);
      return view?.endpoints.length === 0;
    }, { what: "dc1 has no endpoint of dc2 any more" });
    const alice = await enter();
    const waiting: Letter[] = [];
    for (let number = 0; number < WAITING; number++) waiting.push(await letters.sendOf(alice));
    await cluster.until(
      async () => (await linksTowards(dc1, localHost))?.parkedItems === WAITING,
      { what: `${WAITING} messages wait for an endpoint` },
    );
    await endpoints.enable();
    for (const letter of waiting) await letters.expect(letter);
    log.expect(a.name, ["opened", "disabled", "enabled", "disabled", "closed", "opened"]);
    log.expect(b.name, ["opened", "disabled", "closed", "opened", "disabled", "closed", "opened"]);
    await bob.expectNothingElse(alice);
    await alice.expectNothingElse();
    await endpoints.untilSettled();
    say(`with no endpoint left ${WAITING} messages wait for one, and then arrive in order`);
  },
};
