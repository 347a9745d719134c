import assert from "node:assert/strict";
import { buildStanza, element, parseElement, parseJid } from "../../xmpp/mod.ts";
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
  BOB,
  deny,
  DOWN,
  LAPTOP,
  listOf,
  PHONE,
  query,
  refuses,
  rosterPush,
  withPhone,
} from "./testing/privacy_scene.ts";

Deno.test("an active list stands for the default list, in its session alone", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid(LAPTOP));
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  await fixture.ask(PHONE, "set", listOf("x", deny(1, "type='jid' value='carol@example.com'")));
  const activate = (attributes: string) =>
    fixture.ask(PHONE, "set", query(`<active ${attributes}/>`));
  assert.equal(await activate("name='nothing'"), "item-not-found");
  assert.equal(await activate("name='x'"), "empty");
  const of = (session: string) =>
    [BOB, "carol@example.com"].map((from) => refuses(fixture, from, session));
  assert.deepEqual([of(PHONE), of(LAPTOP)], [[false, true], [true, false]]);
  assert.equal(
    await fixture.ask(PHONE, "get", query()),
    "<query><active name=x><default name=blocking><list name=blocking><list name=x>",
  );
  await fixture.ask(LAPTOP, "set", listOf("x", deny(1, "type='jid' value='dan@example.com'")));
  assert.deepEqual(of(PHONE), [false, false]);
  assert.equal(await activate(""), "empty");
  assert.deepEqual(of(PHONE), [true, false]);
  fixture.server.closed(fullJid(PHONE));
  assert.equal(await activate("name='x'"), "not-allowed");
});

Deno.test("an active list follows its session to another node, and no other session takes it", async () => {
  const store = new MemoryPrivacyStore();
  const [here, there] = [new PrivacyFixture({ store }), new PrivacyFixture({ store, process: 2 })];
  await withPhone(here);
  await here.ask(PHONE, "set", listOf("x", deny(1)));
  await here.ask(PHONE, "set", query("<active name='x'/>"));
  await there.server.opening(fullJid(PHONE));
  here.routed.length = 0;
  here.server.closed(fullJid(PHONE));
  const [signal] = here.routed;
  assert.ok(signal !== undefined);
  assert.equal(there.server.takes(signal), true);
  await settled(there);
  assert.equal(refuses(there, BOB), false, "a session that has just logged in has no active list");
  there.server.arrived(fullJid(PHONE));
  there.server.takes(signal);
  await settled(there);
  assert.equal(refuses(there, BOB), true);
  assert.deepEqual(there.delivered, []);
});

Deno.test("a list that others use is neither removed nor replaced", async () => {
  const fixture = await withPhone();
  const remove = (name: string) => fixture.ask(PHONE, "set", listOf(name, ""));
  const choose = (attributes: string) =>
    fixture.ask(PHONE, "set", query(`<default ${attributes}/>`));
  for (const name of ["x", "y"]) await fixture.ask(PHONE, "set", listOf(name, deny(1)));
  assert.equal(await remove("z"), "item-not-found");
  assert.equal(await choose("name='z'"), "item-not-found");
  assert.equal(await choose("name='x'"), "empty");
  assert.equal(await choose("name='y'"), "empty", "only this client uses it");
  await fixture.server.opening(fullJid(LAPTOP));
  assert.equal(await choose("name='y'"), "empty");
  for (const attributes of ["name='x'", ""]) assert.equal(await choose(attributes), "conflict");
  assert.equal(await remove("y"), "conflict");
  await fixture.ask(LAPTOP, "set", query("<active name='x'/>"));
  assert.equal(await remove("x"), "conflict");
  assert.equal(await remove("y"), "empty");
  fixture.elsewhere.set(ALICE, [{ host: "dc2.example.com", resourcepart: "tablet" }]);
  await choose("name='x'");
  assert.equal(await choose(""), "conflict", "a session elsewhere uses it");
  assert.equal(await fixture.ask(PHONE, "get", query()), "<query><default name=x><list name=x>");
});

Deno.test("a client that removes its own active list has none any more", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "set", listOf("x", deny(1)));
  await fixture.ask(PHONE, "set", query("<active name='x'/>"));
  assert.equal(refuses(fixture, BOB), true);
  assert.equal(await fixture.ask(PHONE, "set", listOf("x", "")), "empty");
  assert.equal(refuses(fixture, BOB), false);
});

Deno.test("an active list that another node removes still follows the roster", async () => {
  const store = new MemoryPrivacyStore();
  const here = await withPhone(new PrivacyFixture({ store }));
  const there = new PrivacyFixture({ store, process: 2 });
  here.contacts.push(contact(BOB, { groups: ["Work"] }));
  await here.ask(PHONE, "set", listOf("x", deny(1, "type='group' value='Work'")));
  await here.ask(PHONE, "set", query("<active name='x'/>"));
  there.elsewhere.set(ALICE, [{ host: "dc1.example.com", resourcepart: "phone" }]);
  assert.equal(await there.ask(LAPTOP, "set", listOf("x", "")), "empty");
  await there.carry(here);
  assert.equal(refuses(here, BOB), true);
  here.contacts[0] = contact(BOB, { groups: ["Home"] });
  here.server.takes(rosterPush());
  await settled(here);
  assert.equal(refuses(here, BOB), false);
  here.contacts[0] = contact(BOB, { groups: ["Work"] });
  await store.removeAll("alice");
  await here.server.look("example.com", ["alice"]);
  assert.equal(refuses(here, BOB), true);
});

