import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import {
  decodeHave,
  detailsFrames,
  FRAME_TYPE,
  haveFrame,
  queueFrame,
  sessionFrame,
} from "../wire/mod.ts";
import { bind } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { RawPeer } from "../../xmpp/stream/testing/raw_peer.ts";
import { Envelope } from "../mod.ts";
import {
  a,
  ALICE,
  envelopeOf,
  expectMessages,
  failed,
  HOME,
  message,
  resume,
  resumed,
  TestLink,
  TestNode,
} from "./testing/nodes.ts";
import type { NodeOptions, World } from "./testing/nodes.ts";

/** Linked nodes with one clock. */
class Nodes implements AsyncDisposable {
  readonly world: World = { clock: new ManualClock(), claims: new Map() };
  readonly all: readonly TestNode[];
  readonly links = new Map<string, TestLink>();

  constructor(count = 2, options: readonly NodeOptions[] = []) {
    this.all = Array.from(
      { length: count },
      (_, at) => new TestNode(at + 1, this.world, options[at]),
    );
    for (const one of this.all) {
      for (const other of this.all) {
        if (one.process < other.process) this.link(one, other);
      }
    }
  }

  link(one: TestNode, other: TestNode): TestLink {
    const link = new TestLink(one, other);
    this.links.set(`${one.process}-${other.process}`, link);
    return link;
  }

  get between(): TestLink {
    return this.links.get("1-2")!;
  }

  /** Lets `forMs` pass, with all that is due and all that follows. */
  async pass(forMs: number): Promise<void> {
    for (let left = forMs; left > 0; left -= 50) {
      await settle();
      this.world.clock.advance(Math.min(50, left));
    }
    await settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ends = this.all.map((node) => node.end());
    await this.pass(100);
    await Promise.all(ends);
  }
}

/** Lets all frames in memory arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Makes a client of alice's at `node` lose its connection and get stanzas `ids`; returns the id to
 * resume by.
 */
async function sleepAt(node: TestNode, ...ids: string[]): Promise<string> {
  const { peer, id } = await node.enter();
  peer.cut();
  await settle();
  node.deliver(...ids);
  return id;
}

/** Returns the ids of the messages that a client has got and not read. */
function unreadBy({ unread }: RawPeer): string[] {
  return [...unread.matchAll(/<message [^>]*id='(\w+)'/g)].map(([, id]) => id!);
}

Deno.test("a session follows its client with all unacknowledged stanzas, in order and once", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  peer.send("<presence><priority>7</priority></presence><message id='u' to='bob@example.com'/>");
  await settle();
  one.deliver("m1", "m2", "m3");
  await peer.expect("id='m3'/>");
  peer.cut();
  await settle();
  one.deliver("m4");
  const again = await two.greet();
  await again.exchange(resume(id, 3), resumed(id, 2));
  await expectMessages(again, "m3", "m4");
  assert.deepEqual([two.session?.priority, two.arrivedWith], [7, [7]]);
  assert.equal(nodes.world.claims.get(HOME), two);
  assert.deepEqual(one.settled, [1, 2]);
  again.send(a(5));
  await nodes.pass(1_000);
  assert.deepEqual(one.settled, [1, 2, 3, 4]);
  assert.deepEqual([one.session, one.rerouted, two.rerouted], [undefined, [], []]);
  assert.equal(one.accepted.length, 1, "no presence says that it has gone");
  assert.deepEqual([one.resumption.givings, two.resumption.takings], [0, 0]);
  assert.equal(two.metric("causeway_resumed_elsewhere_total"), 1);
});

Deno.test("a stream that is still open is closed when its session goes to another node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  one.deliver("m1");
  await expectMessages(peer, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  assert.match(await peer.expectClosed(), /<conflict /);
});

Deno.test("stanzas for a frozen session follow it, and stanzas straight to its new node wait", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.greet();
  one.deliver("m1");
  again.send(resume(id, 0));
  await again.expectNext(resumed(id, 0));
  await expectMessages(again, "m1");
  // The new place is in the table. One sender knows it, another does not yet.
  two.deliver("direct");
  one.deliver("late");
  await again.expect("id='late'/>");
  await nodes.pass(100);
  assert.doesNotMatch(again.unread, /direct/);
  await nodes.pass(600);
  assert.equal(one.session, undefined);
  await again.expect("id='direct'/>");
});

