import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectAll, sendAll } from "./_numbered.ts";
import { Stage } from "./_stage.ts";
import { putEntries, takeEntries } from "./_table_entries.ts";
import { CONNECTIONS, linkEnds, TwoEndpoints } from "./_two_endpoints.ts";

/** Messages of all senders together. */
const MESSAGES = 1000;
/** Forward bytes after which the sender's connection is cut: within its first dozens of frames. */
const CUT_AFTER_BYTES = 8000;

const OPTIONS: ClusterOptions = {
  datacenters: 2,
  links: "direct",
  replication: "external", // external replication can be held while entries of one datacenter are removed
  configure(configuration: CausewayConfiguration) {
    const { connections, redis, ...others } = configuration.modules.mod_global_distrib;
    configuration.modules.mod_global_distrib = {
      ...others,
      connections: {
        ...connections,
        connections_per_endpoint: CONNECTIONS,
        endpoint_refresh_interval: 1,
        endpoint_refresh_interval_when_empty: 1,
        disabled_gc_interval: 1,
      },
      // A node renews its entries four times in this span: every second.
      redis: { ...redis, refresh_after: 4 },
      cache: { jid_lifetime_seconds: 1 },
      bounce: { max_retries: 8 }, // enough that no waiting message comes back, even on a slow machine
    };
  },
};

/**
 * One sender's link is cut in mid-frame, then its endpoint is removed with messages in its lanes.
 */
const ONE_SENDER: Scenario = {
  name: "order-one-sender",
  summary: "1000 messages of one sender keep their order through a cut link and a lost endpoint",
  options: OPTIONS,
  run: (cluster, say) => keepOrder(cluster, { senders: 1, say }),
};

const SEVERAL_SENDERS: Scenario = {
  name: "order-several-senders",
  summary: "1000 messages of four senders keep their order through the same faults",
  options: OPTIONS,
  run: (cluster, say) => keepOrder(cluster, { senders: 4, say }),
};

const THROUGH_BOUNCE: Scenario = {
  name: "order-through-bounce",
  summary: "1000 messages keep their order although some bounce while the sender's link is cut",
  options: OPTIONS,
  run: keepOrderThroughBounce,
};

/**
 * Scenarios about order between a sender and a recipient while links, endpoints and table entries
 * fail.
 */
export const ORDER_UNDER_FAULTS: readonly Scenario[] = [
  ONE_SENDER,
  SEVERAL_SENDERS,
  THROUGH_BOUNCE,
];

