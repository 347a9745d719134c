import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { ChatClient } from "../clients/mod.ts";
import {
  bindResource,
  newId,
  openAuthenticated,
  openStream,
  RawClient,
  RawSocket,
} from "../clients/mod.ts";
import type { CausewayConfiguration, CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { bodiesOf, enterManaged, errorsOf, numbered } from "./_managed_client.ts";
import { becomeAvailable, Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

const MESSAGES = 500;
const ENABLE = "<enable xmlns='urn:xmpp:sm:3' resume='true'/>";
/** Timers fire a little early now and then. */
const SLACK_MS = 100;
/**
 * `limits.shutdown_timeout` of nodes that must not use it up. A node that waits for another does so
 * for half of it, which is longer than a scenario waits for a stop.
 */
const AMPLE_S = 4 * PATIENCE_MS / 1000;
/** `limits.shutdown_timeout` of a node that uses it up: more than the default, which is 8 s. */
const LONGER_S = 12;
/** The same: less than the default. */
const SHORTER_S = 5;

function stopWithinSeconds(seconds: number): (configuration: CausewayConfiguration) => void {
  return (configuration) => {
    configuration["limits"] = { shutdown_timeout: seconds };
  };
}

const STOP_WITH_CLIENTS: Scenario = {
  name: "stop-with-clients",
  summary: "SIGTERM returns bouncing messages, ends every stream with an error, and exits 0",
  options: {
    datacenters: 1,
    configure(configuration: CausewayConfiguration) {
      stopWithinSeconds(AMPLE_S)(configuration);
      configuration.modules.mod_global_distrib["bounce"] = {
        resend_after_ms: 120_000, // nothing but the stop ends the wait
        max_retries: 4,
      };
    },
  },
  run: stopWithClients,
};

const STOP_UNDER_LOAD: Scenario = {
  name: "stop-under-load",
  summary: "a datacenter stops while messages arrive: each is delivered or comes back",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      const { redis } = configuration.modules.mod_global_distrib;
      Object.assign(redis, { expire_after: 10, refresh_after: 1 });
    },
  },
  run: stopUnderLoad,
};

const STOP_BESIDE_THE_DEAD: Scenario = {
  name: "stop-beside-the-dead",
  summary: "messages to an unresponsive datacenter come back before SIGTERM ends a stream",
  options: { datacenters: 2, configure: stopWithinSeconds(LONGER_S) },
  async run(cluster, say) {
    const tookMs = await stopBeside(cluster, say);
    const leastMs = 1000 * LONGER_S / 2 - SLACK_MS;
    assert.ok(tookMs >= leastMs, `dc1 waited only ${tookMs} ms for dc2, instead of ${leastMs}`);
  },
};

const STOP_IN_A_HURRY: Scenario = {
  name: "stop-in-a-hurry",
  summary: "`limits.shutdown_timeout` bounds a stop beside an unresponsive datacenter",
  options: { datacenters: 2, configure: stopWithinSeconds(SHORTER_S) },
  async run(cluster, say) {
    await stopBeside(cluster, say);
  },
};

const STOP_BESIDE_A_SLEEPER: Scenario = {
  name: "stop-beside-a-sleeper",
  summary: "a node stops at once although another node keeps its messages for a sleeping client",
  options: { datacenters: 2, configure: stopWithinSeconds(AMPLE_S) },
  run: stopBesideSleeper,
};

const STOP_RESENDS_NOTHING: Scenario = {
  name: "stop-resends-nothing",
  summary: "a stop tells a client that its messages were handled, though one is for a sleeper: " +
    "the client sends none of them again",
  options: {
    datacenters: 1,
    nodes: 2,
    configure(configuration: CausewayConfiguration) {
      stopWithinSeconds(AMPLE_S)(configuration);
      // The message for the sleeper waits until she logs in again.
      configuration.modules.mod_global_distrib["bounce"] = {
        resend_after_ms: 200,
        max_retries: 7,
      };
    },
  },
  run: stopResendsNothing,
};

const STOP_BETWEEN_TWO: Scenario = {
  name: "stop-between-two",
  summary: "a stopping node waits for an unresponsive one, and its clients get new messages once",
  options: { datacenters: 3, configure: stopWithinSeconds(AMPLE_S) },
  run: stopBetweenTwo,
};

