import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { LinkProxy } from "../faults/mod.ts";
import type { Address } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { enterManaged, errorsOf, proxyBefore } from "./_managed_client.ts";
import type { ManagedClient, ManagedEntrance } from "./_managed_client.ts";
import { assertNoneReturned, MessageRun } from "./_message_run.ts";
import { untilTaken } from "./_ping.ts";
import { becomeAvailable, isPresence, Stage } from "./_stage.ts";
import { assertOrdered } from "./_two_nodes.ts";

/**
 * Messages of each sender: before the cut, while bob is away, at most while he moves, and after.
 */
const BEFORE = 20;
const MEANWHILE = 40;
const MOVING = 200;
const AFTER = 40;
/** Messages of bob, before and after each move. */
const UP = 20;
/** Hops that a stanza may take. Each passage to another datacenter costs one. */
const MESSAGE_TTL = 4;

/** Caches locations for a moment only, and gives a busy machine time to move a session. */
function rememberShortly({ modules }: CausewayConfiguration): void {
  modules["mod_stream_management"] = { resume_elsewhere_timeout: 30 };
  Object.assign(modules.mod_global_distrib, {
    message_ttl: MESSAGE_TTL,
    cache: { jid_lifetime_seconds: 1 },
  });
}

/** A datacenter and one of its nodes, counting from 0. */
interface Place {
  readonly at: string;
  readonly node: number;
}

/** Places that bob visits in turn, and the places of the users who write to him. */
interface Journey {
  /** @default "@xmpp", then slixmpp */
  readonly clients?: readonly Pick<ManagedEntrance, "library" | "sasl2As">[];
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
    "bob's client resumes at another datacenter, and then at others: his session moves there " +
    "each time",
  options: { configure: rememberShortly },
  replications: ["builtin"],
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
  summary: "bob's client resumes at the other node of his datacenter: his session moves there",
  options: NODES,
  replications: ["builtin"],
  run: (cluster, say) =>
    travel(cluster, say, {
      stops: [0, 1, 0].map((node) => ({ at: "dc1", node })),
      senders: [{ at: "dc1", node: 0 }, { at: "dc1", node: 1 }, { at: "dc2", node: 0 }],
    }),
};

/** The same by a client that resumes together with its login (XEP-0388). */
export const RESUME_BY_SASL2: Scenario = {
  name: "resume-by-sasl2",
  summary: "bob's client logs in by SASL2 and resumes at another datacenter, in one exchange",
  options: { datacenters: 2, configure: rememberShortly },
  run: (cluster, say) =>
    travel(cluster, say, {
      clients: [{ library: "@xmpp", sasl2As: crypto.randomUUID() }],
      stops: ["dc1", "dc2", "dc1"].map((at) => ({ at, node: 0 })),
      senders: ["dc1", "dc2"].map((at) => ({ at, node: 0 })),
    }),
};

