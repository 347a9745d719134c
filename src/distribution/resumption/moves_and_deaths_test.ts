import assert from "node:assert/strict";
import { FRAME_TYPE } from "../wire/mod.ts";
import { WINDOW_BYTES } from "./resumption_options.ts";
import { bind } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import { a, envelopeOf, expectMessages, TestNode } from "./testing/nodes.ts";
import { Nodes, settle, sleepAt, unreadBy } from "./testing/linked_nodes.ts";

Deno.test("a session that has come back keeps its stanzas, and gets none again, when the node between dies", async () => {
  await using nodes = new Nodes();
  nodes.world.isRouting = true;
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const there = await two.resume(id, 0);
  await expectMessages(there, "m1");
  await nodes.pass(1_000);
  there.cut();
  await settle();
  const back = await one.resume(id, 0);
  await expectMessages(back, "m1");
  await nodes.pass(1_000);
  nodes.between.cut();
  one.endedProcesses.add(two.process);
  await nodes.pass(1_100);
  back.send(a(1)); // a client whose streams have often ended gets one stanza at a time
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(back), []);
  assert.deepEqual(one.settled, [1]);
});

Deno.test("a stanza that was held back at a dead node is no repeat where its session has gone", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const there = await two.resume(id, 0);
  await expectMessages(there, "m1");
  two.arrive(envelopeOf("m2", 77));
  await settle();
  const on = await three.resume(id, 1, 0);
  nodes.links.get("2-3")!.cut();
  three.arrive(envelopeOf("m2", 77)); // the sender's lane to the dead node gave it back
  await nodes.pass(3_000);
  assert.deepEqual(unreadBy(on), ["m2"]);
});

Deno.test("a stanza that waits for a node that dies is no repeat where its session has gone since", async () => {
  await using nodes = new Nodes(3);
  nodes.world.isRouting = true;
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one);
  const there = await two.resume(id, 0);
  await settle();
  nodes.between.drops = (from, type) => from === two && type === FRAME_TYPE.have;
  const long = "m".padEnd(WINDOW_BYTES, "1");
  one.deliver(long, "m2"); // the second waits until the new node has confirmed the first
  await settle();
  assert.ok(there.unread.includes(long));
  await one.resume(id, 1, 0);
  await settle();
  const last = await three.resume(id, 1, 0);
  await settle();
  nodes.between.cut();
  nodes.links.get("2-3")!.cut();
  one.endedProcesses.add(two.process);
  await nodes.pass(3_000);
  assert.deepEqual(unreadBy(last), ["m2"]);
  last.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual(one.settled, [1, 2]);
});

Deno.test("a stanza that a moved session leaves without an acknowledgement is no repeat for the next login", async () => {
  await using nodes = new Nodes();
  nodes.world.isRouting = true;
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const there = await two.resume(id, 0);
  await expectMessages(there, "m1");
  await nodes.pass(1_000);
  const peer = await two.greet();
  await bind(peer, "home");
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(peer), ["m1"]);
});
