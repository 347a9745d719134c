import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { LinkProxy } from "../faults/mod.ts";
import type { Address } from "../process/mod.ts";
import { REPLICATIONS } from "../scenario.ts";
import type { Scenario } from "../scenario.ts";
import { errorsOf, proxyBefore } from "./_managed_client.ts";
import type { ManagedClient } from "./_managed_client.ts";
import { enterManaged } from "./_managed_client.ts";
import { isAscending, MessageRun } from "./_message_run.ts";
import { becomeAvailable, isPresence, Stage } from "./_stage.ts";
import { assertOrdered } from "./_two_nodes.ts";

/** Messages of each sender before the cut, while nobody is there, and after the move. */
const BEFORE = 20;
const MEANWHILE = 40;
const AFTER = 40;
/** Messages of bob's, each time before and after. */
const UP = 20;
/** Pause between messages of one sender while bob moves. */
const PACE_MS = 5;

/** Longer than a node remembers where somebody is. */
const CACHED_MS = 1_500;

function rememberShortly({ modules }: CausewayConfiguration): void {
  modules.mod_global_distrib["cache"] = { jid_lifetime_seconds: 1 };
}

/** A datacenter and one of its nodes, counting from 0. */
interface Place {
  readonly at: string;
  readonly node: number;
}

/** Where bob goes, beginning at the first of them, and where those are who write to him. */
interface Journey {
  readonly stops: readonly Place[];
  readonly senders: readonly Place[];
}

interface Sender {
  readonly client: ChatClient;
  readonly at: string;
}

/** A session follows its client to other datacenters, and back. */
export const RESUME_ELSEWHERE: Scenario = {
  name: "resume-elsewhere",
  summary:
    "bob's network brings him to another datacenter, and to others: his session is there each time",
  options: { configure: rememberShortly },
  replications: REPLICATIONS,
  run: (cluster, say) =>
    travel(cluster, say, {
      stops: ["dc1", "dc2", "dc3", "dc1"].map((at) => ({ at, node: 0 })),
      senders: ["dc1", "dc2", "dc3"].map((at) => ({ at, node: 0 })),
    }),
};

const NODES: ClusterOptions = { datacenters: 2, nodes: 2, configure: rememberShortly };

/** The same between the nodes of one datacenter. */
export const RESUME_AT_OTHER_NODE: Scenario = {
  name: "resume-at-other-node",
  summary: "bob's network brings him to the other node of his datacenter: his session is there",
  options: NODES,
  replications: REPLICATIONS,
  run: (cluster, say) =>
    travel(cluster, say, {
      stops: [0, 1, 0].map((node) => ({ at: "dc1", node })),
      senders: [{ at: "dc1", node: 0 }, { at: "dc1", node: 1 }, { at: "dc2", node: 0 }],
    }),
};

async function travel(
  cluster: Cluster,
  say: (line: string) => void,
  { stops, senders: places }: Journey,
): Promise<void> {
  await using stage = new Stage(cluster);
  for (const library of ["@xmpp", "slixmpp"] as const) {
    const senders: Sender[] = [];
    for (const [index, { at, node }] of places.entries()) {
      const resource = `${library.slice(-4)}-${index + 1}`;
      senders.push({ client: await stage.enterAvailable("alice", at, { node, resource }), at });
    }
    const { at } = stops[0]!;
    const witness = senders[0]!.client;
    await using proxy = await proxyBefore(cluster, at);
    const resource = library === "slixmpp" ? "python" : "js";
    await using bob = await enterManaged(cluster, "bob", { library, at, resource, proxy });
    await becomeAvailable(bob);
    await stage.untilTableSaysOfSession(bob, at);
    // slixmpp forgets what was not acknowledged to it in the moment in which it asks to resume.
    const up = library === "slixmpp" ? 0 : UP;
    // One of those who must not hear that he has gone.
    await bob.presence({ to: witness.jid });
    await witness.expectStanza(isPresence({ from: bob.jid, type: undefined }));
    for (const [index, stop] of stops.slice(1).entries()) {
      await move(cluster, { bob, up, proxy, senders, from: stops[index]!, stop });
      await stage.untilTableSaysOfSession(bob, stop.at);
      await delay(CACHED_MS); // what a node remembers of the place before is the way that messages take
    }
    await stage.untilTableSaysOfSession(bob, stops.at(-1)!.at);
    for (const { client } of senders) {
      const gone = client.received.filter(isPresence({ from: bob.jid, type: "unavailable" }));
      assert.deepEqual([errorsOf(client), gone], [[], []]);
    }
    assert.deepEqual(errorsOf(bob), []);
    const path = stops.map(({ at, node }) => `${at}'s node ${node + 1}`).join(", then ");
    say(`${library}: ${path}: nothing lost, doubled or out of order`);
    await bob.disconnect();
    await stage.untilGone(bob.jid);
    for (const { client } of senders) await client.disconnect();
  }
}

/** Cuts bob's connection, and lets him come back to another place while messages are on their way. */
async function move(
  cluster: Cluster,
  { bob, up, proxy, senders, from, stop }: {
    readonly bob: ManagedClient;
    /** Messages that he sends before the cut. */
    readonly up: number;
    readonly proxy: LinkProxy;
    readonly senders: readonly Sender[];
    readonly from: Place;
    readonly stop: Place;
  },
): Promise<void> {
  const before = await resumed(cluster, stop);
  const runs = senders.map(({ client }) => new MessageRun(client));
  const first = senders[0]!.client;
  for (const run of runs) await run.send(bob.jid, BEFORE);
  const own = new MessageRun(bob);
  await own.send(first.jid, up);
  proxy.refuse();
  proxy.cut();
  const sending = Promise.all(runs.map((run) => sendSlowly(run, bob.jid, MEANWHILE + AFTER)));
  await cluster.until(() => runs.every(({ length }) => length >= BEFORE + MEANWHILE), {
    what: "messages have been sent to a bob without a connection",
  });
  proxy.setTarget(placeOf(cluster, stop));
  proxy.heal();
  await bob.comeBack();
  await sending;
  for (const [index, run] of runs.entries()) {
    const { arrived, returned } = await run.fates(cluster, [bob]);
    assert.deepEqual(returned, []);
    // Of a third datacenter one message may go by the old place yet, and the next straight to the new one.
    const isThird = ![from.at, stop.at].includes(senders[index]!.at);
    const numbers = isThird ? arrived[0]!.toSorted((one, other) => one - other) : arrived[0]!;
    if (!isAscending(numbers)) console.log(senders[index]!.client.jid, from, stop);
    assertOrdered(numbers, BEFORE + MEANWHILE + AFTER);
  }
  assert.equal(await resumed(cluster, stop), before + 1);
  await own.send(first.jid, UP);
  const { arrived } = await own.fates(cluster, [first]);
  assertOrdered(arrived[0]!, up + UP);
}

async function sendSlowly(run: MessageRun, to: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++) {
    await run.send(to, 1);
    await delay(PACE_MS);
  }
}

function placeOf(cluster: Cluster, { at, node }: Place): Address {
  const datacenter = cluster.datacenter(at);
  return datacenter.clientAddress("starttls", datacenter.nodes[node]);
}

/** Sessions of other nodes that clients have resumed there. */
async function resumed(cluster: Cluster, { at, node }: Place): Promise<number> {
  const datacenter = cluster.datacenter(at);
  const response = await fetch(datacenter.adminUrl("/metrics", datacenter.nodes[node]));
  const text = await response.text();
  return Number(/^causeway_resumed_elsewhere_total (\d+)$/m.exec(text)?.[1] ?? "NaN");
}
