import assert from "node:assert/strict";
import type { RosterItem } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { contact, fullJid, PrivacyFixture, stanza } from "./testing/privacy_fixture.ts";
import { listText } from "./privacy_xml.ts";
import {
  ALICE,
  BLOCK_BOB,
  BOB,
  deny,
  listOf,
  PHONE,
  query,
  UNBLOCK_ALL,
  withPhone,
} from "./testing/privacy_scene.ts";

type FourJids = [BareJid, BareJid, BareJid, BareJid];

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