const STOP_HEARS_OUT: Scenario = {
  name: "stop-hears-out",
  summary: "messages that clients write until they notice the end of their stream arrive",
  options: { datacenters: 2 },
  run: stopHearsOut,
};

const STOP_AT_ONCE: Scenario = {
  name: "stop-at-once",
  summary: "a second SIGTERM ends a node that still waits for others at once",
  options: { datacenters: 2, configure: stopWithinSeconds(AMPLE_S) },
  run: stopAtOnce,
};

/** Scenarios about nodes that are told to stop. */
export const GRACEFUL_STOPS: readonly Scenario[] = [
  STOP_WITH_CLIENTS,
  STOP_UNDER_LOAD,
  STOP_BESIDE_THE_DEAD,
  STOP_IN_A_HURRY,
  STOP_BESIDE_A_SLEEPER,
  STOP_RESENDS_NOTHING,
  STOP_BETWEEN_TWO,
  STOP_HEARS_OUT,
  STOP_AT_ONCE,
];

async function stopWithClients(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  const alice = await stage.enterAvailable("alice", "dc1");
  const component = await stage.connectComponent("echo", "dc1");
  const { host, port } = dc1.clientAddress("none");
  await using idle = await RawClient.login({
    host,
    port,
    domain: cluster.globalHost,
    ...cluster.users[1]!, // bob
  });
  await using stranger = await RawSocket.connect({ host, port });
  await openStream(stranger, cluster.globalHost);
  const ids: string[] = [];
  for (const sender of [alice, component]) {
    for (let number = 0; number < 3; number++) {
      ids.push(await sender.sendMessage(`nobody@${cluster.globalHost}`, `bouncing ${number}`));
    }
  }
  await cluster.until(
    async () => (await Figures.read(dc1)).classic("bounce_queue_size") === ids.length,
    { what: `${ids.length} messages bounce` },
  );
  const stopped = stopInTime(dc1);
  for (const socket of [idle.socket, stranger]) {
    let last = await socket.readUntil("</stream:stream>");
    if (socket === idle.socket) await socket.send("</stream:stream>");
    last += await socket.readToEnd();
    if (!/<system-shutdown [^>]*\/><\/stream:error><\/stream:stream>$/.test(last)) {
      throw new Error(`Expected the stream to end with system-shutdown: got ${last}`);
    }
  }
  const { exit } = await stopped;
  for (const [index, id] of ids.entries()) {
    const sender = index < 3 ? alice : component;
    await sender.expectError(id, "service-unavailable");
  }
  say(
    `${ids.length} bouncing messages came back, every stream ended with system-shutdown, ${exit}`,
  );
  const left = await dc1.redisClient.call("SMEMBERS", "hosts");
  const lease = await dc1.redisClient.call(
    "EXISTS",
    `causeway:node:${dc1.localHost}#node1@${dc1.localHost}`,
  );
  const user = await dc1.redisClient.call("EXISTS", alice.jid);
  if (JSON.stringify([left, lease, user]) !== "[[],0,0]") {
    throw new Error(`Expected nothing of it in Redis: got ${JSON.stringify([left, lease, user])}`);
  }
  say("it has removed its host, its lease and its users from Redis");
}

async function stopUnderLoad(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const dc2 = cluster.datacenter("dc2");
  const alice = await stage.enterAvailable("alice", "dc1");
  const bob = await stage.enterAvailable("bob", "dc2");
  await alice.sendMessage(bob.jid, "before");
  await bob.expectMessage("before");
  const ids: string[] = [];
  const send = async (count: number) => {
    for (let number = 0; number < count; number++) {
      ids.push(await alice.sendMessage(bob.jid, String(ids.length), { id: newId("load") }));
    }
  };
  await send(MESSAGES / 2);
  await bob.expectMessage(({ id }) => id === ids[0]); // the others may be anywhere on the way
  dc2.node.signal("SIGTERM");
  await send(MESSAGES / 2);
  const { code } = await dc2.node.exited;
  if (code !== 0) throw new Error(`Expected exit code 0: got ${code}`);
  await expectFates(cluster, ids, { delivered: bob, returned: alice });
  const arrived = bob.received.filter(({ id }) => ids.includes(id ?? "")).length;
  await alice.expectNothingElse();
  say(`${arrived} of ${MESSAGES} messages arrived before dc2 was gone, the others came back`);
}