Deno.test("a message for all of an account's sessions comes once to one that moves, and to each other one", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  const { peer: desk } = await two.enter("desk");
  for (const each of [peer, desk]) await each.exchange("<presence/>", /<presence [^>]*\/>/);
  one.deliverToAccount("early", 1);
  await expectMessages(peer, "early");
  const again = await two.greet();
  await again.exchange(resume(id, 1), resumed(id, 1));
  await expectMessages(again, "early");
  // Both places are in the table. Either copy may be the first one.
  one.deliverToAccount("m2", 2);
  await settle();
  two.deliverToAccount("m2", 2);
  two.deliverToAccount("m3", 3);
  one.deliverToAccount("m3", 3);
  await nodes.pass(1_000);
  two.deliverToAccount("early", 1); // it took a longer way
  two.deliverToAccount("m4", 4);
  await settle();
  assert.deepEqual(unreadBy(again), ["m2", "m3", "m4"]);
  assert.deepEqual(unreadBy(desk), ["m2", "m3", "early", "m4"]);
});

Deno.test("a message of which a copy has followed its session is routed again when that ends", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  const again = await two.greet();
  await again.exchange(resume(id, 1), resumed(id, 1));
  one.deliverToAccount("m1", 1, true);
  await settle();
  two.deliverToAccount("m1", 1);
  two.deliverToAccount("m2", 2);
  await settle();
  one.deliverToAccount("m2", 2, true);
  two.deliverToAccount("m3", 3);
  await settle();
  one.deliverToAccount("m3", 3, true);
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(again), ["m1", "m2", "m3"]);
  assert.deepEqual(two.settled, []);
  again.send(a(2)); // the presence and m1
  await nodes.pass(1_000);
  assert.deepEqual(two.settled, [1]);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m2", "m3"]);
});

Deno.test("a message whose copy has gone on with its session follows it, and takes the copy's place", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  const second = await two.greet();
  await second.exchange(resume(id, 1), resumed(id, 1));
  two.deliverToAccount("m1", 1); // waits for those that follow
  for (const [at, name] of ["m1", "m2", "m3"].entries()) one.deliverToAccount(name, at + 1, true);
  await settle();
  const third = await three.greet();
  await third.exchange(resume(id, 1), resumed(id, 1));
  await expectMessages(third, "m1", "m2", "m3");
  two.deliverToAccount("m2", 2);
  third.send(a(3)); // the presence, m1 and m2
  await nodes.pass(200);
  two.deliverToAccount("m3", 3);
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(third), []);
  assert.deepEqual(two.settled.toSorted(), [1, 2]);
  third.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(three.rerouted.map(({ id }) => id), ["m3"]);
});

Deno.test("a session brings a message in the place of its copy, and keeps it there if it stays", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  const second = await two.greet();
  await second.exchange(resume(id, 1), resumed(id, 1));
  two.deliverToAccount("m1", 1); // waits for those that follow
  one.deliverToAccount("m1", 1, true);
  one.deliverToAccount("m2", 2, true);
  await settle();
  const between = nodes.links.get("2-3")!;
  between.drops = (from, type) => from === three && type === FRAME_TYPE.have;
  const third = await three.greet();
  third.send(resume(id, 1));
  await settle();
  third.cut();
  await nodes.pass(6_000);
  assert.equal(two.session?.isHibernating, true, "it was not given");
  two.deliverToAccount("m2", 2);
  between.drops = (from, type) => from === three && type === FRAME_TYPE.have;
  const again = await three.greet();
  again.send(resume(id, 1));
  await settle();
  between.drops = () => false;
  two.deliverToAccount("m3", 3, true);
  two.deliverToAccount("m4", 4);
  await again.expectNext(resumed(id, 1));
  await expectMessages(again, "m1", "m2", "m3", "m4");
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(three.rerouted.map(({ id }) => id), ["m1", "m2", "m4"]);
});

Deno.test("a session brings a message once whose copy was on its way before", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  const second = await two.greet();
  await second.exchange(resume(id, 1), resumed(id, 1));
  two.deliverToAccount("m1", 1); // waits for those that follow
  one.deliverToAccount("m1", 1, true);
  await settle();
  const between = nodes.links.get("2-3")!;
  between.drops = (from, type) => from === three && type === FRAME_TYPE.have;
  const third = await three.greet();
  third.send(resume(id, 1));
  await settle();
  between.drops = () => false;
  await nodes.pass(1_000);
  await third.expectNext(resumed(id, 1));
  await expectMessages(third, "m1");
  assert.deepEqual([unreadBy(third), two.settled], [[], []]);
  third.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(three.rerouted.map(({ id }) => id), ["m1"]);
});

