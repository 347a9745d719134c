import assert from "node:assert/strict";
import { parseElement, parseJid } from "../../xmpp/mod.ts";
import type { PrivacyContact, PrivacyItem, StanzaAspect } from "./privacy_list.ts";
import {
  aspectInbound,
  aspectOutbound,
  blockedIn,
  devicesIn,
  PrivacyList,
  withBlocked,
  withoutBlocked,
} from "./privacy_list.ts";
import { listText, readItems, tryReadStored } from "./privacy_xml.ts";
import { stanza } from "./testing/privacy_fixture.ts";

const ALL: readonly StanzaAspect[] = ["message", "iq", "presence-in", "presence-out", "other"];
const CONTACTS: ReadonlyMap<string, PrivacyContact> = new Map<string, PrivacyContact>([
  ["bob@example.com", { subscription: "both", groups: ["Friends", "Work"] }],
  ["carol@example.com", { subscription: "to", groups: [] }],
]);

function list(items: string): PrivacyList {
  const xml = `<list xmlns='jabber:iq:privacy' name='x'>${items}</list>`;
  const read = readItems(parseElement(new TextEncoder().encode(xml)));
  assert.ok(typeof read !== "string", String(read));
  return new PrivacyList("x", read);
}

function denied(items: string, address: string): readonly StanzaAspect[] {
  const found = list(items);
  return ALL.filter((aspect) =>
    found.denies(parseJid(address), aspect, (jid) => CONTACTS.get(jid))
  );
}

Deno.test("PrivacyList.denies() finds the addresses that a JID means", () => {
  const rows: readonly [string, readonly string[], readonly string[]][] = [
    ["bob@example.com/x", ["bob@example.com/x"], ["bob@example.com", "bob@example.com/y"]],
    ["bob@example.com", ["bob@example.com", "bob@example.com/x"], ["rob@example.com"]],
    ["example.com/x", ["example.com/x", "bob@example.com/x"], ["bob@example.com/y"]],
    [
      "example.com",
      ["example.com", "bob@example.com/x", "bob@a.b.example.com", "b.example.com/x"],
      ["bob@example.org", "bob@badexample.com", "com"],
    ],
  ];
  for (const [value, meant, others] of rows) {
    const item = `<item type='jid' value='${value}' action='deny' order='1'/>`;
    for (const address of meant) assert.deepEqual(denied(item, address), ALL, address);
    for (const address of others) assert.deepEqual(denied(item, address), [], address);
  }
});

Deno.test("PrivacyList.denies() follows the first rule that is about the stanza", () => {
  const bob = "type='jid' value='bob@example.com'";
  const rows: readonly [string, readonly StanzaAspect[]][] = [
    ["", []],
    ["<item action='deny' order='1'/>", ALL],
    ["<item action='allow' order='1'/><item action='deny' order='2'/>", []],
    ["<item action='deny' order='2'/><item action='allow' order='1'/>", []],
    [`<item ${bob} action='allow' order='7'/><item action='deny' order='10'/>`, []],
    [`<item ${bob} action='allow' order='10'/><item action='deny' order='7'/>`, ALL],
    ["<item action='deny' order='1'><message/><presence-out/></item>", ["message", "presence-out"]],
    [
      `<item ${bob} action='allow' order='1'><iq/></item><item action='deny' order='2'/>`,
      ["message", "presence-in", "presence-out", "other"],
    ],
    ["<item type='group' value='Work' action='deny' order='1'/>", ALL],
    ["<item type='group' value='Home' action='deny' order='1'/>", []],
    ["<item type='subscription' value='both' action='deny' order='1'/>", ALL],
    ["<item type='subscription' value='none' action='deny' order='1'/>", []],
  ];
  for (const [items, expected] of rows) {
    assert.deepEqual(denied(items, "bob@example.com/x"), expected, items);
  }
});

Deno.test("PrivacyList.denies() takes a stranger for a contact without a subscription", () => {
  const item = "<item type='subscription' value='none' action='deny' order='1'/>";
  assert.deepEqual(denied(item, "mallory@example.com"), ALL);
  assert.deepEqual(denied(item, "carol@example.com"), []);
});

Deno.test("devicesIn() finds the full JIDs of people, whatever the rule", () => {
  const values = ["bob@example.com/x", "bob@example.com", "example.com/x", "carol@example.com/y"];
  const items = values.map((value, i) =>
    `<item type='jid' value='${value}' action='${i === 0 ? "allow" : "deny"}' order='${i}'/>`
  );
  const devices = devicesIn(list(`${items.join("")}<item action='deny' order='9'/>`));
  assert.deepEqual(devices.map(({ text }) => text), ["bob@example.com/x", "carol@example.com/y"]);
});

