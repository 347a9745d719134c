import assert from "node:assert/strict";
import { FRAME_TYPE } from "../wire/mod.ts";
import { bind } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import { a, expectMessages, failed, resume, TestNode } from "./testing/nodes.ts";
import { Nodes, settle, sleepAt } from "./testing/linked_nodes.ts";

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
  const back = await one.resume(id, 0);
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
  const third = await two.resume(id, 0);
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
  const again = await two.resume(id, 0);
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

Deno.test("when the new node dies, the old one routes unacknowledged stanzas again", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2", "m3");
  const again = await two.resume(id, 0);
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

Deno.test("a new node that stops reports, before its links end, what its client has acknowledged", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2", "m3");
  const again = await two.resume(id, 0);
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
  await two.resume(id, 0);
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
  const again = await two.resume(id, 0);
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
  await two.resume(id, 0);
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
  await two.resume(id, 0);
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
  await two.resume(id, 0);
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