Deno.test("a message that waits at both places of a session that goes to and fro comes once", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  const at = async (node: TestNode) => {
    const again = await node.greet();
    await again.exchange(resume(id, 1), resumed(id, 1));
    return again;
  };
  await at(two);
  await at(one);
  two.deliverToAccount("m1", 1, true);
  one.deliverToAccount("m1", 1);
  two.deliverToAccount("m2", 2);
  one.deliverToAccount("m2", 2, true);
  await settle();
  const last = await at(two);
  await nodes.pass(6_000);
  assert.deepEqual(unreadBy(last).toSorted(), ["m1", "m2"]);
  assert.deepEqual([one.settled, two.settled], [[], []]);
  last.send(a(3));
  await nodes.pass(1_000);
  assert.deepEqual([one.settled, two.settled], [[1], [2]]);
  assert.deepEqual([one.resumption.givings, two.resumption.takings], [0, 0]);
});

Deno.test("a session that has moved gets a message that another one of its old node has left, and once", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  await peer.exchange("<presence/>", /<presence [^>]*\/>/);
  one.deliverToAccount("m1", 1);
  await expectMessages(peer, "m1");
  const { peer: desk } = await one.enter("desk");
  desk.send("<presence><priority>5</priority></presence>");
  await settle();
  one.deliverToAccount("m2", 2); // desk alone gets it
  await desk.expect("id='m2'/>");
  await peer.expect(/<presence .*<\/presence>/);
  const again = await two.greet();
  await again.exchange(resume(id, 1), resumed(id, 1)); // m1 and the presence come again
  await nodes.pass(1_000);
  desk.send("</stream:stream>");
  await settle();
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m2"]);
  two.deliverToAccount("m1", 1, false, true);
  two.deliverToAccount("m2", 2, false, true);
  await settle();
  assert.deepEqual(unreadBy(again), ["m1", "m2"]);
});

Deno.test("a carbon that both places of a session give it comes once, and each other one comes", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const carbon = (id: string) => message(id, ALICE);
  one.session!.send(carbon("c0"));
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  two.session!.send(carbon("c0")); // it took a longer way
  for (const each of ["c1", "same"]) one.session!.send(carbon(each));
  for (const each of ["c2", "same", "same"]) two.session!.send(carbon(each));
  await settle();
  one.session!.send(carbon("c2"));
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(again), ["c0", "c1", "same", "c2", "same"]);
});

Deno.test("stanzas straight to the new node wait for two seconds at most", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  nodes.between.drops = (from) => from === one;
  two.deliver("direct");
  await nodes.pass(1_900);
  assert.equal(again.unread, "");
  await nodes.pass(200);
  await expectMessages(again, "direct");
});

Deno.test("a lost commit leaves the session at its old node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  nodes.between.drops = (from, type) => from === two && type === FRAME_TYPE.have;
  const again = await two.greet();
  again.send(resume(id, 0));
  await nodes.pass(4_900);
  assert.equal(again.unread, "");
  await nodes.pass(200);
  await again.expectNext(failed(0));
  assert.equal(two.metric("causeway_resume_elsewhere_failures_total", { reason: "timeout" }), 1);
  assert.equal(one.metric("causeway_sessions_asked_for_total", { outcome: "taken-back" }), 1);
  nodes.between.drops = () => false;
  const back = await one.greet();
  await back.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(back, "m1");
});

Deno.test("a link that is cut on the way leaves the session at its old node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  nodes.between.drops = (_, type) => type === FRAME_TYPE.given || type === FRAME_TYPE.queue;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  nodes.between.cut();
  await again.expectNext(failed(0));
  assert.equal(one.session?.isHibernating, true);
  nodes.link(one, two);
  const third = await two.greet();
  await third.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(third, "m1");
});

Deno.test("stanzas of a given session that did not arrive are routed again", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  nodes.between.drops = (_, type) => type === FRAME_TYPE.given;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  nodes.between.cut();
  await again.expectNext(failed(0));
  one.deliver("m2"); // no node has the session yet, so it is kept
  nodes.link(one, two);
  await settle();
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1", "m2"]);
  assert.equal(one.session, undefined);
});

Deno.test("a link that is cut after the session was taken loses and doubles nothing", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  nodes.between.cut();
  one.deliver("m2", "m3");
  again.send(a(1));
  await settle();
  nodes.link(one, two);
  await settle();
  await again.expect(/id='m2'\/>.*id='m3'\/>/);
  again.send(a(3));
  await nodes.pass(1_000);
  assert.deepEqual(one.settled, [1, 2, 3]);
  assert.deepEqual(one.rerouted, []);
});