Deno.test("aspectInbound() and aspectOutbound() name what items can name", () => {
  const pair = ["a@example.com", "b@example.com"] as const;
  for (const type of ["available", "unavailable"] as const) {
    assert.equal(aspectInbound(stanza("presence", type, pair)), "presence-in");
    assert.equal(aspectOutbound(stanza("presence", type, pair)), "presence-out");
  }
  for (const type of ["subscribe", "unsubscribed", "probe"] as const) {
    assert.equal(aspectInbound(stanza("presence", type, pair)), "other");
    assert.equal(aspectOutbound(stanza("presence", type, pair)), "other");
  }
  assert.equal(aspectInbound(stanza("message", "chat", pair)), "message");
  assert.equal(aspectInbound(stanza("iq", "get", pair)), "iq");
  assert.equal(aspectOutbound(stanza("message", "chat", pair)), "other");
});

Deno.test("readItems() refuses what XEP-0016 does not allow", () => {
  const rows: readonly [string, string][] = [
    ["<item order='1'/>", "bad-request"],
    ["<item action='drop' order='1'/>", "bad-request"],
    ["<item action='deny'/>", "bad-request"],
    ["<item action='deny' order='-1'/>", "bad-request"],
    ["<item action='deny' order='4294967296'/>", "bad-request"],
    ["<item action='deny' order='1'/><item action='allow' order='1'/>", "bad-request"],
    ["<item type='jid' action='deny' order='1'/>", "bad-request"],
    ["<item type='jid' value='@' action='deny' order='1'/>", "jid-malformed"],
    ["<item type='subscription' value='remove' action='deny' order='1'/>", "bad-request"],
    ["<item type='age' value='7' action='deny' order='1'/>", "bad-request"],
    ["<item action='deny' order='1'><presence/></item>", "bad-request"],
    ["<entry action='deny' order='1'/>", "bad-request"],
  ];
  for (const [items, condition] of rows) {
    const xml = `<list xmlns='jabber:iq:privacy' name='x'>${items}</list>`;
    assert.equal(readItems(parseElement(new TextEncoder().encode(xml))), condition, items);
  }
});

Deno.test("listText() writes a list that tryReadStored() reads back", () => {
  const items = "<item type='jid' value='BOB@example.com/😀' action='deny' order='0'/>" +
    "<item type='group' value='&lt;&apos;' action='allow' order='4294967295'><iq/><message/></item>" +
    "<item type='subscription' value='from' action='deny' order='7'><presence-out/></item>" +
    "<item action='deny' order='8'/>";
  const before = list(items);
  const after = tryReadStored("x", listText(before));
  assert.deepEqual(after?.items, before.items);
  assert.equal(
    before.items[0]?.match.type === "jid" && before.items[0].match.value,
    "bob@example.com/😀",
  );
  assert.equal(tryReadStored("x", "<list"), undefined);
  assert.equal(tryReadStored("x", "<list xmlns='jabber:iq:privacy'><item/></list>"), undefined);
});

Deno.test("withBlocked() puts blocks before all other rules, and withoutBlocked() takes them out", () => {
  const own = list(
    "<item type='jid' value='b@example.com' action='allow' order='1'/>" +
      "<item type='jid' value='c@example.com' action='deny' order='2'><message/></item>" +
      "<item type='jid' value='d@example.com' action='deny' order='5'/>",
  );
  assert.deepEqual(blockedIn(own), ["d@example.com"]);
  const more = new PrivacyList("x", withBlocked(own, ["b@example.com", "d@example.com"]));
  assert.deepEqual(blockedIn(more), ["b@example.com", "d@example.com"]);
  assert.equal(more.denies(parseJid("b@example.com"), "iq", () => undefined), true);
  assert.equal(new Set(more.items.map(({ order }) => order)).size, 4);
  const values = (items: readonly PrivacyItem[]) =>
    items.map(({ match, action }) => match.type === "jid" && `${action} ${match.value}`);
  const rest = ["allow b@example.com", "deny c@example.com"];
  assert.deepEqual(values(withoutBlocked(more, undefined)), rest);
  assert.deepEqual(values(withoutBlocked(more, ["b@example.com"])), [
    "deny d@example.com",
    ...rest,
  ]);
  assert.deepEqual(withoutBlocked(undefined, undefined), []);
});
