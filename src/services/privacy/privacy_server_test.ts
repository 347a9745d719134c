import assert from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { contact, fullJid, PrivacyFixture, settled, stanza } from "./testing/privacy_fixture.ts";
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
  rosterPush,
  UNBLOCK_ALL,
  withPhone,
} from "./testing/privacy_scene.ts";

Deno.test("a blocked contact is kept from the sessions here, and out of reach for them", async () => {
  const fixture = await withPhone();
  assert.equal(refuses(fixture, `${BOB}/x`), false);
  assert.equal(await fixture.ask(PHONE, "set", BLOCK_BOB), "empty");
  assert.equal(refuses(fixture, `${BOB}/x`), true);
  const out = stanza("message", "chat", [PHONE, BOB]);
  assert.equal(fixture.server.holdsBack(fullJid(PHONE), out), true);
  assert.equal(fixture.server.holdsBack(parseJid("echo.example.com"), out), false);
  assert.ok(
    await fixture.counts('causeway_privacy_blocked_total{direction="in",kind="message"} 1'),
  );
  assert.ok(
    await fixture.counts('causeway_privacy_blocked_total{direction="out",kind="message"} 1'),
  );
  assert.equal(await fixture.ask(PHONE, "get", BLOCK_LIST), `<blocklist><item jid=${BOB}>`);
  assert.equal(await fixture.ask(PHONE, "set", UNBLOCK_ALL), "empty");
  assert.equal(refuses(fixture, `${BOB}/x`), false);
  assert.equal(await fixture.ask(PHONE, "get", BLOCK_LIST), "<blocklist>");
});

Deno.test("no list comes between a person's own resources and server", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "set", listOf("x", deny(1)));
  await fixture.ask(PHONE, "set", query("<default name='x'/>"));
  for (const from of [LAPTOP, ALICE, "example.com", "example.com/x"]) {
    assert.equal(refuses(fixture, from), false, from);
    const out = stanza("iq", "get", [PHONE, from]);
    assert.equal(fixture.server.holdsBack(fullJid(PHONE), out), false, from);
  }
  for (const from of [BOB, "example.org", "rooms.example.com"]) {
    assert.equal(refuses(fixture, from), true, from);
  }
});

Deno.test("accounts without lists cost one small query for each session, however many log in", async () => {
  const fixture = new PrivacyFixture();
  await Promise.all(
    Array.from(
      { length: 400 },
      (_, i) => fixture.server.opening(fullJid(`user${i}@example.com/x`)),
    ),
  );
  assert.ok(fixture.store.queries.length <= 2, fixture.store.queries.join());
  assert.ok(!fixture.store.queries.includes("read"));
  assert.ok(await fixture.counts("causeway_privacy_accounts 0"));
  fixture.store.queries.length = 0;
  refuses(fixture, BOB, "user0@example.com/x");
  assert.deepEqual(fixture.store.queries, []);
});

Deno.test("a session is refused whose lists cannot be read, unless another keeps them current", async () => {
  const fixture = new PrivacyFixture();
  fixture.store.failure = DOWN;
  const opening = () => fixture.server.opening(fullJid(PHONE));
  assert.deepEqual(
    await Promise.all([opening(), fixture.server.opening(fullJid(LAPTOP))]),
    ["internal-server-error", "internal-server-error"],
  );
  for (const jid of [PHONE, LAPTOP]) fixture.server.closed(fullJid(jid));
  fixture.store.failure = new CausewayError("storage/pool-full", "Cannot wait", {});
  assert.equal(await opening(), "resource-constraint");
  fixture.store.failure = undefined;
  assert.equal(await opening(), undefined);
  fixture.store.failure = DOWN;
  assert.equal(await fixture.server.opening(fullJid(LAPTOP)), undefined);
});

Deno.test("what is in memory goes with the last session", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid(LAPTOP));
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  fixture.server.closed(fullJid(PHONE));
  assert.equal(refuses(fixture, BOB, LAPTOP), true);
  fixture.server.closed(fullJid(LAPTOP));
  assert.ok(await fixture.counts("causeway_privacy_accounts 0"));
  assert.equal(refuses(fixture, BOB), false);
});

Deno.test("nothing stays in memory of an account whose last session ends while its list is made", async () => {
  const fixture = await withPhone();
  fixture.whileReadingRoster = () => fixture.server.closed(fullJid(PHONE));
  const work = deny(1, "type='subscription' value='both'");
  assert.equal(await fixture.ask(PHONE, "set", listOf("x", work)), "empty");
  assert.ok(await fixture.counts("causeway_privacy_accounts 0"));
});

Deno.test("blocks work on the default list, and edits of that list show in the block list", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "get", BLOCK_LIST);
  await fixture.ask(PHONE, "set", listOf("own", deny(1, "type='jid' value='carol@example.com'")));
  await fixture.ask(PHONE, "set", query("<default name='own'/>"));
  await fixture.carry();
  assert.deepEqual(fixture.delivered.splice(0), [
    "phone <query><list name=own>",
    "phone <block><item jid=carol@example.com>",
  ]);
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  const list = await fixture.ask(PHONE, "get", query("<list name='own'/>"));
  assert.equal(
    list,
    `<query><list name=own><item type=jid value=${BOB} action=deny order=1>` +
      "<item type=jid value=carol@example.com action=deny order=2>",
  );
  await fixture.ask(PHONE, "set", listOf("own", deny(1, `type='jid' value='${BOB}'`)));
  await fixture.carry();
  assert.deepEqual(fixture.delivered.splice(0), [
    `phone <block><item jid=${BOB}>`,
    "phone <unblock><item jid=carol@example.com>",
    "phone <query><list name=own>",
  ]);
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  assert.deepEqual(fixture.routed, [], "bob is blocked already");
});