Deno.test("stanzas straight to the new node wait for those of the old one while the link is cut", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await settle();
  nodes.between.cut();
  one.deliver("late");
  two.deliver("direct");
  await settle();
  nodes.link(one, two);
  await settle();
  await nodes.pass(600);
  await again.expect(/id='late'\/>.*id='direct'\/>/);
});

Deno.test("stanzas straight to the new node go on though the link is cut when nothing else follows", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1"); // it is not settled, so the transfer goes on
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  nodes.between.drops = (from, type) => from === one && type === FRAME_TYPE.queue;
  await nodes.pass(600); // the old node has said so
  two.deliver("direct");
  nodes.between.cut();
  nodes.link(one, two);
  await settle();
  await again.expect("id='direct'/>");
});

Deno.test("when the new node dies, the old one routes unacknowledged stanzas again", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2", "m3");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1", "m2", "m3");
  again.send(a(1));
  await nodes.pass(200);
  nodes.between.cut();
  await nodes.pass(2_000);
  assert.deepEqual(one.rerouted, [], "the new node may only be cut off");
  one.endedProcesses.add(two.process);
  await nodes.pass(1_100);
  assert.deepEqual(one.rerouted, [
    { id: "m2", mayBeRepeat: false },
    { id: "m3", mayBeRepeat: false },
  ]);
});

Deno.test("a datacenter that claims another's process number cannot end or see its transfers", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1", "m2");
  await nodes.pass(200);
  const forged = new TestLink(three, one, new Map([[three, two.process]]));
  const link = forged.endOf(one);
  const have = { transfer: 1, received: 2, settled: 2 };
  for (const step of ["more", "taken", "decline"] as const) {
    const frame = haveFrame({ ...have, step });
    one.traffic.frame(link, FRAME_TYPE.have, frame, 0, frame.length);
  }
  nodes.between.cut();
  await nodes.pass(200);
  assert.deepEqual(forged.sent, [], "the transfer does not go on over its link");
  forged.cut(true);
  await nodes.pass(200);
  assert.deepEqual([one.settled, one.rerouted], [[], []]);
  nodes.link(one, two);
  again.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual([one.settled, one.rerouted], [[1, 2], []]);
});

Deno.test("a session is asked for nowhere when two datacenters claim its process", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const forged = new TestLink(three, two, new Map([[three, one.process]]));
  const asked = await two.greet();
  await asked.exchange(resume(id, 0), failed());
  assert.deepEqual([nodes.between.sent, forged.sent], [[], []], "its id is sent to no node");
  forged.cut();
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
});

Deno.test("a session of our own datacenter is asked for there, even if another claims its process", async () => {
  await using nodes = new Nodes(3, [{ host: "dc1.example.com" }, { host: "dc1.example.com" }]);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const forged = new TestLink(three, two, new Map([[three, one.process]]));
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  assert.deepEqual(forged.sent, []);
});

Deno.test("a new node that stops reports, before its links end, what its client has acknowledged", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2", "m3");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1", "m2", "m3");
  two.resumption.stop();
  again.send(a(2));
  await settle();
  assert.deepEqual(one.settled, []);
  two.traffic.leaving?.();
  await settle();
  nodes.between.cut(true);
  await settle();
  assert.deepEqual(one.settled, [1, 2]);
  assert.deepEqual(one.rerouted, [{ id: "m3", mayBeRepeat: false }]);
  await nodes.pass(1_000);
});

Deno.test("a new node that is out of reach for expireAfterMs counts as gone; it may still deliver", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  nodes.between.cut();
  await nodes.pass(119_000);
  assert.deepEqual(one.rerouted, []);
  await nodes.pass(2_000);
  assert.deepEqual(one.rerouted, [{ id: "m1", mayBeRepeat: true }]);
});

Deno.test("a new node that dies before the old one has dialled it is dialled, and counts as gone when it listens nowhere", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1", "m2");
  await nodes.pass(200);
  nodes.between.cut();
  assert.deepEqual(one.called, [two.process], "otherwise no node would notice that it has ended");
  await nodes.pass(10_000);
  assert.deepEqual(one.rerouted, [], "a silent node may only be cut off");
  one.unheardProcesses.add(two.process);
  await nodes.pass(1_100);
  assert.deepEqual(one.rerouted, [
    { id: "m1", mayBeRepeat: true },
    { id: "m2", mayBeRepeat: true },
  ]);
});

Deno.test("a new node that listens nowhere has three seconds to link again", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  one.unheardProcesses.add(two.process);
  nodes.between.cut();
  await nodes.pass(2_900);
  assert.deepEqual(one.rerouted, []);
  nodes.link(one, two);
  await nodes.pass(10_000);
  assert.deepEqual(one.rerouted, []);
  nodes.links.get("1-2")!.cut();
  await nodes.pass(4_100);
  assert.deepEqual(one.rerouted, [{ id: "m1", mayBeRepeat: true }]);
});

