import assert from "node:assert/strict";
import { FRAME_TYPE } from "../wire/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import { bind, HEADER, plainOf, SASL } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import {
  a,
  ENABLE,
  ENABLED,
  envelopeOf,
  expectMessages,
  failed,
  HOME,
  message,
  resume,
  resumed,
  TestNode,
} from "./testing/nodes.ts";
import { Nodes, settle, sleepAt } from "./testing/linked_nodes.ts";

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
  const again = await two.resume(id, 3, 2);
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
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1");
  assert.match(await peer.expectClosed(), /<conflict /);
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
  const back = await one.resume(id, 0);
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

Deno.test("a session is found after several moves, and comes back", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one);
  for (const [index, node] of [two, three, one, three].entries()) {
    const again = await node.resume(id, index, 0);
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
    const again = await node.resume(id, 0);
    await expectMessages(again, "m1");
    assert.equal(nodes.world.claims.get(HOME), node);
    again.cut();
    await settle();
  }
  const last = await first.resume(id, 0);
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
    const again = await node.resume(id, 0);
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
  const third = await two.resume(id, 0);
  await expectMessages(third, "m1");
});

Deno.test("a session that gets its place while its new node closes ends there", async () => {
  const placing = Promise.withResolvers<undefined>();
  await using nodes = new Nodes(2, [{}, { opening: () => placing.promise }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  two.resumption.stop();
  const closing = two.listener.close();
  await settle();
  placing.resolve(undefined);
  await closing;
  assert.deepEqual([two.management.count, nodes.world.claims.size], [0, 0]);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
});

for (const bytes of [1_023, 1_024]) {
  Deno.test(`a session whose language is a text of ${bytes} bytes moves`, async () => {
    await using nodes = new Nodes();
    const [one, two] = nodes.all as [TestNode, TestNode];
    const peer = one.connect();
    const header = HEADER.replace("xml:lang='en'", `xml:lang='${"x".repeat(bytes)}'`);
    for (const login of [plainOf("alice"), ""]) {
      peer.send(header);
      await peer.expect("</stream:features>");
      if (login !== "") await peer.exchange(login, `<success xmlns='${SASL}'/>`);
    }
    await bind(peer, "home");
    const [, id] = await peer.exchange(ENABLE, ENABLED);
    peer.cut();
    await settle();
    await two.resume(id!, 0);
  });
}

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
  const again = await two.resume(id, 0);
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
  const again = await two.resume(id, 0);
  await expectMessages(again, ...ids);
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
  await two.resume(id, 0);
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