Deno.test("a contact is blocked whom an earlier rule of the default list lets in", async () => {
  const fixture = await withPhone();
  const friends = `<item type='group' value='Friends' action='allow' order='1'/>`;
  fixture.contacts.push(contact(BOB, { groups: ["Friends"] }));
  const items = friends + deny(2, `type='jid' value='${BOB}'`);
  await fixture.ask(PHONE, "set", listOf("own", items));
  await fixture.ask(PHONE, "set", query("<default name='own'/>"));
  assert.equal(refuses(fixture, BOB), false);
  assert.equal(await fixture.ask(PHONE, "set", BLOCK_BOB), "empty");
  assert.equal(refuses(fixture, BOB), true);
  const { version } = fixture.store.stored.get("alice")!;
  assert.equal(await fixture.ask(PHONE, "set", BLOCK_BOB), "empty");
  assert.equal(fixture.store.stored.get("alice")?.version, version, "nothing is left to change");
});

Deno.test("malformed requests are refused", async () => {
  const fixture = await withPhone();
  const rows: readonly ["get" | "set", string, string][] = [
    ["set", "<block xmlns='urn:xmpp:blocking'/>", "bad-request"],
    ["set", "<block xmlns='urn:xmpp:blocking'><item/></block>", "bad-request"],
    ["set", "<block xmlns='urn:xmpp:blocking'><item jid='@'/></block>", "jid-malformed"],
    ["set", query(), "bad-request"],
    ["set", query("<active/><default/>"), "bad-request"],
    ["set", query("<list/>"), "bad-request"],
    ["set", query("<list name=''/>"), "bad-request"],
    ["set", query("<other/>"), "bad-request"],
    ["get", query("<list name='a'/><list name='b'/>"), "bad-request"],
    ["get", query("<active name='a'/>"), "bad-request"],
    ["get", query("<list name='a'/>"), "item-not-found"],
  ];
  for (const [type, xml, condition] of rows) {
    assert.equal(await fixture.ask(PHONE, type, xml), condition, xml);
  }
});

Deno.test("a rule by group or subscription follows the roster", async () => {
  const fixture = await withPhone();
  fixture.contacts.push(contact(BOB, { groups: ["Work"], subscription: "both" }));
  await fixture.ask(PHONE, "set", listOf("x", deny(1, "type='group' value='Work'")));
  await fixture.ask(PHONE, "set", query("<default name='x'/>"));
  assert.equal(refuses(fixture, BOB), true);
  fixture.contacts[0] = contact(BOB, { groups: ["Home"] });
  fixture.changes.length = 0;
  assert.equal(fixture.server.takes(rosterPush()), false, "the client gets roster pushes");
  await settled(fixture);
  assert.equal(refuses(fixture, BOB), false);
  const [{ change } = { change: undefined }] = fixture.changes;
  assert.equal(change?.before.hidesFrom(parseJid(BOB)), true);
  assert.equal(change?.after.hidesFrom(parseJid(BOB)), false);
});

Deno.test("the lists of an account are no change for a session that opens", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  for (const jid of [PHONE, LAPTOP]) fixture.server.closed(fullJid(jid));
  fixture.changes.length = 0;
  await withPhone(fixture);
  assert.deepEqual(fixture.changes, []);
  const other = new PrivacyFixture({ store: fixture.store, process: 2 });
  await other.ask(LAPTOP, "set", UNBLOCK_ALL);
  await fixture.server.opening(fullJid(LAPTOP));
  assert.deepEqual(fixture.changes.map(({ session }) => session), [PHONE]);
  await other.ask(LAPTOP, "set", BLOCK_BOB);
  await fixture.server.look("example.com", ["alice"]);
  assert.deepEqual(fixture.changes.map(({ session }) => session), [PHONE, PHONE, LAPTOP]);
});

Deno.test("presence that some session here gets is not refused for all", async () => {
  const fixture = await withPhone();
  await fixture.server.opening(fullJid(LAPTOP));
  await fixture.ask(PHONE, "set", listOf("x", deny(1)));
  await fixture.ask(PHONE, "set", query("<active name='x'/>"));
  const presence = (to: string) => stanza("presence", "available", [`${BOB}/x`, to]);
  assert.deepEqual(
    [ALICE, PHONE, LAPTOP].map((to) => fixture.server.refusesPresence(presence(to))),
    [false, true, false],
  );
  await fixture.ask(LAPTOP, "set", query("<active name='x'/>"));
  assert.equal(fixture.server.refusesPresence(presence(ALICE)), true);
});

Deno.test("pushes in the name of another account, or of other protocols, are left alone", async () => {
  const fixture = await withPhone();
  const iq = (from: string, to: string, payload: string) => ({
    ...stanza("iq", "set", [from, to]),
    bytes: new TextEncoder().encode(`<iq type='set' from='${from}' to='${to}'>${payload}</iq>`),
  });
  assert.equal(fixture.server.takes(iq(BOB, PHONE, BLOCK_BOB)), false);
  assert.equal(fixture.server.takes(iq(ALICE, ALICE, BLOCK_BOB)), false);
  assert.equal(fixture.server.takes(iq(ALICE, PHONE, "<x xmlns='urn:x'/>")), false);
  assert.equal(fixture.server.takes(iq(ALICE, PHONE, "")), false);
  assert.equal(fixture.server.takes(iq(ALICE, PHONE, BLOCK_BOB)), true);
});