Deno.test("another process under the new node's name ends the wait for it", async () => {
  await using nodes = new Nodes(3, [{}, {}, { host: "dc2.example.com" }]);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  nodes.links.get("1-3")!.cut();
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  nodes.between.cut();
  nodes.link(one, three);
  await settle();
  assert.deepEqual(one.rerouted, [{ id: "m1", mayBeRepeat: false }]);
});

Deno.test("a node that stops leaves received stanzas to others, and routes the rest again", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { peer, id } = await one.enter();
  const second = await one.enter("desk");
  for (const each of [peer, second.peer]) each.cut();
  await settle();
  one.deliver("m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  nodes.between.drops = (from) => from === one;
  one.deliver("m2");
  await settle();
  nodes.between.cut();
  one.deliver("m3");
  nodes.links.get("1-3")!.drops = (from) => from === one;
  const other = await three.greet();
  other.send(resume(second.id, 0));
  await settle();
  one.resumption.stop();
  await settle();
  assert.deepEqual(one.rerouted, [
    { id: "m2", mayBeRepeat: true }, // it may have arrived
    { id: "m3", mayBeRepeat: false },
  ]);
  assert.deepEqual(one.settled, [1]);
  assert.deepEqual([...one.registry.sessions()].map(({ jid }) => jid.resourcepart), ["desk"]);
  assert.equal(one.resumption.givings, 0);
  await nodes.pass(5_100);
  await other.expectNext(failed());
});

Deno.test("when the old node is gone, the client's resumption fails at once", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  nodes.between.cut();
  const again = await two.greet();
  await again.exchange(resume(id, 0), failed());
  await bind(again, "home"); // the stream stays open
  assert.equal(
    two.metric("causeway_resume_elsewhere_failures_total", { reason: "unreachable" }),
    1,
  );
});

Deno.test("when the old node dies on the way, the client hears which of its stanzas are safe", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  peer.send("<message id='u' to='bob@example.com'/>");
  await settle();
  nodes.between.drops = (from, type) => from === one && type === FRAME_TYPE.given;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  nodes.between.cut();
  await again.expectNext(failed(1));
});

Deno.test("of two simultaneous resumptions one succeeds, and the other fails", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const [first, second] = [await two.greet(), await three.greet()];
  first.send(resume(id, 0));
  second.send(resume(id, 0));
  await nodes.pass(500);
  const has = [first, second].filter(({ unread }) => unread.includes("<resumed "));
  const hasNot = [first, second].filter(({ unread }) => unread.includes("<item-not-found "));
  assert.deepEqual([has.length, hasNot.length], [1, 1]);
  assert.equal([first, second].filter(({ unread }) => unread.includes("id='m1'")).length, 1);
  assert.deepEqual(one.rerouted, []);
});

Deno.test("a client that comes back to the old node meanwhile has its session there", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  nodes.between.drops = (from, type) => from === two && type === FRAME_TYPE.have;
  const elsewhere = await two.greet();
  elsewhere.send(resume(id, 0));
  await settle();
  const back = await one.greet();
  await back.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(back, "m1");
  await elsewhere.expectNext(failed(0));
});

Deno.test("a client that has logged in with the resource meanwhile keeps it", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  await three.enter();
  assert.equal(nodes.world.claims.get(HOME), three);
  const again = await two.greet();
  await again.exchange(resume(id, 0), failed(0));
  assert.equal(nodes.world.claims.get(HOME), three);
  // …even at the node that asks for the session.
  const other = await one.enter("desk");
  other.peer.cut();
  await two.enter("desk");
  nodes.world.claims.set("alice@example.com/desk", one);
  const late = await two.greet();
  await late.exchange(resume(other.id, 0), failed(0));
});

