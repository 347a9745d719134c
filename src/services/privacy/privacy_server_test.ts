import assert from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import type { RosterItem } from "../../storage/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseElement, parseJid } from "../../xmpp/mod.ts";
import {
  contact,
  fullJid,
  MemoryPrivacyStore,
  PrivacyFixture,
  settled,
  stanza,
} from "./testing/privacy_fixture.ts";
import { listText } from "./privacy_xml.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const PHONE = `${ALICE}/phone`;
const LAPTOP = `${ALICE}/laptop`;
const BLOCK_BOB = `<block xmlns='urn:xmpp:blocking'><item jid='${BOB}'/></block>`;
const UNBLOCK_ALL = "<unblock xmlns='urn:xmpp:blocking'/>";
const BLOCK_LIST = "<blocklist xmlns='urn:xmpp:blocking'/>";
const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", { retryable: true });

type FourJids = [BareJid, BareJid, BareJid, BareJid];

function query(payload = ""): string {
  return `<query xmlns='jabber:iq:privacy'>${payload}</query>`;
}

function listOf(name: string, items: string): string {
  return query(`<list name='${name}'>${items}</list>`);
}

function deny(order: number, attributes = "", kinds = ""): string {
  return `<item action='deny' order='${order}' ${attributes}>${kinds}</item>`;
}

/** A node with a session of alice's phone. */
async function withPhone(fixture = new PrivacyFixture()): Promise<PrivacyFixture> {
  assert.equal(await fixture.server.opening(fullJid(PHONE)), undefined);
  return fixture;
}

function refuses({ server }: PrivacyFixture, from: string, session = PHONE): boolean {
  return server.refuses(fullJid(session), stanza("message", "chat", [from, session]));
}

/** A push that tells the phone of a change of the roster. */
function rosterPush(): Stanza {
  const iq = element(
    "iq",
    { type: "set", id: "1" },
    element("query", { xmlns: "jabber:iq:roster" }),
  );
  return buildStanza(iq, { from: parseJid(ALICE), to: parseJid(PHONE) });
}

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

Deno.test("lists, items and bytes of an account are bounded", async () => {
  const fixture = await withPhone();
  const write = (name: string, items: string) => fixture.ask(PHONE, "set", listOf(name, items));
  assert.equal(await write("a", deny(1) + deny(2) + deny(3)), "empty");
  assert.equal(await write("a", deny(1) + deny(2) + deny(3) + deny(4)), "resource-constraint");
  assert.equal(await write("b", deny(1)), "empty");
  assert.equal(await write("c", deny(1)), "resource-constraint");
  const long = deny(1, `type='jid' value='${"x".repeat(600)}@example.com'`);
  assert.equal(await write("b", long), "resource-constraint");
  for (const [index, expected] of ["empty", "empty", "resource-constraint"].entries()) {
    if (index === 0) await write("a", "");
    const block =
      `<block xmlns='urn:xmpp:blocking'><item jid='${index}@x'/><item jid='b@y'/></block>`;
    assert.equal(await fixture.ask(PHONE, "set", block), expected);
  }
});