/** Stops dc1 while dc2 is unresponsive. Returns the milliseconds from SIGTERM to the end. */
async function stopBeside(cluster: Cluster, say: (line: string) => void): Promise<number> {
  await using stage = new Stage(cluster);
  const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  const { alice, ids } = await writeToTheDead(cluster, stage);
  const { exit, tookMs } = await stopInTime(dc1);
  for (const id of ids) await alice.expectError(id, "service-unavailable");
  say(`dc2 did not answer: ${ids.length} messages came back before alice's stream ended, ${exit}`);
  await dc2.kill(); // so that dc2 does not wait in turn when it is resumed
  return tookMs;
}

async function stopBesideSleeper(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  const alice = await stage.enterAvailable("alice", "dc1");
  const entrance = { library: "slixmpp", at: "dc2", resource: "phone" } as const;
  await using bob = await enterManaged(cluster, "bob", entrance);
  await becomeAvailable(bob);
  await stage.untilTableSaysOfSession(bob, "dc2");
  await alice.sendMessage(bob.jid, "awake 1");
  await bob.expectMessage("awake 1");
  await bob.drop();
  const bodies = numbered("asleep", 1, 5);
  for (const body of bodies) await alice.sendMessage(bob.jid, body);
  await cluster.until(
    async () => (await Figures.read(dc1)).sum("mod_global_distrib_lane_items") >= bodies.length,
    { what: "dc1 holds a copy of what dc2 keeps for bob" },
  );
  const { exit } = await stopInTime(dc1);
  assert.deepEqual(errorsOf(alice), []);
  say(`bob sleeps at dc2, and dc1 has ended: ${exit}`);
  await bob.comeBack();
  await bob.expectMessage(bodies.at(-1)!);
  assert.deepEqual(bodiesOf(bob, "asleep"), bodies);
  say(`he wakes, and gets all ${bodies.length} messages that alice sent him, once and in order`);
  await bob.disconnect();
}

async function stopBetweenTwo(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  const writer = await stage.enterAvailable("alice", "dc3");
  const entrance = { library: "slixmpp", resource: "phone" } as const;
  const bodies = numbered("meanwhile", 1, 20);
  {
    await using carol = await enterManaged(cluster, "carol", { ...entrance, at: "dc1" });
    await becomeAvailable(carol);
    await stage.untilTableSaysOfSession(carol, "dc1");
    await writer.sendMessage(carol.jid, "before");
    await carol.expectMessage("before");
    await carol.sendMessage(writer.jid, "before"); // a stopping node stops reading from senders
    await writer.expectMessage("before");
    await writeToTheDead(cluster, stage);
    dc1.node.signal("SIGTERM");
    await cluster.until(() => dc1.node.logs.some((line) => line.includes("node.stopping")), {
      what: "dc1 has been told to stop",
    });
    for (const body of bodies) await writer.sendMessage(carol.jid, body);
    await carol.expectMessage(bodies.at(-1)!);
    assert.equal(dc1.node.state, "running", "it waits for dc2");
    dc2.resume();
    const { code } = await dc1.node.exited;
    if (code !== 0) throw new Error(`Expected exit code 0: got ${code}`);
    assert.deepEqual(bodiesOf(carol, "meanwhile"), bodies);
  }
  say(`dc1 waited for dc2, and carol at dc1 got ${bodies.length} messages from dc3 meanwhile`);
  await using again = await enterManaged(cluster, "carol", { ...entrance, at: "dc3" });
  await becomeAvailable(again);
  await writer.sendMessage(again.jid, "after");
  await again.expectMessage("after");
  assert.deepEqual(bodiesOf(again, "meanwhile"), [], "she has them");
  assert.deepEqual(errorsOf(writer), []);
  say("she logs in at dc3, and none of the messages arrives again");
}

