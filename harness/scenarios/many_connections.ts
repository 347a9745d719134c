import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectAll, sendAll } from "./_numbered.ts";
import { Stage } from "./_stage.ts";
import { endpointsTowards } from "./_two_endpoints.ts";

const CONNECTIONS = 100;
const SENDERS = 10;
/** Messages of each sender. */
const MESSAGES = 100;

/** A sender stays on one lane, however many lanes there are. */
export const MANY_CONNECTIONS: Scenario = {
  name: "order-hundred-connections",
  summary: "over 100 connections to an endpoint, ten senders' messages arrive in order, both ways",
  options: {
    datacenters: 3,
    configure({ modules }: CausewayConfiguration) {
      modules.mod_global_distrib.connections["connections_per_endpoint"] = CONNECTIONS;
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    const { datacenters } = cluster;
    const ways = datacenters.flatMap((here) =>
      datacenters.filter((there) => there !== here).map((there) => [here, there] as const)
    );
    for (const [here, there] of ways) {
      await cluster.until(
        async () => {
          const figures = await Figures.read(here);
          return figures.sum("mod_global_distrib_links_open", { host: there.localHost }) ===
            CONNECTIONS;
        },
        { what: `${here.name} has ${CONNECTIONS} links to ${there.name}` },
      );
    }
    for (const each of datacenters) {
      const refused = (await Figures.read(each)).sum("mod_global_distrib_links_refused_total");
      if (refused > 0) throw new Error(`Expected ${each.name} to refuse nobody: it did ${refused}`);
    }
    say(`three datacenters have ${CONNECTIONS} links to each other, each way; none was refused`);

    const bob = await stage.enterAvailable("bob", "dc2");
    const senders: ChatClient[] = [];
    for (let number = 1; number <= SENDERS; number++) {
      senders.push(await stage.enterAvailable("alice", "dc1", { resource: `sender-${number}` }));
    }
    await Promise.all(
      senders.map((sender) => sendAll([sender], bob, { from: 0, to: MESSAGES })),
    );
    for (const sender of senders) await sendAll([bob], sender, { from: 0, to: 1 });
    for (const sender of senders) await sender.expectMessage("0");
    await expectAll(senders, bob, MESSAGES);
    const [endpoint, ...others] = await endpointsTowards(dc1, dc2.localHost);
    const used = endpoint?.lanes.filter((lane) => lane.senders > 0) ?? [];
    if (others.length > 0 || used.length !== SENDERS) {
      throw new Error(`Expected ${SENDERS} senders on as many lanes: they are on ${used.length}`);
    }
    say(`${SENDERS} senders on as many lanes: ${SENDERS * MESSAGES} messages came in order, once`);
  },
};