Deno.test("a change is applied to what another node has written meanwhile", async () => {
  const fixture = await withPhone();
  let races = 3;
  fixture.store.beforeWrite = () => {
    if (races-- <= 0) return;
    const version = fixture.store.stored.get("alice")?.version ?? 0;
    const xml = "<list xmlns='jabber:iq:privacy'><item action='deny' order='1'/></list>";
    fixture.store.put("alice", {
      expected: version,
      defaultName: undefined,
      list: { name: `other`, xml: xml.replace("1", `${races}`) },
    });
  };
  const asked = fixture.ask(PHONE, "set", BLOCK_BOB);
  for (let i = 0; i < 100; i++) {
    await Promise.resolve();
    fixture.clock.advance(100);
  }
  assert.equal(await asked, "empty");
  const lists = fixture.store.stored.get("alice")!.lists.map(({ name }) => name);
  assert.deepEqual(lists.toSorted(), ["blocking", "other"]);
  assert.equal(refuses(fixture, BOB), true);
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

Deno.test("a list names only groups of the roster, and those that it has named before", async () => {
  const fixture = await withPhone();
  fixture.contacts.push(contact(BOB, { groups: ["Work"] }));
  const work = deny(1, "type='group' value='Work'");
  const made = (items: string) => fixture.ask(PHONE, "set", listOf("x", items));
  assert.equal(await made(work + deny(2, "type='group' value='Wrok'")), "item-not-found");
  assert.equal(fixture.store.stored.get("alice"), undefined);
  assert.equal(await made(work), "empty");
  fixture.contacts[0] = contact(BOB, { groups: [] });
  assert.equal(await made(work + deny(2)), "empty", "the group has gone, and may come back");
  assert.equal(await fixture.ask(PHONE, "set", listOf("y", work)), "item-not-found");
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

Deno.test("stanzas for the account itself meet its default list, wherever it has sessions", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  const elsewhere = new PrivacyFixture({ store: fixture.store, process: 2 });
  const request = stanza("presence", "subscribe", [BOB, ALICE]);
  for (const node of [fixture, elsewhere]) {
    assert.equal(await node.server.defaults.refusesForAccount(request), true);
    const other = stanza("presence", "subscribe", ["carol@example.com", ALICE]);
    assert.equal(await node.server.defaults.refusesForAccount(other), false);
  }
  const stranger = stanza("presence", "subscribe", [BOB, "carol@example.org"]);
  assert.equal(await elsewhere.server.defaults.refusesForAccount(stranger), false);
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

Deno.test("DefaultLists.hiders() knows the accounts that hide, wherever their sessions are", async () => {
  const fixture = await withPhone();
  const [alice, bob] = [parseJid(ALICE).bare, parseJid(BOB)];
  const isHidden = async (accounts = [alice]) =>
    (await fixture.server.defaults.hiders(accounts)).get(ALICE)?.(bob);
  assert.equal(await isHidden(), undefined);
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  assert.equal(await isHidden(), true);
  fixture.server.closed(fullJid(PHONE));
  assert.equal(await isHidden(), true, "it is read while she has no session here");
  const accounts = [alice, parseJid("carol@example.com").bare];
  assert.equal(await isHidden(accounts), true);
  assert.deepEqual([...(await fixture.server.defaults.hiders(accounts)).keys()], [ALICE]);
  assert.equal(
    (await fixture.server.defaults.hiders([alice])).get(ALICE)!(alice),
    false,
    "never herself",
  );
  await withPhone(fixture);
  await fixture.ask(PHONE, "set", UNBLOCK_ALL);
  assert.notEqual(await isHidden(), true);
  const items = deny(1, `type='jid' value='${BOB}'`, "<presence-out/>");
  await fixture.ask(PHONE, "set", listOf("hide", items));
  await fixture.ask(PHONE, "set", query("<default name='hide'/>"));
  assert.equal(await isHidden(), true);
});

Deno.test("DefaultLists.hiders() has an account hide from everybody whose list is damaged", async () => {
  const fixture = await withPhone();
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  const list = { name: "x", xml: "<damaged" };
  fixture.store.put("carol", { expected: 0, defaultName: "x", list });
  const accounts = [ALICE, "carol@example.com"].map((each) => parseJid(each).bare);
  const hiders = await fixture.server.defaults.hiders(accounts);
  const dave = parseJid("dave@example.com");
  assert.deepEqual(accounts.map(({ text }) => hiders.get(text)?.(dave)), [false, true]);
  assert.ok(await fixture.counts("causeway_privacy_failures_total 1"));
});

Deno.test("DefaultLists.hidersFrom() asks the same for somebody who hides, is online or does not exist", async () => {
  const fixture = await withPhone();
  const accounts = [BOB, ALICE, "carol@example.com", "dave@example.com"];
  const [asker, alice, carol, dave] = accounts.map((each) => parseJid(each).bare) as FourJids;
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  const list = { name: "x", xml: listText({ name: "x", items: [] }) };
  fixture.store.put("carol", { expected: 0, defaultName: "x", list });
  const asks = async (found: readonly BareJid[]) => {
    const before = fixture.store.queries.length;
    const hiders = await fixture.server.defaults.hidersFrom(asker, found);
    assert.equal(hiders.get(ALICE)?.(asker), found.includes(alice) || undefined);
    return fixture.store.queries.slice(before);
  };
  const forNobody = await asks([]);
  for (const each of [[alice], [carol], [dave], [alice, dave]]) {
    assert.deepEqual(await asks(each), forNobody);
  }
});

Deno.test("DefaultLists.hiderOf() reads the list of every account alike, and knows one roster item", async () => {
  const fixture = await withPhone();
  const bob = parseJid(BOB);
  const isHidden = async (item?: RosterItem, account = ALICE) =>
    (await fixture.server.defaults.hiderOf(parseJid(account).bare))(bob, item);
  const reads = async (account = ALICE) => {
    const before = fixture.store.queries.length;
    await isHidden(undefined, account);
    return fixture.store.queries.slice(before);
  };
  assert.equal(await isHidden(), false);
  assert.deepEqual(await reads(), await reads("nobody@example.com"), "no list, and no account");
  await fixture.ask(PHONE, "set", BLOCK_BOB);
  assert.equal(await isHidden(), true);
  assert.deepEqual(await reads(), await reads("nobody@example.com"), "her session is here");
  fixture.contacts.push(contact("carol@example.com", { groups: ["Work"] }));
  const items = deny(1, "type='group' value='Work'", "<iq/>");
  await fixture.ask(PHONE, "set", listOf("work", items));
  await fixture.ask(PHONE, "set", query("<default name='work'/>"));
  const colleague: RosterItem = {
    jid: BOB,
    name: "",
    groups: ["Work"],
    subscription: "none",
    isAsking: false,
    isApproved: false,
    isListed: true,
    request: undefined,
  };
  assert.equal(await isHidden(), false);
  assert.equal(await isHidden(colleague), true);
  assert.equal(await isHidden({ ...colleague, isListed: false }), false);
  assert.equal(await isHidden(colleague, "alice@elsewhere.example"), false, "a host without lists");
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

/** Has the node from which the phone's session came tell of its active list. */
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

Deno.test("a change that is written while its account is deleted is not left to the name's next owner", async () => {
  const fixture = await withPhone();
  const { store } = fixture;
  const next = new PrivacyFixture({ store, process: 2 });
  await next.server.opening(fullJid(LAPTOP));
  fixture.elsewhere.set(ALICE, [{ host: "example.com", resourcepart: "laptop" }]);
  const meanwhile = async (xml: string) => {
    fixture.isCurrent = async () => {
      await next.server.look("example.com", ["alice"]); // it reads what is to be taken back
      return false;
    };
    assert.equal(await fixture.ask(PHONE, "set", xml), "registration-required");
    await fixture.carry(next);
  };
  await meanwhile(BLOCK_BOB);
  await meanwhile(listOf("x", deny(1)));
  for (const [node, session] of [[fixture, PHONE], [next, LAPTOP]] as const) {
    assert.equal(refuses(node, `${BOB}/x`, session), false);
  }
  assert.deepEqual((await store.read("alice")).lists, []);
  assert.equal((await store.read("alice")).defaultName, undefined);
  assert.deepEqual(fixture.delivered, []);
  // The next owner has lists of their own.
  await next.ask(LAPTOP, "set", listOf("mine", deny(1, `type='jid' value='${BOB}'`)));
  await next.ask(LAPTOP, "set", query("<default name='mine'/>"));
  await fixture.carry(next);
  await meanwhile(listOf("x", deny(1)));
  assert.deepEqual((await store.read("alice")).lists.map(({ name }) => name), ["mine"]);
  assert.equal((await store.read("alice")).defaultName, "mine");
  assert.equal(refuses(next, `${BOB}/x`, LAPTOP), true);
  const before = await store.read("alice");
  await meanwhile(UNBLOCK_ALL);
  await meanwhile(listOf("mine", deny(1, "type='jid' value='carol@example.com'")));
  assert.deepEqual({ ...await store.read("alice"), version: 0 }, { ...before, version: 0 });
  assert.equal(refuses(next, `${BOB}/x`, LAPTOP), true);
  // They change them before the change is taken back.
  fixture.isCurrent = async () => {
    assert.equal(await next.ask(LAPTOP, "set", BLOCK_BOB), "empty");
    return false;
  };
  const other = listOf("x", deny(1, "type='jid' value='carol@example.com'"));
  assert.equal(await fixture.ask(PHONE, "set", other), "registration-required");
  assert.deepEqual((await store.read("alice")).lists.map(({ name }) => name), ["mine"]);
});

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
