import assert from "node:assert/strict";
import { Envelope } from "../mod.ts";
import { FRAME_TYPE } from "../wire/mod.ts";
import {
  a,
  ALICE,
  envelopeOf,
  expectMessages,
  failed,
  message,
  resume,
  resumed,
  TestNode,
} from "./testing/nodes.ts";
import { Nodes, settle, sleepAt, unreadBy } from "./testing/linked_nodes.ts";

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

Deno.test("a message that follows a session which has ended there goes on once the old node has let go of it", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  again.send("</stream:stream>");
  await settle();
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
  // The old node has still a place for it: where the table names that, m1 comes back.
  one.deliver("m1");
  await settle();
  assert.deepEqual(two.rerouted.length, 1);
  await nodes.pass(1_000);
  assert.equal(one.session, undefined);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1", "m1"]);
});

Deno.test("messages that follow a session which has ended go on at once, in order, when they find no room", async () => {
  await using nodes = new Nodes(2, [{}, { management: { maxItems: 2 } }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  again.send("</stream:stream>");
  await settle();
  one.deliver("m1", "m2");
  await settle();
  assert.deepEqual(two.rerouted, []);
  one.deliver("m3");
  await settle();
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1", "m2", "m3"]);
  const limit = { edge: "c2s", limit: "unacknowledged-stanzas" };
  assert.equal(two.metric("xmpp_limit_hits_total", limit), 1);
});

Deno.test("a session that has moved gets a message that waited for earlier ones of its room meanwhile", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const settled: number[] = [];
  const waiting = envelopeOf("m1", 5, { settle: () => settled.push(5) }, ALICE);
  one.memory.noteDelivered(waiting);
  const again = await two.greet();
  again.send(resume(id, 1));
  await nodes.pass(100);
  assert.equal(one.registry.deliver(waiting.stanza, waiting), "delivered");
  await nodes.pass(1_000);
  assert.deepEqual([unreadBy(again), settled], [["m1"], []]);
});

Deno.test("a carbon that both places of a session give it comes once, and each other one comes", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const carbon = (id: string) => message(id, ALICE);
  one.session!.send(carbon("c0"));
  const again = await two.resume(id, 0);
  two.session!.send(carbon("c0")); // it took a longer way
  for (const each of ["c1", "same"]) one.session!.send(carbon(each));
  for (const each of ["c2", "same", "same"]) two.session!.send(carbon(each));
  await settle();
  one.session!.send(carbon("c2"));
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(again), ["c0", "c1", "same", "c2", "same"]);
});

Deno.test("a carbon comes once when the new place of a session gives it a moment after the wait for the old one", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.resume(id, 0);
  for (const each of ["c1", "c2"]) one.session!.send(message(each, ALICE));
  await nodes.pass(1_000);
  assert.equal(one.session, undefined);
  for (const each of ["c1", "c1", "c3"]) two.session!.send(message(each, ALICE));
  await nodes.pass(3_000);
  two.session!.send(message("c2", ALICE)); // somebody has said it again
  await settle();
  assert.deepEqual(unreadBy(again), ["c1", "c2", "c1", "c3", "c2"]);
});

Deno.test("a carbon comes once when it follows a session late, because the link was cut", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.resume(id, 0);
  await settle();
  nodes.between.cut();
  for (const each of ["c1", "c2", "c3"]) one.session!.send(message(each, ALICE));
  two.session!.send(message("c1", ALICE)); // it waits for those of the old node, two seconds at most
  await nodes.pass(3_000);
  for (const each of ["c2", "c4"]) two.session!.send(message(each, ALICE));
  await nodes.pass(10_000);
  nodes.link(one, two);
  await nodes.pass(3_000);
  two.session!.send(message("c4", ALICE)); // somebody has said it again
  await settle();
  assert.deepEqual(unreadBy(again), ["c1", "c2", "c4", "c3", "c4"]);
});

Deno.test("a message that a session brings comes once, though it comes straight, too, while that gets its place", async () => {
  const placing = Promise.withResolvers<undefined>();
  await using nodes = new Nodes(2, [{}, { opening: () => placing.promise }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const [m1] = one.deliver("m1");
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  const fates: string[] = [];
  m1!.mayBeRepeat = true; // it was on its way to a node that has died since
  two.arrive(new Envelope(m1!, { settle: () => fates.push("settled") }));
  placing.resolve(undefined);
  await nodes.pass(3_000);
  assert.deepEqual(unreadBy(again), ["m1"]);
  assert.deepEqual([one.settled, fates], [[1], []]); // the second one is answered for
  again.send(a(1));
  await settle();
  assert.deepEqual(fates, ["settled"]);
});

Deno.test("a message that came straight comes once when it follows a session late, because the link was cut", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.resume(id, 0);
  await settle();
  nodes.between.cut();
  const [m1] = one.deliver("m1", "m2");
  await nodes.pass(3_000);
  const fates: string[] = [];
  m1!.mayBeRepeat = true; // the lane to the old node ended before that had answered
  two.arrive(new Envelope(m1!, { settle: () => fates.push("settled") }));
  await nodes.pass(10_000);
  nodes.link(one, two);
  await nodes.pass(3_000);
  assert.deepEqual(unreadBy(again), ["m1", "m2"]);
  again.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual([one.settled, fates], [[1, 2], ["settled"]]);
});

Deno.test("stanzas straight to the new node wait for two seconds at most", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const again = await two.resume(id, 0);
  nodes.between.drops = (from) => from === one;
  two.deliver("direct");
  await nodes.pass(1_900);
  assert.equal(again.unread, "");
  await nodes.pass(200);
  await expectMessages(again, "direct");
});

Deno.test("stanzas straight to the new node wait for those of the old one while the link is cut", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const again = await two.resume(id, 0);
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
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1");
  nodes.between.drops = (from, type) => from === one && type === FRAME_TYPE.queue;
  await nodes.pass(600); // the old node has said so
  two.deliver("direct");
  nodes.between.cut();
  nodes.link(one, two);
  await settle();
  await again.expect("id='direct'/>");
});

Deno.test("earlier deliveries are known at the session's new node", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  const [first] = one.deliver("m1", "m2");
  await expectMessages(peer, "m1", "m2");
  peer.send(a(1));
  await two.resume(id, 1, 0);
  first!.mayBeRepeat = true;
  assert.equal(two.memory.hasDelivered(first!, true), true);
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
  assert.deepEqual([one.memory.hasDelivered(first!, true), two.memory.hasDelivered(first!, true)], [
    false,
    false,
  ]);
  await nodes.pass(5_000); // it declines the given session
  await failing.expectNext(failed(0));
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
  assert.equal(two.memory.hasDelivered(first!, true), false);

  nodes.between.drops = () => false;
  const other = await one.enter();
  const [second] = one.deliver("m2");
  await other.peer.expect("id='m2'/>");
  await two.resume(other.id, 0);
  const [third] = one.deliver("m3");
  await settle();
  for (const each of [second!, third!]) {
    assert.deepEqual([one.memory.hasDelivered(each, true), two.memory.hasDelivered(each, true)], [
      false,
      true,
    ]);
  }
});