Deno.test("a request for an ended session is answered with its handled count", async () => {
  await using nodes = new Nodes(2, [{ management: { resumeTimeoutMs: 1_000 } }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  peer.send("<message id='u' to='bob@example.com'/>");
  await settle();
  peer.cut();
  await nodes.pass(1_100);
  assert.equal(one.session, undefined);
  const again = await two.greet();
  await again.exchange(resume(id, 0), failed(1));
  assert.equal(two.metric("causeway_resume_elsewhere_failures_total", { reason: "stale" }), 1);
});

Deno.test("another account gets no session, and no information", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const bob = await two.greet("bob");
  await bob.exchange(resume(id, 0), failed());
  assert.equal(one.session?.isHibernating, false);
});

Deno.test("a session of a local-host user is given to no other datacenter", async () => {
  const asked: string[] = [];
  const mayHave = (account: string, host: string) => asked.push(`${account} ${host}`) < 1;
  await using nodes = new Nodes(2, [{ mayHave }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const alice = await two.greet();
  await alice.exchange(resume(id, 0), failed());
  assert.equal(one.session?.isHibernating, false);
  assert.deepEqual(asked, ["alice@example.com dc2.example.com"]);
});

Deno.test("a client that claims to have handled too much loses its stream, and not its session", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  one.deliver("m1");
  await expectMessages(peer, "m1");
  const again = await two.greet();
  again.send(resume(id, 2));
  assert.match(await again.expectClosed(), /<handled-count-too-high [^>]*h='2' send-count='1'/);
  assert.equal(one.session?.isHibernating, false);
});

Deno.test("a session is found after several moves, and comes back", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one);
  for (const [index, node] of [two, three, one, three].entries()) {
    const again = await node.greet();
    await again.exchange(resume(id, index), resumed(id, 0));
    await nodes.pass(1_000);
    node.deliver(`m${index}`);
    await expectMessages(again, `m${index}`);
    assert.equal(nodes.world.claims.get(HOME), node);
    again.cut();
    await settle();
  }
});

Deno.test("a session comes back at once, however soon its client returns", async () => {
  const one = { maxSessionsPerAccount: 1 };
  await using nodes = new Nodes(2, [one, one]);
  const [first, second] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(first, "m1");
  for (const node of [second, first, second, first]) {
    const again = await node.greet();
    await again.exchange(resume(id, 0), resumed(id, 0));
    await expectMessages(again, "m1");
    assert.equal(nodes.world.claims.get(HOME), node);
    again.cut();
    await settle();
  }
  const last = await first.greet();
  await last.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(last, "m1");
  last.send(a(1));
  await nodes.pass(10_000);
  first.deliver("m2");
  await last.expect("id='m2'/>");
  last.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual(first.settled, [1, 2]);
  assert.deepEqual([first.rerouted, second.rerouted], [[], []]);
  assert.equal(second.session, undefined);
  for (const { resumption, accepted } of nodes.all) {
    assert.deepEqual([resumption.givings, resumption.takings], [0, 0]);
    assert.deepEqual(accepted, [], "no presence says that it has gone");
  }
});

Deno.test("stanzas follow a session that has come back and gone again, until it is known there", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one);
  const at = async (node: TestNode) => {
    const again = await node.greet();
    await again.exchange(resume(id, 0), resumed(id, 0));
    return again;
  };
  (await at(two)).cut();
  await nodes.pass(100);
  (await at(one)).cut();
  await nodes.pass(100);
  await at(three);
  assert.equal(one.resumption.follows(HOME), three.host);
  await nodes.pass(100);
  assert.equal(one.resumption.follows(HOME), three.host);
  await nodes.pass(1_000);
  assert.equal(one.resumption.follows(HOME), undefined);
});

Deno.test("a transfer ends when its client has gone again", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  nodes.between.drops = (from, type) => from === one && type === FRAME_TYPE.session;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  again.cut();
  await nodes.pass(10_000);
  assert.equal(one.session?.isHibernating, true);
  assert.deepEqual([one.resumption.givings, two.resumption.takings], [0, 0]);
});

Deno.test("a client that goes in the last moment finds its session at the new node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  again.send(resume(id, 0));
  while (!nodes.between.sent.some(({ type }) => type === FRAME_TYPE.given)) await Promise.resolve();
  again.cut();
  await nodes.pass(1_000);
  const third = await two.greet();
  await third.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(third, "m1");
});

Deno.test("a session without a place at its new node ends, and no stanza of it is lost", async () => {
  await using nodes = new Nodes(2, [{}, { maxSessionsPerAccount: 1 }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  await two.enter("other");
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), failed(0));
  await settle();
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
  assert.equal(two.metric("causeway_resume_elsewhere_failures_total", { reason: "no-place" }), 1);
});