async function travel(
  cluster: Cluster,
  say: (line: string) => void,
  { clients = [{ library: "@xmpp" }, { library: "slixmpp" }], stops, senders: places }: Journey,
): Promise<void> {
  await using stage = new Stage(cluster);
  for (const { library, ...login } of clients) {
    const senders: Sender[] = [];
    for (const [index, { at, node }] of places.entries()) {
      const resource = `${library.slice(-4)}-${index + 1}`;
      senders.push({ client: await stage.enterAvailable("alice", at, { node, resource }), at });
    }
    const { at } = stops[0]!;
    const witness = senders[0]!.client;
    await using proxy = await proxyBefore(cluster, at);
    const resource = library === "slixmpp" ? "python" : "js";
    await using bob = await enterManaged(cluster, "bob", {
      ...login,
      library,
      at,
      resource,
      proxy,
    });
    const isBySasl2 = /\/[0-9a-f]{16}$/.test(bob.jid);
    assert.equal(isBySasl2, login.sasl2As !== undefined, bob.jid);
    await becomeAvailable(bob);
    await stage.untilTableSaysOfSession(bob, at);
    // slixmpp forgets its unacknowledged stanzas when it asks to resume.
    const up = library === "slixmpp" ? 0 : UP;
    // The witness must not get unavailable presence.
    await bob.presence({ to: witness.jid });
    await witness.expectStanza(isPresence({ from: bob.jid, type: undefined }));
    for (const [index, stop] of stops.slice(1).entries()) {
      await move(cluster, { bob, up, proxy, senders, from: stops[index]!, stop });
      await stage.untilTableSaysOfSession(bob, stop.at);
      for (const sender of senders) await untilStraight(cluster, { sender, bob, stop });
    }
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

/**
 * Cuts bob's connection, and lets his client come back at another place while messages are on their
 * way.
 */
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
  for (const run of runs) await run.send(bob.jid, MEANWHILE);
  proxy.setTarget(placeOf(cluster, stop));
  proxy.heal();
  const { accepted } = proxy.counts;
  let isBack = false;
  const back = bob.comeBack().then(() => isBack = true);
  const hasCalled = cluster.until(() => proxy.counts.accepted > accepted, {
    what: "bob's client calls again",
    everyMs: 1,
  });
  await Promise.all(runs.map(async (run, index) => {
    await hasCalled;
    for (let sent = 0; sent < MOVING && !isBack; sent++) {
      await run.send(bob.jid, 1);
      await untilTaken(senders[index]!.client);
    }
    await back;
    await run.send(bob.jid, AFTER);
  }));
  for (const [index, run] of runs.entries()) {
    const fates = await run.fates(cluster, [bob]);
    assertNoneReturned(fates, "bob has come back");
    const { arrived } = fates;
    // From a third datacenter one message may still go through the old place, and the next directly
    // to the new one.
    const isThird = ![from.at, stop.at].includes(senders[index]!.at);
    const numbers = isThird ? arrived[0]!.toSorted((one, other) => one - other) : arrived[0]!;
    assertOrdered(numbers, run.length);
  }
  assert.equal(await resumed(cluster, stop), before + 1);
  await own.send(first.jid, UP);
  const { arrived } = await own.fates(cluster, [first]);
  assertOrdered(arrived[0]!, up + UP);
}

/**
 * Waits until the messages of `sender` to bob go directly to his datacenter. Nodes of other
 * datacenters may not learn of the move. Their messages go through his old place until the cache
 * entry expires.
 */
async function untilStraight(
  cluster: Cluster,
  { sender: { client, at }, bob, stop }: {
    readonly sender: Sender;
    readonly bob: ChatClient;
    readonly stop: Place;
  },
): Promise<void> {
  const wanted = at === stop.at ? MESSAGE_TTL : MESSAGE_TTL - 1;
  await cluster.until(async () => {
    const before = await figuresAt(cluster, stop);
    const body = crypto.randomUUID();
    await client.sendMessage(bob.jid, body);
    await bob.expectMessage(body);
    const after = await figuresAt(cluster, stop);
    const [hopsLeft, stanzas] = ["sum", "count"].map((which) => {
      const name = `mod_global_distrib_delivered_with_ttl_${which}`;
      return after.sum(name) - before.sum(name);
    });
    return stanzas === 1 && hopsLeft === wanted;
  }, { what: `what ${client.jid} writes to bob goes straight to ${stop.at}` });
}

function placeOf(cluster: Cluster, { at, node }: Place): Address {
  const datacenter = cluster.datacenter(at);
  return datacenter.clientAddress("starttls", datacenter.nodes[node]);
}

/** Returns the number of sessions of other nodes that clients have resumed at `place`. */
async function resumed(cluster: Cluster, place: Place): Promise<number> {
  return (await figuresAt(cluster, place)).sum("causeway_resumed_elsewhere_total");
}

function figuresAt(cluster: Cluster, { at, node }: Place): Promise<Figures> {
  const datacenter = cluster.datacenter(at);
  return Figures.read(datacenter, datacenter.nodes[node]);
}