async function stopResendsNothing(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  const [first, second] = dc1.nodes;
  const entrance = (who: string, node: CausewayNode) => ({
    ...dc1.clientAddress("none", node),
    ...cluster.users.find(({ localpart }) => localpart === who)!,
    domain: cluster.globalHost,
    resource: "phone",
  });
  await using alice = await RawClient.login(entrance("alice", first!));
  await alice.send(ENABLE);
  const [, previd] = /id='([^']+)'/.exec(await alice.socket.readUntil("/>"))!;
  await using sleeper = await RawClient.login(entrance("carol", first!));
  await sleeper.send(ENABLE);
  await sleeper.socket.readUntil("/>");
  const bob = await stage.enterAvailable("bob", "dc1", { resource: "phone" });
  const sent = [
    chat("1", sleeper.jid, "for the sleeper"),
    ...numbered("for bob", 1, 3).map((body, at) => chat(`${at + 2}`, bob.jid, body)),
  ];
  await alice.send(sent.join(""));
  await bob.expectMessage("for bob 3");
  await sleeper.socket.readUntil("for the sleeper"); // and she acknowledges nothing
  const stopped = first!.stop(PATIENCE_MS);
  const last = await alice.socket.readUntil("</stream:stream>");
  await alice.send("</stream:stream>");
  const { code } = await stopped;
  if (code !== 0) throw new Error(`Expected exit code 0: got ${code}`);
  const handled = Number(Array.from(last.matchAll(/<a [^>]*h='(\d+)'/g)).at(-1)?.[1]);
  say(`the node has ended, and says that it has handled ${handled} of ${sent.length} messages`);

  const bobAgain = await stage.enterAvailable("bob", "dc1", { node: 1, resource: "phone" });
  const carol = await stage.enterAvailable("carol", "dc1", { node: 1, resource: "phone" });
  await using again = await openAuthenticated(entrance("alice", second!));
  await again.send(`<resume xmlns='urn:xmpp:sm:3' h='0' previd='${previd}'/>`);
  await again.readUntil("</failed>");
  await bindResource(again, "phone");
  await again.send([...sent.slice(handled), chat("5", bob.jid, "for bob 4")].join(""));
  await bobAgain.expectMessage("for bob 4");
  await carol.expectMessage("for the sleeper");
  assert.deepEqual([bodiesOf(bob, "for bob"), bodiesOf(bobAgain, "for bob")], [
    numbered("for bob", 1, 3),
    ["for bob 4"],
  ]);
  assert.equal(handled, sent.length);
  say("they log in at the other node: each message has come to its recipient once");
}

function chat(id: string, to: string, body: string): string {
  return `<message id='${id}' type='chat' to='${to}'><body>${body}</body></message>`;
}

async function stopHearsOut(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const dc1 = cluster.datacenter("dc1");
  const bob = await stage.enterAvailable("bob", "dc2");
  await stage.untilTableSaysOfSession(bob, "dc2");
  const { host, port } = dc1.clientAddress("none");
  const [user] = cluster.users; // alice, twice
  const entrance = { host, port, domain: cluster.globalHost, ...user! };
  await using polite = await RawClient.login({ ...entrance, resource: "polite" });
  await using rude = await RawClient.login({ ...entrance, resource: "rude" });
  const bodies: string[] = [];
  const write = (from: RawClient, name: string, number: number) =>
    from.send(`<message to='${bob.jid}' type='chat'><body>${name} ${number}</body></message>`);
  await write(polite, "polite", 0);
  bodies.push("polite 0");
  await bob.expectMessage("polite 0");
  const stopped = stopInTime(dc1);
  const writesOn = (async () => {
    // This client never ends its stream, and writes until its connection is gone.
    for (let number = 0;; number++) {
      await write(rude, "rude", number);
      await delay(1);
    }
  })().catch(() => {});
  const end = polite.socket.readUntil("</stream:stream>").then(() => "over" as const);
  for (let number = 1;; number++) {
    bodies.push(`polite ${number}`);
    await write(polite, "polite", number);
    if (await Promise.race([end, delay(1)]) === "over") break;
  }
  await polite.send("</stream:stream>");
  const rest = await polite.socket.readToEnd();
  if (rest !== "") throw new Error(`Expected nothing behind the end of the stream: got ${rest}`);
  const { exit } = await stopped;
  await rude.socket.close();
  await writesOn;
  await bob.expectMessage(bodies.at(-1)!);
  assert.deepEqual(bodiesOf(bob, "polite"), bodies);
  say(
    `all ${bodies.length} messages that the client wrote before it noticed the end arrived: ${exit}`,
  );
}