Deno.test("a session brings errors owed to its client, however much else it has", async () => {
  const options = { maxItems: 3, management: { maxItems: 3 } };
  await using nodes = new Nodes(2, [options, options]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  peer.cut();
  await settle();
  one.deliver("m1", "m2", "m3");
  for (let n = 0; n < 9; n++) {
    const { stanza, ...rest } = envelopeOf(`e${n}`, 100 + n);
    const error = new Envelope({ ...rest, stanza: { ...stanza, type: "error" }, entry: "owed" });
    assert.equal(one.registry.deliver(error.stanza, error), "delivered");
  }
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await again.expect("id='e8'");
  assert.equal(two.session?.isHibernating, false);
});

for (const [count, isTaken] of [[20, true], [21, false]] as const) {
  Deno.test(`a session with ${count} of at most 20 stanzas ${isTaken ? "comes" : "stays"}`, async () => {
    await using nodes = new Nodes(2, [{}, { maxItems: 20 }]);
    const [one, two] = nodes.all as [TestNode, TestNode];
    const { peer, id } = await one.enter();
    peer.cut();
    await settle();
    one.deliver(...Array.from({ length: count }, (_, at) => `m${at}`));
    const again = await two.greet();
    await again.exchange(resume(id, 0), isTaken ? resumed(id, 0) : failed(0));
    assert.equal(one.session?.isHibernating, true); // stays reachable, or is taken back
    assert.equal(two.session === undefined, !isTaken);
  });
}

for (const [max, answer] of [[1, resumed], [0, undefined]] as const) {
  Deno.test(`a node that may give ${max} sessions at once gives ${max}`, async () => {
    await using nodes = new Nodes(2, [{ maxGivings: max }]);
    const [one, two] = nodes.all as [TestNode, TestNode];
    const { id } = await one.enter();
    const again = await two.greet();
    await again.exchange(resume(id, 0), answer?.(id, 0) ?? failed());
  });
}

Deno.test("a session that goes to and fro leaves other accounts places to give theirs", async () => {
  const management = { maxStreamEnds: 0 }; // the stanza is not blamed for the ends of its streams
  await using nodes = new Nodes(2, [{ maxGivings: 12, management }, { management }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id: idOfBob, peer } = await one.enter("home", "bob");
  peer.cut();
  const id = await sleepAt(one, "m1");
  let moves = 0;
  for (; moves < 20; moves++) {
    const again = await nodes.all[(moves + 1) % 2]!.greet();
    again.send(resume(id, 0));
    const hasCome = (await again.expect(/<(resumed|failed) /))[1] === "resumed";
    if (!hasCome) break;
    await again.expect("id='m1'/>");
    again.cut();
    await nodes.pass(6_000);
  }
  assert.equal(one.resumption.givings, 2);
  assert.equal(moves, 4);
  const bob = await two.greet("bob");
  await bob.exchange(resume(idOfBob, 0), resumed(idOfBob, 0));
});

Deno.test("a queue of many frames is sent only as fast as it is taken", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const ids = Array.from({ length: 400 }, (_, at) => `${at}-${"x".repeat(2_000)}`);
  one.deliver(...ids);
  nodes.between.drops = (from, type) => from === two && type === FRAME_TYPE.have;
  const stuck = await two.greet();
  stuck.send(resume(id, 0));
  await settle();
  const frames = nodes.between.sent.filter(({ type }) => type === FRAME_TYPE.queue).length;
  assert.ok(frames >= 3 && frames <= 5, `${frames} frames of 64 KiB are on their way`);
  nodes.between.drops = () => false;
  await nodes.pass(5_100);
  await stuck.expectNext(failed(0));
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, ...ids);
});

Deno.test("earlier deliveries are known at the session's new node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  const [first] = one.deliver("m1", "m2");
  await expectMessages(peer, "m1", "m2");
  peer.send(a(1));
  const again = await two.greet();
  await again.exchange(resume(id, 1), resumed(id, 0));
  first!.mayBeRepeat = true;
  assert.equal(two.repeats.isRepeat(first!), true);
});

Deno.test("stanzas that moved with a session count as delivered only where it is", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const [first] = one.deliver("m1");
  nodes.between.drops = (_, type) => type === FRAME_TYPE.given;
  const failing = await two.greet();
  failing.send(resume(id, 0));
  await nodes.pass(300);
  assert.deepEqual([one.repeats.isRepeat(first!), two.repeats.isRepeat(first!)], [false, false]);
  await nodes.pass(5_000); // it declines the given session
  await failing.expectNext(failed(0));
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
  assert.equal(two.repeats.isRepeat(first!), false);

  nodes.between.drops = () => false;
  const other = await one.enter();
  const [second] = one.deliver("m2");
  await other.peer.expect("id='m2'/>");
  const again = await two.greet();
  await again.exchange(resume(other.id, 0), resumed(other.id, 0));
  const [third] = one.deliver("m3");
  await settle();
  for (const each of [second!, third!]) {
    assert.deepEqual([one.repeats.isRepeat(each), two.repeats.isRepeat(each)], [false, true]);
  }
});

