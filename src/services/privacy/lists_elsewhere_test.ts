import assert from "node:assert/strict";
import {
  contact,
  fullJid,
  MemoryPrivacyStore,
  PrivacyFixture,
  settled,
} from "./testing/privacy_fixture.ts";
import {
  ALICE,
  BLOCK_BOB,
  BLOCK_LIST,
  BOB,
  deny,
  DOWN,
  LAPTOP,
  listOf,
  PHONE,
  query,
  refuses,
  UNBLOCK_ALL,
  withPhone,
} from "./testing/privacy_scene.ts";

Deno.test("a change at one node holds at another before its clients hear of it", async () => {
  const store = new MemoryPrivacyStore();
  const [here, there] = [new PrivacyFixture({ store }), new PrivacyFixture({ store, process: 2 })];
  await withPhone(here);
  await there.server.opening(fullJid(LAPTOP));
  here.elsewhere.set(ALICE, [{ host: "dc2.example.com", resourcepart: "laptop" }]);
  await there.ask(LAPTOP, "get", BLOCK_LIST);
  await here.ask(PHONE, "set", BLOCK_BOB);
  assert.equal(refuses(there, BOB, LAPTOP), false);
  await here.carry(there);
  assert.equal(refuses(there, BOB, LAPTOP), true);
  assert.deepEqual(there.delivered, [`laptop <block><item jid=${BOB}>`]);
  assert.deepEqual(here.delivered, [], "the phone has not asked for the block list");
  await here.ask(PHONE, "set", UNBLOCK_ALL);
  await here.carry(there);
  assert.equal(refuses(there, BOB, LAPTOP), false);
});

Deno.test("a default list that another node chooses holds here, and no client gets a push", async () => {
  const store = new MemoryPrivacyStore();
  const [here, there] = [new PrivacyFixture({ store }), new PrivacyFixture({ store, process: 2 })];
  await withPhone(here);
  await there.server.opening(fullJid(LAPTOP));
  here.elsewhere.set(ALICE, [{ host: "dc2.example.com", resourcepart: "laptop" }]);
  await here.ask(PHONE, "set", listOf("x", deny(1, "", "<message/>")));
  await here.carry(there);
  assert.deepEqual(here.delivered, ["phone <query><list name=x>"]);
  assert.deepEqual(there.delivered, ["laptop <query><list name=x>"]);
  await here.ask(PHONE, "set", query("<default name='x'/>"));
  await here.carry(there);
  assert.equal(refuses(there, BOB, LAPTOP), true);
  assert.equal(there.delivered.length, 1);
});

Deno.test("a node that has heard of no change finds it by the next look", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid("carol@example.com/x"));
  await fixture.ask(PHONE, "get", BLOCK_LIST);
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  assert.equal(refuses(fixture, BOB), false);
  await fixture.server.look("example.com", ["alice", "carol", "nobody"]);
  assert.equal(refuses(fixture, BOB), true);
  await fixture.carry();
  assert.deepEqual(fixture.delivered, [`phone <block><item jid=${BOB}>`]);
  fixture.store.failure = DOWN;
  await fixture.server.look("example.com", ["alice"]);
  assert.equal(refuses(fixture, BOB), true);
  fixture.store.failure = undefined;
  await fixture.store.removeAll("alice");
  await fixture.server.look("example.com", ["alice"]);
  assert.equal(refuses(fixture, BOB), false);
  assert.ok(await fixture.counts("causeway_privacy_accounts 0"));
});

Deno.test("a change whose node did not know of a new session yet is found a moment later", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid("carol@example.com/x"));
  fixture.server.closed(fullJid("carol@example.com/x"));
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  assert.equal(refuses(fixture, BOB), false);
  fixture.store.queries.length = 0;
  fixture.clock.advance(5_000);
  await settled(fixture);
  assert.equal(refuses(fixture, BOB), true);
  assert.deepEqual(fixture.store.queries, ["versions", "read"], "none for who has left");
});

Deno.test("the damaged list of one account keeps no other account from the look", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid("carol@example.com/x"));
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  const list = { name: "x", xml: "<damaged" };
  fixture.store.put("carol", { expected: 0, defaultName: "x", list });
  await fixture.server.look("example.com", ["carol", "alice"]);
  assert.equal(refuses(fixture, BOB), true);
  assert.ok(await fixture.counts("causeway_privacy_failures_total 1"));
});

Deno.test("news of a change is read again until the database answers", async () => {
  const fixture = await withPhone();
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  other.elsewhere.set(ALICE, [{ host: "dc1.example.com", resourcepart: "phone" }]);
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  fixture.store.failure = DOWN;
  await other.carry(fixture);
  assert.equal(refuses(fixture, BOB), false);
  fixture.store.failure = undefined;
  fixture.clock.advance(1_000);
  await settled(fixture);
  assert.equal(refuses(fixture, BOB), true);
});

/** A node whose phone gets pushes of the block list, and another one at which a session changes lists. */
async function withFollower() {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "get", BLOCK_LIST);
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  other.elsewhere.set(ALICE, [{ host: "dc1.example.com", resourcepart: "phone" }]);
  return { fixture, other };
}