async function keepOrder(
  cluster: Cluster,
  { senders: count, say }: { readonly senders: number; readonly say: (line: string) => void },
): Promise<void> {
  await using endpoints = await TwoEndpoints.start(cluster);
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  say(`dc1 has ${CONNECTIONS} links to each of dc2's two endpoints`);
  const bob = await stage.enterAvailable("bob", "dc2");
  const senders: ChatClient[] = [];
  for (let number = 1; number <= count; number++) {
    senders.push(await stage.enter("alice", "dc1", { resource: `sender-${number}` }));
  }
  const before = linkEnds(await Figures.read(dc1));
  const each = MESSAGES / count;
  const quarter = Math.floor(each / 4);

  await sendAll(senders, bob, { from: 0, to: quarter });
  const { used, spare } = await endpoints.ofSenders(count);
  used.proxy.cutAfter(CUT_AFTER_BYTES);
  await sendAll(senders, bob, { from: quarter, to: 2 * quarter });
  await cluster.until(() => used.proxy.counts.cuts === 1, { what: "a sender's link was cut" });
  const afterCut = await cluster.until(async () => {
    const ends = linkEnds(await Figures.read(dc1));
    return ends.failed === before.failed + 1 && ends.up === before.up + 1 && ends;
  }, { what: "dc1 has counted one failed link and made it again" });
  say("a link with a sender on it was cut in mid-stream, and reconnected");

  used.proxy.blackHole();
  const spareBytes = spare.proxy.counts.forwardBytes;
  await sendAll(senders, bob, { from: 2 * quarter, to: 3 * quarter });
  await endpoints.disable(used);
  const held = await cluster.until(async () => {
    const view = await endpoints.view(used.name);
    return view?.lanes.reduce((sum, { items }) => sum + items, 0);
  }, { what: "messages are held in the lanes of the disabled endpoint" });
  say(`dc1 has disabled the endpoint, with ${held} messages held in its lanes`);
  used.proxy.refuse();
  used.proxy.cut();
  await sendAll(senders, bob, { from: 3 * quarter, to: each });
  await cluster.until(async () => await endpoints.view(used.name) === undefined, {
    what: "dc1 has closed the endpoint that is gone",
  });

  await expectAll(senders, bob, each);
  const cuts = used.proxy.counts.cuts;
  if (cuts !== 1 + CONNECTIONS) throw new Error(`Expected ${1 + CONNECTIONS} cuts: got ${cuts}`);
  const { failed } = linkEnds(await Figures.read(dc1));
  if (failed < afterCut.failed + CONNECTIONS) {
    throw new Error(`Expected dc1 to have lost all links of one endpoint: it counts ${failed}`);
  }
  if (spare.proxy.counts.forwardBytes - spareBytes < held * MIN_FRAME_BYTES) {
    throw new Error("What the lost endpoint's lanes held did not go through the other one");
  }
  say(`all ${MESSAGES} messages arrived, each once and in order`);

  await endpoints.enable();
  await senders[0]!.sendMessage(bob.jid, "after all"); // every caller asks for at least one sender
  await bob.expectMessage("after all");
  await endpoints.untilSettled();
  say("the endpoint is listed again, and used again");
}

async function keepOrderThroughBounce(
  cluster: Cluster,
  say: (line: string) => void,
): Promise<void> {
  await using endpoints = await TwoEndpoints.start(cluster);
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  const bob = await stage.enterAvailable("bob", "dc2");
  const alice = await stage.enterAvailable("alice", "dc1");
  const quarter = MESSAGES / 4;
  await sendAll([alice], bob, { from: 0, to: quarter });
  const { used } = await endpoints.ofSenders(1);
  const before = linkEnds(await Figures.read(dc1));

  cluster.replication("dc2", "dc1").part(); // so that replication does not restore the deleted entries
  const entries = await takeEntries(cluster, bob.jid);
  // The cache still has bob's entry for a moment: go on until a message has to wait.
  let sent = quarter;
  await cluster.until(async () => {
    await sendAll([alice], bob, { from: sent, to: ++sent });
    return (await Figures.read(dc1)).sum("mod_global_distrib_bounce_queue_size") > 0;
  }, { what: "a message bounces" });
  await sendAll([alice], bob, { from: sent, to: 3 * quarter });
  used.proxy.cut();
  const waiting = await cluster.until(async () => {
    const size = (await Figures.read(dc1)).sum("mod_global_distrib_bounce_queue_size");
    return size > 3 * quarter - sent && size;
  }, { what: "all messages sent since wait too" });
  say(`bob's entries are gone from dc1's table: ${waiting} messages wait`);
  await putEntries(cluster, entries);
  await sendAll([alice], bob, { from: 3 * quarter, to: MESSAGES });

  await expectAll([alice], bob, MESSAGES);
  const metrics = await Figures.read(dc1);
  const held = metrics.sum("causeway_bounce_held_total");
  if (held < waiting) throw new Error(`Expected at least ${waiting} to have bounced: ${held} did`);
  if (metrics.sum("mod_global_distrib_bounce_queue_size") !== 0) {
    throw new Error("Expected nothing to be bouncing any more");
  }
  if (linkEnds(metrics).failed < before.failed + CONNECTIONS) {
    throw new Error("Expected dc1 to have counted the cut links");
  }
  await endpoints.untilSettled();
  say(`all ${MESSAGES} messages arrived, each once and in order; ${held} of them had bounced`);
}

/** Lower bound on the bytes of a frame with a stanza. */
const MIN_FRAME_BYTES = 100;