Deno.test("a stanza whose sender the other node must not speak for is refused", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  one.registry.deliver(message("forged", "eve@forged.example/x"));
  one.deliver("m1");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  assert.equal(two.metric("causeway_resumed_elsewhere_refused_total"), 1);
});

/** Asks at `two`, and lets the test answer for `one`, whose own answers are lost. */
async function imitate(nodes: Nodes, answers: readonly Uint8Array[]): Promise<string> {
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  nodes.between.drops = (from) => from === one;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  const link = nodes.between.endOf(two);
  for (const frame of answers) two.traffic.frame(link, frame[4]!, frame, 0, frame.length);
  await nodes.pass(6_000);
  return again.unread;
}

const SESSION = {
  transfer: 1,
  jid: HOME,
  received: 0,
  covered: 0,
  acknowledged: 0,
  resumeTimeoutMs: 1_000,
  resendingMs: 0,
  lang: "",
  priority: undefined,
  presence: new Uint8Array(0),
  hasCarbons: false,
  isNewlyAvailable: false,
};

function queueOf(number: number, to = HOME): Uint8Array {
  const stanza = { ...message("m"), to: parseTo(to) };
  const fields = {
    stanza,
    process: 9,
    sequence: 1,
    origin: "dc9.example.com",
    sentAtUs: 0,
    ttl: 1,
    bounces: 0,
    mayBeRepeat: false,
  };
  return queueFrame({
    transfer: 1,
    isEnd: true,
    isCaughtUp: false,
    areArchived: false,
    stanzas: [{ number, fields }],
  });
}

function parseTo(text: string) {
  return { ...message("m"), to: parseJid(text) }.to;
}

for (
  const [what, answers] of [
    ["the session of another account", [sessionFrame({ ...SESSION, jid: "bob@example.com/x" })]],
    ["a session without a resource", [sessionFrame({ ...SESSION, jid: "alice@example.com" })]],
    ["a queue before the session", [queueOf(1)]],
    ["a queue with a gap", [sessionFrame(SESSION), queueOf(2)]],
    ["a stanza for somebody else", [sessionFrame(SESSION), queueOf(1, "bob@example.com/x")]],
  ] as const
) {
  Deno.test(`a node that sends ${what} is refused`, async () => {
    await using nodes = new Nodes();
    const unread = await imitate(nodes, answers);
    assert.match(unread, /<failed .*<item-not-found /);
    assert.equal(nodes.all[1]!.session, undefined);
  });
}

Deno.test("a session with 16384 details is taken, and none with more", async () => {
  const directed = (count: number) =>
    Array.from(
      { length: count },
      (_, i) => ({ kind: "directed" as const, jid: `a@b.example/${i}` }),
    );
  for (const [count, answered] of [[16_384, "commit"], [16_385, "decline"]] as const) {
    await using nodes = new Nodes();
    const steps: string[] = [];
    nodes.between.heard = (frame) => {
      if (frame[4] === FRAME_TYPE.have) steps.push(decodeHave(frame, 0, frame.length).step);
    };
    const empty = {
      transfer: 1,
      isEnd: true,
      isCaughtUp: false,
      areArchived: false,
      stanzas: [],
    };
    await imitate(nodes, [
      sessionFrame(SESSION),
      ...detailsFrames(1, directed(count)),
      queueFrame(empty),
    ]);
    assert.equal(steps[0], answered, `${count}`);
  }
});

/** Moves a session of alice's, without a connection and with a stanza, from `one` to `two`. */
async function move(one: TestNode, two: TestNode, resource: string): Promise<void> {
  const { peer, id } = await one.enter(resource);
  peer.cut();
  await settle();
  const { sequence, process, origin, sentAtUs, ttl, bounces, mayBeRepeat } = envelopeOf("m", 1);
  const stanza = { ...message("m"), to: parseJid(`alice@example.com/${resource}`) };
  const fields = { stanza, sequence, process, origin, sentAtUs, ttl, bounces, mayBeRepeat };
  assert.equal(one.registry.deliver(stanza, new Envelope(fields)), "delivered");
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
}

Deno.test("a node remembers as many of the sessions that it took as maxTakings, and not one more", async () => {
  await using nodes = new Nodes(2, [{}, { maxTakings: 2 }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const known: number[] = [];
  for (const resource of ["r1", "r2", "r3", "r4"]) {
    await move(one, two, resource);
    await nodes.pass(100);
    known.push(two.resumption.takings);
  }
  assert.deepEqual(known, [1, 2, 2, 2]);
});
