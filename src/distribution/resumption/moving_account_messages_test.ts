import assert from "node:assert/strict";
import type { LocalSession } from "../../xmpp/mod.ts";
import { FRAME_TYPE } from "../wire/mod.ts";
import {
  a,
  ALICE,
  envelopeOf,
  expectMessages,
  resume,
  resumed,
  TestNode,
} from "./testing/nodes.ts";
import { recordsOf } from "./records.ts";
import { Nodes, settle, unreadBy } from "./testing/linked_nodes.ts";

Deno.test("a message for all of an account's sessions comes once to one that moves, and to each other one", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enterAvailable();
  const { peer: desk } = await two.enterAvailable("desk");
  one.deliverToAccount("early", 1);
  await expectMessages(peer, "early");
  const again = await two.resume(id, 1);
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

Deno.test("a message to the account is not lost while its session, which has been given, gets its place", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const again = await two.greet();
  nodes.between.heard = (frame) => {
    if (frame[4] === FRAME_TYPE.given) one.deliverToAccount("m1", 1);
  };
  await again.exchange(resume(id, 1), resumed(id, 1));
  await nodes.pass(1_000);
  assert.deepEqual(unreadBy(again), ["m1"]);
  assert.deepEqual(one.settled, []);
  again.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual(one.settled, [1]);
});

Deno.test("a message of which a copy has followed its session is routed again when that ends", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const again = await two.resume(id, 1);
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
  const { id } = await one.enterAvailable();
  await two.resume(id, 1);
  two.deliverToAccount("m1", 1); // waits for those that follow
  for (const [at, name] of ["m1", "m2", "m3"].entries()) one.deliverToAccount(name, at + 1, true);
  await settle();
  const third = await three.resume(id, 1);
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
  const { id } = await one.enterAvailable();
  await two.resume(id, 1);
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
  const { id } = await one.enterAvailable();
  await two.resume(id, 1);
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
  const { id } = await one.enterAvailable();
  await two.resume(id, 1);
  await one.resume(id, 1);
  two.deliverToAccount("m1", 1, true);
  one.deliverToAccount("m1", 1);
  two.deliverToAccount("m2", 2);
  one.deliverToAccount("m2", 2, true);
  await settle();
  const last = await two.resume(id, 1);
  await nodes.pass(6_000);
  assert.deepEqual(unreadBy(last).toSorted(), ["m1", "m2"]);
  assert.deepEqual([one.settled, two.settled], [[], []]);
  last.send(a(3));
  await nodes.pass(1_000);
  assert.deepEqual([one.settled, two.settled], [[1], [2]]);
  assert.deepEqual([one.resumption.givings, two.resumption.takings], [0, 0]);
});

Deno.test("a message that waits behind a copy which the client has acknowledged does not come again later", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const second = await two.resume(id, 1);
  two.deliverToAccount("m1", 1); // waits for those that follow
  one.deliverToAccount("m1", 1, true);
  await expectMessages(second, "m1");
  const third = await three.resume(id, 2, 1);
  await nodes.pass(3_000);
  three.deliverToAccount("m1", 1, true);
  await settle();
  assert.deepEqual(unreadBy(third), []);
  assert.deepEqual(two.settled, [1]);
});

Deno.test("a session that has moved gets a message that another one of its old node has left, and once", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enterAvailable();
  one.deliverToAccount("m1", 1);
  await expectMessages(peer, "m1");
  const { peer: desk } = await one.enter("desk");
  desk.send("<presence><priority>5</priority></presence>");
  await settle();
  one.deliverToAccount("m2", 2); // desk alone gets it
  await desk.expect("id='m2'/>");
  await peer.expect(/<presence .*<\/presence>/);
  const again = await two.resume(id, 1); // m1 and the presence come again
  await nodes.pass(1_000);
  desk.send("</stream:stream>");
  await settle();
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m2"]);
  two.deliverToAccount("m1", 1, false, true);
  two.deliverToAccount("m2", 2, false, true);
  await settle();
  assert.deepEqual(unreadBy(again), ["m1", "m2"]);
});

