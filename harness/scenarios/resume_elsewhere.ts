import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { LinkProxy } from "../faults/mod.ts";
import type { Address } from "../process/mod.ts";
import { REPLICATIONS } from "../scenario.ts";
import type { Scenario } from "../scenario.ts";
import { errorsOf, proxyBefore } from "./_managed_client.ts";
import type { ManagedClient } from "./_managed_client.ts";
import { enterManaged } from "./_managed_client.ts";
import { MessageRun } from "./_message_run.ts";
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

/** Where bob goes, one after the other, and how a place is named to people. */
interface Journey {
  readonly from: string;
  /** Datacenter and node, counting from 0. */
  readonly stops: readonly { readonly at: string; readonly node: number }[];
  /** Where the senders are. */
  readonly senders: readonly { readonly at: string; readonly node: number }[];
}

/** A session follows its client to other datacenters, and back. */
export const RESUME_ELSEWHERE: Scenario = {
  name: "resume-elsewhere",
  summary:
    "bob's network brings him to another datacenter, and to others: his session is there each time",
  replications: REPLICATIONS,
  run: (cluster, say) =>
    travel(cluster, say, {
      from: "dc1",
      stops: [{ at: "dc2", node: 0 }, { at: "dc3", node: 0 }, { at: "dc1", node: 0 }],
      senders: [{ at: "dc1", node: 0 }, { at: "dc2", node: 0 }, { at: "dc3", node: 0 }],
    }),
};

const NODES: ClusterOptions = { datacenters: 2, nodes: 2 };

/** The same between the nodes of one datacenter. */
export const RESUME_AT_OTHER_NODE: Scenario = {
  name: "resume-at-other-node",
  summary: "bob's network brings him to the other node of his datacenter: his session is there",
  options: NODES,
  replications: REPLICATIONS,
  run: (cluster, say) =>
    travel(cluster, say, {
      from: "dc1",
      stops: [{ at: "dc1", node: 1 }, { at: "dc1", node: 0 }],
      senders: [{ at: "dc1", node: 0 }, { at: "dc1", node: 1 }, { at: "dc2", node: 0 }],
    }),
};

async function travel(
  cluster: Cluster,
  say: (line: string) => void,
  { from, stops, senders: places }: Journey,
): Promise<void> {
  await using stage = new Stage(cluster);
  for (const library of ["@xmpp", "slixmpp"] as const) {
    const senders: ChatClient[] = [];
    for (const [index, { at, node }] of places.entries()) {
      const resource = `${library.slice(-4)}-${index + 1}`;
      senders.push(await stage.enterAvailable("alice", at, { node, resource }));
    }
    await using proxy = await proxyBefore(cluster, from);
    const resource = library === "slixmpp" ? "python" : "js";
    await using bob = await enterManaged(cluster, "bob", { library, at: from, resource, proxy });
    await becomeAvailable(bob);
    await stage.untilTableSaysOfSession(bob, from);
    // slixmpp forgets what was not acknowledged to it in the moment in which it asks to resume.
    const up = library === "slixmpp" ? 0 : UP;
    // One of those who must not hear that he has gone.
    await bob.presence({ to: senders[0]!.jid });
    await senders[0]!.expectStanza(isPresence({ from: bob.jid, type: undefined }));
    for (const stop of stops) await move(cluster, { bob, up, proxy, senders, stop });
    await stage.untilTableSaysOfSession(bob, stops.at(-1)!.at);
    for (const sender of senders) {
      const gone = sender.received.filter(isPresence({ from: bob.jid, type: "unavailable" }));
      assert.deepEqual([errorsOf(sender), gone], [[], []]);
    }
    assert.deepEqual(errorsOf(bob), []);
    const path = stops.map(({ at, node }) => `${at}'s node ${node + 1}`).join(", then ");
    say(`${library}: from ${from} to ${path}, nothing lost, doubled or out of order`);
    await bob.disconnect();
    await stage.untilGone(bob.jid);
    for (const sender of senders) await sender.disconnect();
  }
}

/** Cuts bob's connection, and lets him come back to another place while messages are on their way. */
async function move(
  cluster: Cluster,
  { bob, up, proxy, senders, stop }: {
    readonly bob: ManagedClient;
    /** Messages that he sends before the cut. */
    readonly up: number;
    readonly proxy: LinkProxy;
    readonly senders: readonly ChatClient[];
    readonly stop: Journey["stops"][number];
  },
): Promise<void> {
  const before = await resumed(cluster, stop);
  const runs = senders.map((sender) => new MessageRun(sender));
  for (const run of runs) await run.send(bob.jid, BEFORE);
  const own = new MessageRun(bob);
  await own.send(senders[0]!.jid, up);
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
  for (const run of runs) {
    const { arrived, returned } = await run.fates(cluster, [bob]);
    assert.deepEqual(returned, []);
    assertOrdered(arrived[0]!, BEFORE + MEANWHILE + AFTER);
  }
  assert.equal(await resumed(cluster, stop), before + 1);
  await own.send(senders[0]!.jid, UP);
  const { arrived } = await own.fates(cluster, [senders[0]!]);
  assertOrdered(arrived[0]!, up + UP);
}

async function sendSlowly(run: MessageRun, to: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++) {
    await run.send(to, 1);
    await delay(PACE_MS);
  }
}

function placeOf(cluster: Cluster, { at, node }: Journey["stops"][number]): Address {
  const datacenter = cluster.datacenter(at);
  return datacenter.clientAddress("starttls", datacenter.nodes[node]);
}

/** Sessions of other nodes that clients have resumed there. */
async function resumed(cluster: Cluster, { at, node }: Journey["stops"][number]): Promise<number> {
  const datacenter = cluster.datacenter(at);
  const response = await fetch(datacenter.adminUrl("/metrics", datacenter.nodes[node]));
  const text = await response.text();
  return Number(/^causeway_resumed_elsewhere_total (\d+)$/m.exec(text)?.[1] ?? "NaN");
}