/** A node to which the phone's session has come. The list "strict" denies bob. */
async function withMovedPhone(): Promise<PrivacyFixture> {
  const fixture = await withPhone();
  const strict = deny(1, `type='jid' value='${BOB}'`);
  assert.equal(await fixture.ask(PHONE, "set", listOf("strict", strict)), "empty");
  const others = deny(1, "type='jid' value='dave@example.com'");
  assert.equal(await fixture.ask(PHONE, "set", listOf("other", others)), "empty");
  fixture.server.arrived(fullJid(PHONE));
  return fixture;
}

/** Makes the node from which the phone's session came tell of its active list. */
function tellOfActive({ server }: PrivacyFixture, name: string): void {
  const payload = parseElement(new TextEncoder().encode(query(`<active name='${name}'/>`)));
  const iq = element("iq", { type: "set", id: "privacy-9-1" }, payload);
  server.takes(buildStanza(iq, { from: parseJid(ALICE), to: parseJid(PHONE) }));
}

for (
  const [what, isFirst, wait] of [
    ["before", true, true],
    ["while", true, false],
    ["after", false, true],
  ] as const
) {
  Deno.test(`the list that a client chooses stays, ${what} its old node tells of another`, async () => {
    const fixture = await withMovedPhone();
    const choose = () => fixture.ask(PHONE, "set", query("<active name='strict'/>"));
    const chosen = isFirst ? choose() : undefined;
    if (wait) await chosen;
    tellOfActive(fixture, "other");
    if (!isFirst) await choose();
    await chosen;
    await settled(fixture);
    assert.equal(fixture.server.activeOf(fullJid(PHONE)), "strict");
    assert.equal(refuses(fixture, BOB), true);
  });
}

Deno.test("the active list of a session that has moved does not wait for the database", async () => {
  const fixture = await withMovedPhone();
  fixture.store.failure = DOWN;
  tellOfActive(fixture, "strict");
  await settled(fixture);
  assert.equal(refuses(fixture, BOB), true);
});

Deno.test("a session that moves gets an active list that another node has just made", async () => {
  const fixture = await withMovedPhone();
  await fixture.ask(PHONE, "set", listOf("other", ""));
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  await other.ask(LAPTOP, "set", listOf("new", deny(1)));
  tellOfActive(fixture, "new");
  await settled(fixture);
  assert.equal(refuses(fixture, BOB), true);
});

Deno.test("a session that ends while it chooses a list leaves none to its successor", async () => {
  const fixture = await withMovedPhone();
  await fixture.server.opening(fullJid(LAPTOP));
  const choose = () => fixture.ask(PHONE, "set", query("<active name='strict'/>"));
  let chosen = choose();
  fixture.server.closed(fullJid(PHONE));
  assert.equal(await chosen, "not-allowed");
  await withPhone(fixture);
  assert.equal(fixture.server.activeOf(fullJid(PHONE)), undefined);
  chosen = choose();
  fixture.server.closed(fullJid(PHONE));
  const opened = withPhone(fixture);
  assert.equal(await chosen, "not-allowed");
  await opened;
  assert.equal(fixture.server.activeOf(fullJid(PHONE)), undefined, "it came before the answer");
});

Deno.test("a session is invisible while its active list denies presence to all others", async () => {
  const out = "<presence-out/>";
  const allowBob = `<item type='jid' value='${BOB}' action='allow' order='1'/>`;
  const lists = {
    "deny all": [deny(1), true],
    "deny presence": [deny(1, "", out), true],
    "deny all but bob": [allowBob + deny(2, "", out), true],
    "deny bob": [deny(1, `type='jid' value='${BOB}'`), false],
    "deny messages": [deny(1, "", "<message/>"), false],
    "allow first": [`<item action='allow' order='1'/>${deny(2)}`, false],
  } as const;
  for (const [name, [items, isInvisible]] of Object.entries(lists)) {
    const fixture = await withPhone();
    await fixture.server.opening(fullJid(LAPTOP));
    assert.equal(await fixture.ask(PHONE, "set", listOf("list", items)), "empty", name);
    assert.equal(fixture.server.isInvisible(fullJid(PHONE)), false, "it is not in use");
    await fixture.ask(PHONE, "set", query("<active name='list'/>"));
    assert.equal(fixture.server.isInvisible(fullJid(PHONE)), isInvisible, name);
    assert.equal(fixture.server.isInvisible(fullJid(LAPTOP)), false);
    fixture.server.closed(fullJid(PHONE));
    assert.equal(fixture.server.isInvisible(fullJid(PHONE)), false, "the session is gone");
  }
});