Deno.test("messages come to a session that is about to get its place, and go on if it gets none", async () => {
  for (const refusal of [undefined, "not-allowed", "ended"] as const) {
    const placing = Promise.withResolvers<"not-allowed" | undefined>();
    await using nodes = new Nodes(2, [{}, { opening: () => placing.promise }]);
    const [one, two] = nodes.all as [TestNode, TestNode];
    const { id } = await one.enterAvailable();
    one.deliverToAccount("m1", 1);
    const again = await two.greet();
    again.send(resume(id, 1));
    await settle();
    two.deliverToAccount("m2", 2);
    two.deliver("m3");
    if (refusal === "ended") two.registry.ofAccount(ALICE)[0]!.end("conflict");
    placing.resolve(refusal === "ended" ? undefined : refusal);
    await nodes.pass(1_000);
    const rerouted = two.rerouted.map(({ id }) => id);
    if (refusal === undefined) {
      assert.deepEqual([unreadBy(again), rerouted], [["m1", "m2", "m3"], []]);
    } else {
      assert.deepEqual([unreadBy(again), rerouted], [[], ["m2", "m3"]]);
      assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
    }
  }
});

Deno.test("a session that ends where it came to leaves no record of what it has had", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enterAvailable();
  one.deliverToAccount("m1", 1);
  one.deliverToAccount("m2", 2);
  await expectMessages(peer, "m1", "m2");
  const again = await two.greet();
  again.send(resume(id, 2)); // the presence and m1
  await nodes.pass(1_000);
  const records = () =>
    Object.values(recordsOf(1)).map((name) => two.memory.deliveredTo(name, 9).length);
  assert.deepEqual(records(), [1, 1, 0]);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(records(), [0, 0, 0]);
});

Deno.test("a message that follows its session late does not come again after a copy of it", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  nodes.between.cut();
  one.deliverToAccount("m1", 1);
  await nodes.pass(3_000); // nothing is held back any more
  two.deliverToAccount("m1", 1, true);
  await settle();
  assert.deepEqual(unreadBy(again), ["m1"]);
  nodes.link(one, two);
  await nodes.pass(1_000);
  assert.deepEqual([unreadBy(again), one.settled], [["m1"], []]);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"], "it is answered for, not its copy");
});

Deno.test("a message that another session has taken along does not come again to one that stays", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk } = await one.enterAvailable("desk");
  one.deliverToAccount("m1", 1);
  await desk.expect("id='m1'/>");
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
  one.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(desk), []);
});

Deno.test("a message that another session has taken along comes again once the one that stayed has gone", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk } = await one.enterAvailable("desk");
  one.deliverToAccount("m1", 1);
  await desk.expect("id='m1'/>");
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  desk.send("</stream:stream>");
  await nodes.pass(1_000);
  const { peer: phone } = await one.enterAvailable("phone");
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  one.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(phone), ["m1"]);
});

Deno.test("a message that comes back from a session that brought it does not come again to one that had a copy", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk } = await two.enterAvailable("desk");
  one.deliverToAccount("m1", 1);
  two.deliverToAccount("m1", 1, true);
  await desk.expect("id='m1'/>");
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
  two.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(desk), []);
});

Deno.test("a session that moves on tells of a copy that it has had, though another one keeps the message", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk, id: deskId } = await two.enterAvailable("desk");
  one.deliverToAccount("m1", 1);
  two.deliverToAccount("m1", 1, true);
  await expectMessages(desk, "m1");
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  const deskAgain = await three.resume(deskId, 2, 1);
  await nodes.pass(1_000);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
  three.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(deskAgain), []);
});

Deno.test("a message that comes to where its copy is kept takes the place of that, and goes on in its stead", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  const original = (sequence: number) => envelopeOf(`m${sequence}`, sequence, undefined, ALICE);
  two.deliverToAccount("m1", 1, true); // waits for those that follow
  assert.equal(two.registry.replaceCopies(original(1)), true);
  await nodes.pass(1_000);
  for (const sequence of [2, 3]) two.deliverToAccount(`m${sequence}`, sequence, true);
  assert.equal(two.registry.replaceCopies(original(2)), true);
  assert.equal(two.registry.replaceCopies(original(4)), false);
  await settle();
  assert.deepEqual(unreadBy(again), ["m1", "m2", "m3"]);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1", "m2"], "m3 is only a copy");
  for (const sequence of [1, 2, 3]) {
    assert.equal(two.memory.hasDelivered(original(sequence), true), false, "nobody here has it");
  }
});

