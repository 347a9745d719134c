import assert from "node:assert/strict";
import type { RosterItem } from "../../storage/mod.ts";
import type { XmlElement } from "../../xmpp/mod.ts";
import { CLIENT_NAMESPACE, element, parseElement } from "../../xmpp/mod.ts";
import {
  readRosterSet,
  resolveRosterBounds,
  ROSTER_NAMESPACE,
  writeItem,
  writeRemoved,
  writeRosterQuery,
} from "./roster_query.ts";
import { unlistedItem } from "./subscription_state.ts";

const ENCODER = new TextEncoder();
const ALICE = "alice@example.com";
const BOUNDS = resolveRosterBounds({ maxGroups: 2, maxNameBytes: 8 });

function set(...items: readonly XmlElement[]): XmlElement {
  return element("query", { xmlns: ROSTER_NAMESPACE }, ...items);
}

function item(attributes: Record<string, string>, ...groups: readonly string[]): XmlElement {
  return element("item", attributes, ...groups.map((group) => element("group", {}, group)));
}

Deno.test("readRosterSet() reads name and groups, and nothing of the subscription", () => {
  const query = set(
    item(
      { jid: "BOB@Example.com/phone", name: "Bob", subscription: "both", ask: "subscribe" },
      "a",
    ),
  );
  assert.deepEqual(readRosterSet(query, ALICE, BOUNDS), {
    kind: "update",
    contact: "bob@example.com",
    name: "Bob",
    groups: ["a"],
  });
  assert.deepEqual(
    readRosterSet(set(item({ jid: "bob@example.com" })), ALICE, BOUNDS),
    { kind: "update", contact: "bob@example.com", name: "", groups: [] },
  );
});

Deno.test("readRosterSet() reads a removal", () => {
  const query = set(item({ jid: "bob@example.com", subscription: "remove" }));
  assert.deepEqual(readRosterSet(query, ALICE, BOUNDS), {
    kind: "remove",
    contact: "bob@example.com",
  });
});

const BOB = { jid: "bob@example.com" };
for (
  const [what, query, condition] of [
    ["no item", set(), "bad-request"],
    ["two items", set(item(BOB), item({ jid: "carol@example.com" })), "bad-request"],
    ["an item without a JID", set(item({})), "bad-request"],
    ["something else than an item", set(element("thing", BOB)), "bad-request"],
    ["a JID that is none", set(item({ jid: "a@b@c" })), "jid-malformed"],
    ["the account's own JID", set(item({ jid: `${ALICE}/x` })), "not-allowed"],
    ["a group twice", set(item(BOB, "a", "a")), "bad-request"],
    ["an empty group", set(item(BOB, "")), "not-acceptable"],
    ["one group too many", set(item(BOB, "a", "b", "c")), "not-acceptable"],
    [
      "a name one byte too long",
      set(item({ ...BOB, name: "12345678😀".slice(1) })),
      "not-acceptable",
    ],
    ["a group one byte too long", set(item(BOB, "123456789")), "not-acceptable"],
  ] as const
) {
  Deno.test(`readRosterSet() refuses ${what}`, () => {
    assert.equal(readRosterSet(query, ALICE, BOUNDS), condition);
  });
}

Deno.test("readRosterSet() takes names and groups at their bounds", () => {
  const query = set(item({ ...BOB, name: "1234😀" }, "12345678", "b"));
  assert.equal(typeof readRosterSet(query, ALICE, BOUNDS), "object");
});

/** Reads a roster query that was written with these items. */
function written(items: string, version?: number): XmlElement {
  return parseElement(ENCODER.encode(writeRosterQuery(items, version)), CLIENT_NAMESPACE);
}

Deno.test("writeItem() shows what is set, and no request of the contact", () => {
  const plain: RosterItem = { ...unlistedItem("bob@example.com"), isListed: true };
  const [shown] = written(writeItem({ ...plain, request: new Uint8Array(1) })).elements;
  assert.deepEqual(shown!.attributes, { jid: "bob@example.com", subscription: "none" });
  const [full] = written(writeItem({
    ...plain,
    name: "Bob",
    groups: ["a", "b"],
    subscription: "from",
    isAsking: true,
    isApproved: true,
  })).elements;
  assert.deepEqual(full!.attributes, {
    jid: "bob@example.com",
    name: "Bob",
    subscription: "from",
    ask: "subscribe",
    approved: "true",
  });
  assert.deepEqual(full!.elements.map(({ text }) => text), ["a", "b"]);
});

Deno.test("writeItem() escapes what people have named", () => {
  const awkward = `<'&"> ]]> 😀\u0001`;
  const jid = "d'art&agnan@example.com";
  const item = { ...unlistedItem(jid), name: awkward, groups: [awkward] };
  const [read, ...more] = written(writeItem(item) + writeRemoved(jid)).elements;
  const kept = awkward.replace("\u0001", "\ufffd");
  assert.deepEqual([read!.attribute("jid"), read!.attribute("name")], [jid, kept]);
  assert.deepEqual(read!.elements.map(({ text }) => text), [kept]);
  assert.deepEqual(more.map((each) => each.attribute("jid")), [jid]);
});

Deno.test("writeRosterQuery() tells a version only where there is one", () => {
  assert.equal(written("", 7).attribute("ver"), "7");
  const query = written(writeRemoved("bob@example.com"));
  assert.equal(query.attribute("ver"), undefined);
  assert.equal(query.elements[0]?.attribute("subscription"), "remove");
  assert.equal(query.elements[0]?.namespace, ROSTER_NAMESPACE);
});
