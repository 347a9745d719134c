import assert from "node:assert/strict";
import { bind } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import { FRAME_TYPE } from "../wire/mod.ts";
import { expectMessages, failed, HOME, resume, resumed, TestNode } from "./testing/nodes.ts";
import { Nodes, settle, sleepAt } from "./testing/linked_nodes.ts";

/** Three nodes. The second one gives no session a place before `place` is called. */
class SlowPlace extends Nodes {
  readonly #placing = Promise.withResolvers<"not-allowed" | undefined>();

  constructor() {
    super(3, [{}, { opening: () => this.#placing.promise }]);
  }

  place(refusal?: "not-allowed"): void {
    this.#placing.resolve(refusal);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.place();
    await super[Symbol.asyncDispose]();
  }
}

for (const isCut of [false, true]) {
  const which = isCut ? "has gone" : "is still open";

  Deno.test(`a client that asks again while its session gets its place there has it, though its first stream ${which}`, async () => {
    await using nodes = new SlowPlace();
    const [one, two] = nodes.all as [TestNode, TestNode];
    const id = await sleepAt(one, "m1");
    const first = await two.greet();
    first.send(resume(id, 0));
    await settle();
    if (isCut) first.cut();
    const again = await two.greet();
    again.send(resume(id, 0));
    await settle();
    assert.equal(again.unread, "");
    nodes.place();
    await again.expectNext(resumed(id, 0));
    await expectMessages(again, "m1");
    await nodes.pass(1_000);
    if (!isCut) {
      await first.expect(/<conflict .*<\/stream:stream>/);
      await first.expectClosed();
    }
    assert.equal(nodes.world.claims.get(HOME), two);
    assert.equal(two.metric("causeway_resumed_elsewhere_total"), 1);
  });
}

/** Lets a client of the second node resume a session of the first, and go while GIVEN is on its way. */
async function goWhileGiven(nodes: Nodes, id: string): Promise<void> {
  const [one, two] = nodes.all as [TestNode, TestNode];
  const isSent = (type: number) => nodes.between.sent.some((each) => each.type === type);
  nodes.between.delayMs = (from) => from === one && isSent(FRAME_TYPE.have) ? 100 : 0;
  const peer = await two.greet();
  peer.send(resume(id, 0));
  await settle();
  assert.ok(isSent(FRAME_TYPE.given));
  peer.cut();
}

Deno.test("a client that asks at any other node while its session gets its place has it there", async () => {
  for (const at of [0, 2]) {
    await using nodes = new SlowPlace();
    const [one, two] = nodes.all as [TestNode, TestNode];
    const id = await sleepAt(one, "m1");
    const first = await two.greet();
    first.send(resume(id, 0));
    await settle();
    first.cut();
    const other = nodes.all[at]!;
    const again = await other.greet();
    again.send(resume(id, 0));
    await settle();
    assert.equal(again.unread, "");
    nodes.place();
    await again.expectNext(resumed(id, 0));
    await expectMessages(again, "m1");
    await nodes.pass(1_000);
    assert.equal(nodes.world.claims.get(HOME), other);
  }
});

for (const isCut of [false, true]) {
  const which = isCut ? "has gone" : "was told that there is none";
  Deno.test(`a session stays where it got its place when the client that waited for it elsewhere ${which}`, async () => {
    await using nodes = new SlowPlace();
    const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
    const id = await sleepAt(one, "m1");
    const first = await two.greet();
    first.send(resume(id, 0));
    await settle();
    const other = await three.greet();
    other.send(resume(id, 0));
    await settle();
    if (isCut) other.cut();
    else {
      await nodes.pass(5_000);
      await other.expectNext(failed());
    }
    await settle();
    nodes.place();
    await first.expectNext(resumed(id, 0));
    await expectMessages(first, "m1");
    await nodes.pass(1_000);
    assert.equal(first.isClosed, false);
    assert.equal(nodes.world.claims.get(HOME), two);
    assert.equal(two.resumption.givings, 0);
  });
}

Deno.test("a client that asks again before its session is given has it, though its first stream goes", async () => {
  await using nodes = new Nodes(2);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const first = await two.greet();
  const again = await two.greet();
  let isGiven = false;
  nodes.between.heard = (frame) => {
    if (frame[4] !== FRAME_TYPE.given || isGiven) return;
    isGiven = true;
    again.send(resume(id, 0));
    first.cut();
  };
  first.send(resume(id, 0));
  await settle();
  assert.ok(isGiven);
  await again.expectNext(resumed(id, 0));
  await expectMessages(again, "m1");
});

Deno.test("a client that goes while its session is being given finds it at the new node", async () => {
  await using nodes = new Nodes(2);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  await goWhileGiven(nodes, id);
  await nodes.pass(1_000);
  const again = await two.greet();
  await again.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(again, "m1");
  assert.deepEqual(one.rerouted, []);
});

Deno.test("a client that goes while its session is being given, and logs in at another node, stays there", async () => {
  await using nodes = new Nodes(3);
  const [one, , three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  await goWhileGiven(nodes, id);
  const { peer } = await three.enter();
  await nodes.pass(6_000);
  assert.equal(peer.isClosed, false);
  assert.equal(nodes.world.claims.get(HOME), three);
  assert.deepEqual(nodes.all.map(({ registry }) => registry.count), [0, 0, 1]);
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
});

Deno.test("a client that goes while its session is being given, and logs in at its new node, stays there", async () => {
  await using nodes = new SlowPlace();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  await goWhileGiven(nodes, id);
  const login = await two.greet();
  const bound = bind(login, "home");
  await nodes.pass(200);
  nodes.place(); // the login gets its place after the session has come
  assert.equal(await bound, HOME);
  await nodes.pass(1_000);
  assert.equal(login.isClosed, false);
  assert.equal(nodes.world.claims.get(HOME), two);
  assert.deepEqual(nodes.all.map(({ registry }) => registry.count), [0, 1, 0]);
  assert.deepEqual([...one.rerouted, ...two.rerouted].map(({ id }) => id), ["m1"]);
});

Deno.test("a client that asks again while its session gets no place is answered as the first stream", async () => {
  await using nodes = new SlowPlace();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const [first, again] = [await two.greet(), await two.greet()];
  for (const each of [first, again]) each.send(resume(id, 0));
  await settle();
  nodes.place("not-allowed");
  await first.expectNext(failed(0));
  await again.expectNext(failed(0));
  await nodes.pass(1_000);
  assert.deepEqual(one.rerouted.map(({ id }) => id), ["m1"]);
});

Deno.test("clients whose session is under way when the node goes down are told that, and it stays", async () => {
  await using nodes = new Nodes(2);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  nodes.between.drops = (from) => from === one;
  const [first, again] = [await two.greet(), await two.greet()];
  for (const each of [first, again]) each.send(resume(id, 0));
  await settle();
  nodes.between.drops = () => false;
  two.resumption.stop();
  await settle();
  const asked = nodes.between.sent.filter(({ type }) => type === FRAME_TYPE.resume);
  assert.equal(asked.length, 1);
  const late = await two.greet();
  late.send(resume(id, 0));
  for (const each of [first, again, late]) {
    await each.expectNext(/^<stream:error><system-shutdown .*<\/stream:stream>/);
  }
  assert.deepEqual([one.management.hibernating, two.resumption.takings], [1, 0]);
  const elsewhere = await one.greet();
  await elsewhere.exchange(resume(id, 0), resumed(id, 0));
  await expectMessages(elsewhere, "m1");
});

Deno.test("another account that names a session on its way is told nothing of it, and changes nothing", async () => {
  await using nodes = new SlowPlace();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const first = await two.greet();
  first.send(resume(id, 0));
  await settle();
  const stranger = await two.greet("bob");
  await stranger.exchange(resume(id, 0), failed());
  const again = await two.greet(); // it waits nevertheless
  again.send(resume(id, 0));
  await settle();
  assert.equal(again.unread, "");
  nodes.place();
  await first.expectNext(resumed(id, 0));
  await again.expectNext(resumed(id, 0));
});

Deno.test("two nodes that are asked at once for a session that both have had, and neither has, answer at once", async () => {
  const management = { staleHMs: 0 };
  await using nodes = new Nodes(2, [{ management }, { management }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  const peer = await two.resume(id, 0);
  peer.send("</stream:stream>");
  await peer.expect(/<\/stream:stream>/);
  await nodes.pass(10_000);
  const [first, second] = [await one.greet(), await two.greet()];
  for (const each of [first, second]) each.send(resume(id, 0));
  await settle();
  for (const each of [first, second]) await each.expectNext(failed());
});