async function stopAtOnce(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using stage = new Stage(cluster);
  const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  await writeToTheDead(cluster, stage);
  dc1.node.signal("SIGTERM");
  await cluster.until(() => dc1.node.logs.some((line) => line.includes("node.stopping")), {
    what: "dc1 has heard the first SIGTERM",
  });
  const { exited } = dc1.node;
  await cluster.until(() => {
    dc1.node.signal("SIGTERM"); // again and again: a signal right after the first counts as its echo
    return dc1.node.state === "stopped";
  }, { what: "another SIGTERM ends dc1" });
  const { code, signal } = await exited;
  if (code !== 1 || signal !== null) throw new Error(`Expected exit code 1: got ${code} ${signal}`);
  if (!dc1.node.logs.some((line) => line.includes("node.stopped-at-once"))) {
    throw new Error("Expected the log to say that the node was stopped at once");
  }
  say("the second SIGTERM ended it with exit code 1");
  await dc2.kill(); // so that dc2 does not wait in turn when it is resumed
}

/** Makes dc2 unresponsive, and lets alice at dc1 write to bob there. */
async function writeToTheDead(
  cluster: Cluster,
  stage: Stage,
): Promise<{ readonly alice: ChatClient; readonly ids: readonly string[] }> {
  const dc1 = cluster.datacenter("dc1");
  const alice = await stage.enterAvailable("alice", "dc1");
  const bob = await stage.enterAvailable("bob", "dc2");
  await alice.sendMessage(bob.jid, "still there?");
  await bob.expectMessage("still there?");
  const laneItems = async () => (await Figures.read(dc1)).sum("mod_global_distrib_lane_items");
  await cluster.until(async () => await laneItems() === 0, {
    what: "all that was sent is settled",
  });
  cluster.datacenter("dc2").pause();
  const ids: string[] = [];
  for (let number = 0; number < 5; number++) {
    ids.push(await alice.sendMessage(bob.jid, `to the dead ${number}`));
  }
  await cluster.until(async () => await laneItems() === ids.length, {
    what: "dc1 holds the messages for dc2",
  });
  return { alice, ids };
}

/** A stop in order. */
interface Stop {
  /** Text for people. */
  readonly exit: string;
  readonly tookMs: number;
}

/**
 * Stops the node of `datacenter`.
 * @throws when it has not ended in time
 */
async function stopInTime(datacenter: Datacenter): Promise<Stop> {
  const startMs = performance.now();
  datacenter.node.signal("SIGINT"); // together with SIGTERM: one request, as `deno task` forwards signals
  const { code, signal } = await datacenter.node.stop(PATIENCE_MS); // then it is killed
  const tookMs = Math.round(performance.now() - startMs);
  if (code !== 0) throw new Error(`Expected exit code 0: got ${code} ${signal ?? ""}`);
  return { exit: `exit code 0 after ${tookMs} ms`, tookMs };
}

/** Waits until each of `ids` has arrived once or come back once. */
async function expectFates(
  cluster: Cluster,
  ids: readonly string[],
  { delivered, returned }: { readonly delivered: ChatClient; readonly returned: ChatClient },
): Promise<void> {
  const fates = () => {
    const counts = new Map(ids.map((id) => [id, 0]));
    const count = (id: string | undefined) => {
      if (id !== undefined && counts.has(id)) counts.set(id, counts.get(id)! + 1);
    };
    for (const { id } of delivered.received) count(id);
    for (const { id, type } of returned.received) if (type === "error") count(id);
    return counts;
  };
  let open: readonly string[] = [];
  await cluster.until(() => {
    open = [...fates()].filter(([, count]) => count === 0).map(([id]) => id);
    return open.length === 0;
  }, {
    what: "each message has arrived or come back",
    evidence: () => `${open.length} have not\n${cluster.tails()}`,
    withinMs: PATIENCE_MS,
  });
  const twice = [...fates()].filter(([, count]) => count > 1).length;
  if (twice > 0) throw new Error(`Expected one fate for each message: ${twice} have several`);
  for (const id of ids) {
    if (returned.received.some((each) => each.id === id)) {
      await returned.expectMessage((each) => each.id === id);
    }
  }
}