Deno.test("a client hears of changes in their order, though the first read of them fails", async () => {
  const { fixture, other } = await withFollower();
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  await other.carry(fixture);
  assert.deepEqual(fixture.delivered.splice(0), [`phone <block><item jid=${BOB}>`]);
  await other.ask(LAPTOP, "set", UNBLOCK_ALL);
  fixture.store.failure = DOWN;
  await other.carry(fixture);
  fixture.store.failure = undefined;
  await other.ask(LAPTOP, "set", BLOCK_BOB.replace("bob", "carol"));
  await other.carry(fixture);
  fixture.clock.advance(1_000);
  await settled(fixture);
  assert.deepEqual(fixture.delivered, [
    `phone <unblock><item jid=${BOB}>`,
    "phone <block><item jid=carol@example.com>",
  ]);
});

Deno.test("a client hears of a change whose push is lost, whoever has its node read it", async () => {
  const readers: readonly ((node: PrivacyFixture) => Promise<unknown>)[] = [
    (node) => node.server.opening(fullJid(LAPTOP)),
    (node) => node.ask(PHONE, "set", query("<active name='x'/>")),
    (node) => node.ask(PHONE, "set", BLOCK_BOB),
    (node) => node.server.look("example.com", ["alice"]),
  ];
  for (const read of readers) {
    const { fixture, other } = await withFollower();
    await other.ask(LAPTOP, "set", BLOCK_BOB.replace("bob", "carol"));
    await read(fixture);
    await fixture.carry();
    const [pushed] = fixture.delivered;
    assert.match(pushed ?? "nothing", /^phone <block>.*jid=carol@example.com/);
    fixture.delivered.length = 0;
    await other.carry(fixture); // the push is only late
    assert.deepEqual(fixture.delivered, []);
  }
});

Deno.test("a client hears of a change at another node whose answer was lost there", async () => {
  const { fixture, other } = await withFollower();
  fixture.store.lostAnswer = DOWN;
  await assert.rejects(other.ask(LAPTOP, "set", BLOCK_BOB), DOWN);
  await settled(other);
  await other.carry(fixture);
  assert.deepEqual(fixture.delivered, [`phone <block><item jid=${BOB}>`]);
});

Deno.test("a client gets no block list that is older than a change which it has heard of", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid(LAPTOP));
  const late = fixture.store.late = Promise.withResolvers<void>();
  const asked = fixture.ask(PHONE, "get", BLOCK_LIST)
    .then((answer) => fixture.delivered.push(`phone ${answer}`));
  const wait = async () => {
    for (let i = 0; i < 50; i++) await Promise.resolve();
  };
  await wait();
  const blocked = fixture.ask(LAPTOP, "set", BLOCK_BOB);
  await wait();
  for (const stanza of fixture.routed.splice(0)) fixture.server.takes(stanza);
  await wait();
  late.resolve();
  await Promise.all([asked, blocked]);
  await fixture.carry();
  assert.deepEqual(fixture.delivered, ["phone <blocklist>", `phone <block><item jid=${BOB}>`]);
});

Deno.test("changes are told on from the block list that a client got", async () => {
  const { fixture, other } = await withFollower();
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  await other.carry(fixture);
  fixture.delivered.length = 0;
  await other.ask(LAPTOP, "set", UNBLOCK_ALL);
  assert.equal(await fixture.ask(PHONE, "get", BLOCK_LIST), "<blocklist>");
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  await fixture.carry();
  await other.carry(fixture);
  assert.deepEqual(fixture.delivered, [
    `phone <unblock><item jid=${BOB}>`,
    `phone <block><item jid=${BOB}>`,
  ]);
});

Deno.test("a client that has moved hears of a change that its new node knew before it came", async () => {
  const { fixture, other } = await withFollower();
  fixture.server.closed(fullJid(PHONE));
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  await withPhone(fixture);
  fixture.server.arrived(fullJid(PHONE));
  await other.carry(fixture);
  assert.deepEqual(fixture.delivered.splice(0), [`phone <block><item jid=${BOB}>`]);
  await fixture.ask(PHONE, "set", UNBLOCK_ALL);
  await fixture.carry();
  assert.deepEqual(fixture.delivered, [`phone <unblock><item jid=${BOB}>`], "once");
});

Deno.test("a change of the roster whose push is lost is found by the next look", async () => {
  const fixture = await withPhone();
  const carol = contact("carol@example.com", { groups: ["Work"] });
  fixture.contacts.push(contact(BOB, { groups: ["Home"] }), carol);
  await fixture.ask(PHONE, "set", listOf("x", deny(1, "type='group' value='Work'")));
  await fixture.ask(PHONE, "set", query("<default name='x'/>"));
  fixture.changes.length = 0;
  await fixture.server.look("example.com", ["alice"]);
  assert.deepEqual([refuses(fixture, BOB), fixture.changes], [false, []]);
  fixture.contacts[0] = contact(BOB, { groups: ["Work"] });
  await fixture.server.look("example.com", ["alice"]);
  assert.deepEqual([refuses(fixture, BOB), fixture.changes.length], [true, 1]);
});

Deno.test("a change holds at all nodes though the database could not say that it was made", async () => {
  const store = new MemoryPrivacyStore();
  const one = await withPhone(new PrivacyFixture({ store }));
  const other = new PrivacyFixture({ store, process: 2 });
  await other.server.opening(fullJid(LAPTOP));
  one.elsewhere.set(ALICE, [{ host: "dc2.example.com", resourcepart: "laptop" }]);
  store.lostAnswer = DOWN;
  await assert.rejects(one.ask(PHONE, "set", BLOCK_BOB), DOWN);
  await settled(one);
  await one.carry(other);
  assert.equal(refuses(one, BOB), true);
  assert.equal(refuses(other, BOB, LAPTOP), true);
});