Deno.test("a message that takes the place of a copy does not come again to one that has acknowledged that", async () => {
  await using nodes = new Nodes(1);
  const [one] = nodes.all as [TestNode];
  const { peer } = await one.enterAvailable();
  const { peer: desk } = await one.enterAvailable("desk");
  one.deliverToAccount("m1", 1, true);
  await desk.expect("id='m1'/>");
  desk.send(a(3)); // two presences, and m1
  await settle();
  assert.equal(one.registry.replaceCopies(envelopeOf("m1", 1, undefined, ALICE)), true);
  peer.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
  one.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(desk), []);
});

Deno.test("a message follows its copy to the session's new node until the old one has let go of the session", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  for (const sequence of [1, 2]) one.deliverToAccount(`m${sequence}`, sequence, true);
  const session = one.session as LocalSession;
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  const original = (sequence: number) => envelopeOf(`m${sequence}`, sequence, undefined, ALICE);
  assert.equal(session.replaceCopy!(original(1)), true);
  await nodes.pass(1_000);
  assert.equal(one.session, undefined);
  assert.equal(session.replaceCopy!(original(2)), false);
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"], "m2 is only a copy");
});

Deno.test("a message that comes back to a session which keeps it goes on when that ends, whoever else has settled it", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk } = await one.enterAvailable("desk");
  one.deliverToAccount("m1", 1);
  const again = await two.greet();
  again.send(resume(id, 1));
  await settle();
  again.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual(two.rerouted.map(({ id }) => id), ["m1"]);
  const back = envelopeOf("m1", 1, { settle: () => one.settled.push(-1) }, ALICE);
  back.isRerouted = true;
  assert.equal(one.memory.hasDelivered(back, true), true);
  assert.equal(one.registry.replaceCopies(back), true);
  desk.send("</stream:stream>");
  await nodes.pass(1_000);
  assert.deepEqual([one.rerouted.map(({ id }) => id), one.settled], [["m1"], []]);
});

Deno.test("a session that has moved gets a message that one which left before it could not take along", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { id } = await one.enterAvailable();
  const { peer: desk, id: deskId } = await one.enter("desk");
  desk.send("<presence><priority>5</priority></presence>");
  await settle();
  desk.cut();
  const deskAgain = await two.greet();
  deskAgain.send(resume(deskId, 1));
  await settle();
  assert.match(deskAgain.unread, /<resumed/);
  nodes.between.cut();
  await settle();
  one.deliverToAccount("m1", 1); // desk alone gets it, and it cannot follow
  await nodes.pass(1_000);
  assert.equal(one.registry.ofAccount(ALICE).length, 1, "desk has left");
  const again = await three.greet();
  again.send(resume(id, 1));
  await settle();
  assert.match(again.unread, /<resumed/);
  one.endedProcesses.add(two.process);
  await nodes.pass(3_000);
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
  three.deliverToAccount("m1", 1, false, true);
  await settle();
  assert.deepEqual(unreadBy(again), ["m1"]);
});

Deno.test("a session that moves on gets no message again that another one of its account keeps", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const { peer, id } = await one.enterAvailable();
  one.deliverToAccount("m1", 1);
  await expectMessages(peer, "m1");
  peer.send(a(2));
  const { peer: desk } = await two.enter("desk");
  desk.send("<presence/>");
  await settle();
  two.deliverToAccount("m1", 1, true); // desk does not acknowledge it
  await desk.expect("id='m1'/>");
  for (const node of [two, three]) {
    const again = await node.greet();
    again.send(resume(id, 2));
    await settle();
    assert.match(again.unread, /<resumed/);
    await nodes.pass(3_000);
    if (node === two) continue;
    three.deliverToAccount("m1", 1, true); // it took a longer way
    await settle();
    assert.deepEqual(unreadBy(again), []);
  }
});
