import { deepStrictEqual, doesNotMatch, match, ok, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { CausewayError } from "../../base/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { element, parseJid, stanzaId } from "../../xmpp/mod.ts";
import { PAUSE_MS, RETRY_MS } from "./last_items.ts";
import { PepFixture, presenceOf, submitted, textOf } from "./testing/pep_fixture.ts";

const ALICE = "alice@example.com/desk";
const BOB = "bob@example.com/phone";
const TUNE = "http://jabber.org/protocol/tune";
const MOOD = "http://jabber.org/protocol/mood";
const OWNER = "http://jabber.org/protocol/pubsub#owner";

function item(id: string, text = id): string {
  return `<item id='${id}'><tune xmlns='${TUNE}'>${text}</tune></item>`;
}

/** Items, retracted items and other changes in notifications. */
function changesIn(stanzas: readonly string[]): readonly string[] {
  return stanzas.map((text) => /<(?:item|retract) id='([^']*)'|<(purge|delete) node/.exec(text))
    .map((found) => found?.[1] ?? found?.[2] ?? "none");
}

Deno.test("PepNotices tells the interested clients of owner and contacts, and no others", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const interested = [`${TUNE}+notify`, "urn:other"];
  await pep.online(ALICE, interested);
  await pep.online("alice@example.com/phone", [`${MOOD}+notify`]);
  await pep.online(BOB, interested);
  await pep.online("bob@example.com/tv", [TUNE]);
  await pep.online("carol@example.com/desk", interested);
  await pep.publish(ALICE, TUNE, item("one", "Ä"));
  for (const jid of [ALICE, BOB]) {
    const [notice, ...more] = await pep.received(jid);
    strictEqual(more.length, 0);
    match(notice!, /^<message type='headline' id='[^']+' from='alice@example\.com'/);
    match(notice!, new RegExp(` to='${jid}'>`));
    match(
      notice!,
      /<event xmlns='[^']+#event'><items node='[^']+\/tune'><item id='one'><tune xmlns='[^']+'>Ä</,
    );
  }
  deepStrictEqual(pep.delivered, []);
  deepStrictEqual(pep.routed, []);
});

Deno.test("PepNotices sends one notification to each session elsewhere, and leaves its filter to it", async () => {
  await using pep = await PepFixture.open();
  for (const contact of ["bob@example.com", "dave@dc2.example.com", "eve@elsewhere.net"]) {
    await pep.subscribe("alice@example.com", contact);
  }
  const place = (resourcepart: string) => ({
    host: "dc2.example.com",
    resourcepart,
    process: 2,
  });
  pep.elsewhere.set("bob@example.com", [place("phone"), place("tv")]);
  pep.elsewhere.set("alice@example.com", [place("laptop")]);
  await pep.publish(ALICE, TUNE, item("one"));
  deepStrictEqual(
    new Set(pep.routed.map(({ to }) => to.text)),
    new Set([
      "alice@example.com/laptop",
      "bob@example.com/phone",
      "bob@example.com/tv",
      "dave@dc2.example.com",
    ]),
  );
});

Deno.test("PepNotices tells only those whom the access model admits", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  await pep.subscribe("alice@example.com", "carol@example.com");
  const clients = [ALICE, BOB, "carol@example.com/desk"];
  for (const jid of clients) await pep.online(jid, ["a+notify", "b+notify", "c+notify"]);
  const nodes = { a: "whitelist", b: "roster", c: "open" };
  for (const [node, model] of Object.entries(nodes)) {
    const groups = model === "roster" ? { "pubsub#roster_groups_allowed": "Friends" } : {};
    await pep.publish(ALICE, node, item(node), { "pubsub#access_model": model, ...groups });
  }
  for (const [index, expected] of [["a", "b", "c"], ["b", "c"], ["c"]].entries()) {
    deepStrictEqual(changesIn(await pep.received(clients[index]!)), expected);
  }
});

Deno.test("PepNotices tells of retracted items, purged and removed nodes", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  const pubsub = (content: string, owner = "") =>
    pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER.replace("#owner", owner)}'>${content}</pubsub>`);
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#notify_retract": "false" });
  await pubsub(`<retract node='${TUNE}'><item id='one'/></retract>`);
  await pep.publish(ALICE, TUNE, item("two"));
  await pubsub(`<retract node='${TUNE}' notify='true'><item id='two'/></retract>`);
  const values = { "pubsub#notify_retract": "1" };
  const form = submitted("http://jabber.org/protocol/pubsub#node_config", values);
  await pubsub(`<configure node='${TUNE}'>${form}</configure>`, "#owner");
  await pubsub(`<purge node='${TUNE}'/>`, "#owner");
  await pubsub(`<delete node='${TUNE}'/>`, "#owner");
  deepStrictEqual(
    changesIn(await pep.received(ALICE)),
    ["one", "two", "two", "purge", "delete"],
  );
});

Deno.test("PepNotices leaves large payloads behind, and the node of an interested client reads them", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  pep.elsewhere.set("bob@example.com", [{
    host: "dc2.example.com",
    resourcepart: "phone",
    process: 2,
  }]);
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  const [sent] = pep.routed.splice(0);
  match(textOf(sent!), /<item id='one'\/>/);
  strictEqual(sent!.bytes.length < 1000, true);
  // As it arrives at the node of dc2, which shares the store.
  await pep.online(BOB, [`${TUNE}+notify`]);
  await pep.received(BOB);
  strictEqual(pep.server.notified(sent!), "delivered");
  match((await pep.received(BOB))[0]!, /<item id='one'><tune xmlns='[^']+'>x{10000}<\/tune>/);
  await pep.publish(ALICE, TUNE, item("two", "y".repeat(10_000)));
  deepStrictEqual(changesIn(await pep.received(BOB)), ["two"]);
  strictEqual(pep.server.notified(sent!), "delivered", "the item is gone by now");
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices reads a large item once for all sessions that a notification is for", async () => {
  await using pep = await PepFixture.open();
  const clients = Array.from({ length: 10 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of clients) await pep.online(jid, [`${TUNE}+notify`]);
  for (const id of ["one", "two"]) {
    const before = pep.itemReadings;
    await pep.publish(ALICE, TUNE, item(id, id.repeat(3_000)));
    strictEqual(pep.itemReadings - before, 1);
    for (const jid of clients) deepStrictEqual(changesIn(await pep.received(jid)), [id]);
  }
});

Deno.test("PepNotices gives notifications ids that no other process gives", async () => {
  const ids = new Set<string | undefined>();
  for (const process of [1, 2]) {
    await using pep = await PepFixture.open();
    const place = { host: "dc2.example.com", resourcepart: "phone", process };
    pep.elsewhere.set("alice@example.com", [place]);
    for (const id of ["one", "two"]) await pep.publish(ALICE, TUNE, item(id));
    for (const stanza of pep.routed) ids.add(stanzaId(stanza));
  }
  strictEqual(ids.size, 4);
});

Deno.test("PepNotices keeps notifications until a client has said what it is interested in", async () => {
  await using pep = await PepFixture.open();
  const bookmarks = "urn:xmpp:bookmarks:1"; // nobody is sent its last item
  const tell = pep.appear(ALICE);
  await pep.publish(ALICE, bookmarks, item("room"));
  await pep.publish(ALICE, MOOD, item("mood"));
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  await pep.publish(ALICE, TUNE, item("two"));
  deepStrictEqual(await pep.received(ALICE), []);
  tell([`${bookmarks}+notify`, `${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(ALICE)), ["room", "two"], "each once");
});

Deno.test("PepNotices keeps a bounded number of notifications for a client, while it is there", async () => {
  await using pep = await PepFixture.open();
  const options = { "pubsub#send_last_published_item": "never", "pubsub#max_items": "max" };
  const tell = pep.appear(ALICE);
  const ids = Array.from({ length: 25 }, (_, index) => `${index}`);
  for (const id of ids) await pep.publish(ALICE, TUNE, item(id), options);
  tell([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(ALICE)), ids.slice(-20));
  const again = pep.appear(BOB);
  await pep.publish("bob@example.com/tv", TUNE, item("bob"), options);
  pep.presence(BOB, { ...presenceOf(BOB), type: "unavailable" });
  again([`${TUNE}+notify`]);
  pep.appear(BOB)([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
});

Deno.test("PepNotices sends what waits for a client's interests after its session, which moves", async () => {
  await using pep = await PepFixture.open();
  const bookmarks = "urn:xmpp:bookmarks:1"; // nobody is sent its last item
  const tell = pep.appear(ALICE);
  for (const id of ["one", "two"]) await pep.publish(ALICE, bookmarks, item(id));
  pep.leaving.add(ALICE);
  pep.server.closed(parseJid(ALICE) as FullJid);
  deepStrictEqual(changesIn(pep.routed.map(textOf)), ["one", "two"]);
  deepStrictEqual(pep.routed.map(({ to }) => to.text), [ALICE, ALICE]);
  pep.leaving.delete(ALICE);
  tell([`${bookmarks}+notify`]);
  pep.appear(ALICE)([`${bookmarks}+notify`]);
  deepStrictEqual(await pep.received(ALICE), [], "nothing waits here any more");
});

Deno.test("PepNotices keeps notifications of everybody while one account has as many as it may", async () => {
  await using pep = await PepFixture.open();
  const text = "x".repeat(4_000);
  // Clients of one account that never say what they are interested in.
  const crowd = Array.from({ length: 80 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of crowd) pep.appear(jid);
  const options = { "pubsub#send_last_published_item": "never", "pubsub#max_items": "max" };
  for (let i = 0; i < 20; i++) await pep.publish(ALICE, TUNE, item(`${i}`, text), options);
  const tell = pep.appear(BOB);
  await pep.publish("bob@example.com/tv", TUNE, item("bob", text), options);
  tell([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["bob"]);
});

Deno.test("PepNotices follows a session that moves while a large item is read for it", async () => {
  for (const hasLeft of [true, false]) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    for (const jid of [BOB, "bob@example.com/tv"]) await pep.online(jid, [`${TUNE}+notify`]);
    pep.itemsAsked = () => void (hasLeft ? pep.here.delete(BOB) : pep.leaving.add(BOB));
    await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
    deepStrictEqual(changesIn(await pep.received("bob@example.com/tv")), ["one"]);
    deepStrictEqual(pep.routed.map(({ to }) => to.text), [BOB]);
    match(textOf(pep.routed[0]!), /<item id='one'\/>/);
  }
});

Deno.test("PepNotices gives nobody a large item of a node that was hidden meanwhile", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  pep.elsewhere.set("bob@example.com", [{
    host: "dc2.example.com",
    resourcepart: "phone",
    process: 2,
  }]);
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  const [late] = pep.routed.splice(0);
  await pep.online(BOB, [`${TUNE}+notify`]);
  await pep.received(BOB);
  const models = ["whitelist", "roster", "presence"] as const;
  const received: number[] = [];
  for (const model of models) {
    const form = submitted("http://jabber.org/protocol/pubsub#node_config", {
      "pubsub#access_model": model,
    });
    const configure = `<configure node='${TUNE}'>${form}</configure>`;
    match(await pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${configure}</pubsub>`), /result/);
    strictEqual(pep.server.notified(late!), "delivered");
    received.push((await pep.received(BOB)).length);
  }
  deepStrictEqual(received, [0, 0, 1]);
});

Deno.test("PepNotices asks again who may see what has waited for a client's interests", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  const transient = { "pubsub#persist_items": "0" };
  for (const node of ["urn:hidden", "urn:shown", "urn:emptied"]) {
    await pep.publish(ALICE, node, item(node), { "pubsub#send_last_published_item": "never" });
  }
  await pep.publish(ALICE, "urn:transient", item("one"), transient);
  await pep.publish(ALICE, "urn:transient", item("two"), transient);
  const whitelist = submitted("http://jabber.org/protocol/pubsub#node_config", {
    "pubsub#access_model": "whitelist",
  });
  for (
    const action of [
      `<configure node='urn:hidden'>${whitelist}</configure>`,
      "<purge node='urn:emptied'/>",
    ]
  ) match(await pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${action}</pubsub>`), /result/);
  const nodes = ["urn:hidden", "urn:shown", "urn:emptied", "urn:transient"];
  tell(nodes.map((each) => `${each}+notify`));
  const received = changesIn(await pep.received(BOB));
  deepStrictEqual(received.toSorted(), ["one", "purge", "two", "urn:shown"]);
  strictEqual(received.indexOf("one") < received.indexOf("two"), true, "in their order");
});

Deno.test("PepNotices gives somebody who is no contact any more nothing that has waited", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  await pep.publish(ALICE, TUNE, item("one"));
  await pep.publish(ALICE, MOOD, item("large", "x".repeat(10_000)));
  const rosters = pep.store.rosters();
  const { version: expected } = await rosters.find("alice@example.com", "bob@example.com");
  await rosters.write("alice@example.com", {
    expected,
    contact: "bob@example.com",
    item: undefined,
  });
  tell([`${TUNE}+notify`, `${MOOD}+notify`]);
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices tells of waiting items without their payloads while the database fails", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#send_last_published_item": "never" });
  pep.itemsAsked = () => {
    throw new CausewayError("storage/unreachable", "Cannot read: away");
  };
  tell([`${TUNE}+notify`]);
  match((await pep.received(BOB))[0]!, /<item id='one'\/>/);
});

Deno.test("PepNotices gives nobody a large item that is replaced once its node is hidden", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const alice = parseJid("alice@example.com");
  pep.itemsAsked = async () => {
    pep.itemsAsked = undefined;
    await pep.server.configure(alice, TUNE, new Map([["pubsub#access_model", ["whitelist"]]]));
    const payload = element("tune", { xmlns: TUNE }, "secret");
    await pep.server.publish(alice, { node: TUNE, id: "one", payload });
  };
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices keeps the order of one node's items while a large one is read", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const small = `<message type='headline' from='alice@example.com' to='${BOB}'>` +
    `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='${TUNE}'>` +
    "<item id='small'><x xmlns='urn:x'/></item></items></event></message>";
  pep.itemsAsked = () => {
    pep.itemsAsked = undefined;
    pep.route({
      kind: "message",
      type: "headline",
      from: parseJid("alice@example.com"),
      to: parseJid(BOB),
      bytes: new TextEncoder().encode(small),
    });
  };
  await pep.publish(ALICE, TUNE, item("large", "x".repeat(10_000)));
  deepStrictEqual(changesIn(await pep.received(BOB)), ["large", "small"]);
});

Deno.test("PepNotices tells of items that have no payload and that no node stores", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const options = { "pubsub#persist_items": "0", "pubsub#deliver_payloads": "0" };
  await pep.publish(ALICE, TUNE, item("one"), options);
  match((await pep.received(BOB))[0]!, /<item id='one'\/>/);
});

Deno.test("PepNotices keeps the payload of items that no node stores", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const options = { "pubsub#persist_items": "0" };
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)), options);
  match((await pep.received(BOB))[0]!, /x{10000}/);
  doesNotMatch(await pep.items(ALICE, TUNE), /<item /);
});

Deno.test("PepNotices.arrived() leaves alone what is no notification of an account", async () => {
  await using pep = await PepFixture.open();
  await pep.online(BOB, []);
  const event = `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'/></event>`;
  for (
    const [from, content, expected] of [
      ["alice@example.com", event, "ignored"],
      ["alice@example.com/desk", event, undefined],
      ["pubsub.example.com", event, undefined],
      ["node@pubsub.example.com", event, undefined],
      ["alice@example.com", "<body>hello</body>", undefined],
    ] as const
  ) {
    const text = `<message type='headline' from='${from}' to='${BOB}'>${content}</message>`;
    const outcome = pep.server.notified({
      kind: "message",
      type: "headline",
      from: parseJid(from),
      to: parseJid(BOB),
      bytes: new TextEncoder().encode(text),
    });
    strictEqual(outcome, expected, `${from} ${content}`);
  }
});

Deno.test("LastItems gives a client that comes the last items that it is interested in and may see", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  await pep.subscribe("carol@example.com", "alice@example.com");
  const publish = (from: string, node: string, options = {}) =>
    pep.publish(from, node, item(`${from[0]}-${node}`), options);
  await publish(ALICE, "tune");
  await publish(ALICE, "mood");
  await publish(ALICE, "own", { "pubsub#access_model": "whitelist" });
  await publish(ALICE, "never", { "pubsub#send_last_published_item": "never" });
  const groups = { "pubsub#access_model": "roster", "pubsub#roster_groups_allowed": "Friends" };
  await publish(ALICE, "friends", groups);
  await publish("carol@example.com/x", "tune");
  await publish("dave@example.com/x", "tune", { "pubsub#access_model": "open" });
  await publish("bob@example.com/x", "own", { "pubsub#access_model": "whitelist" });
  const nodes = ["tune", "own", "never", "friends", "none"];
  await pep.online(BOB, nodes.map((each) => `${each}+notify`));
  deepStrictEqual(
    new Set(changesIn(await pep.received(BOB))),
    new Set(["a-tune", "a-friends", "b-own"]),
  );
  const again = pep.here.get(BOB)!;
  pep.presence(BOB, again);
  deepStrictEqual(await pep.received(BOB), [], "presence again says nothing new");
  await pep.online(ALICE, ["tune+notify", "mood+notify"]);
  deepStrictEqual(
    new Set(changesIn(await pep.received(ALICE))),
    new Set(["a-tune", "a-mood", "c-tune"]),
  );
});

Deno.test("contacts from whom a privacy list hides the owner get no notifications and no last items", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.subscribe("carol@example.com", "bob@example.com");
  pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
  await pep.publish("alice@example.com/x", "tune", item("before"));
  await pep.publish("carol@example.com/x", "tune", item("carol"));
  await pep.online(BOB, ["tune+notify"]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["carol"]);
  await pep.publish("alice@example.com/x", "tune", item("after"));
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
  pep.server.approved(parseJid("alice@example.com"), parseJid("bob@example.com"));
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
  pep.hiding.clear();
  await pep.publish("alice@example.com/x", "tune", item("again"));
  deepStrictEqual(changesIn(await pep.received(BOB)), ["again"]);
});

Deno.test("LastItems reads at most a thousand items at once, of at most a hundred nodes", async () => {
  await using pep = await PepFixture.open();
  for (let count = 0; count < 21; count++) {
    await pep.subscribe(`alice${count}@example.com`, "bob@example.com");
  }
  await pep.online(BOB, Array.from({ length: 300 }, (_, index) => `urn:${index}+notify`));
  const readings = pep.readings.slice(1); // the first one is that of the avatar
  deepStrictEqual(readings[0]!.localparts[0], "bob", "the account's own items come first");
  deepStrictEqual(readings.map(({ localparts }) => localparts.length), [10, 10, 2]);
  deepStrictEqual(readings.map(({ nodes }) => nodes.length), [100, 100, 100]);
});

Deno.test("LastItems sends a client its own items first, and without its contacts too", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish("alice@example.com/x", "tune", item("alice"));
  await pep.publish(BOB, "tune", item("bob"));
  await pep.online(BOB, ["tune+notify"]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["bob", "alice"]);
  pep.rostersFailure = new CausewayError("storage/unreachable", "Cannot reach it");
  const laptop = "bob@example.com/laptop";
  await pep.online(laptop, ["tune+notify"]);
  deepStrictEqual(changesIn(await pep.received(laptop)), ["bob"]);
});

Deno.test("LastItems waits after a login, and reads no contacts that presence was told", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish("alice@example.com/x", "tune", item("alice"));
  pep.told = await pep.store.rosters().contacts("bob@example.com");
  const before = pep.rosterReadings;
  pep.logIn(BOB, ["tune+notify"]);
  await pep.server.settled();
  deepStrictEqual(pep.delivered, []);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["alice"]);
  strictEqual(pep.rosterReadings, before);
});

Deno.test("LastItems keeps contacts up to a number of bytes, without their requests", async () => {
  for (const [length, isKept] of [[3_000, false], [10, true]] as const) {
    await using pep = await PepFixture.open();
    pep.told = Array.from({ length: 3_000 }, (_, index) => ({
      jid: `${index}${"x".repeat(length)}@example.com`,
      subscription: "to",
      reverse: "from",
      isAsking: false,
      request: new Uint8Array(10_000),
    }));
    const before = pep.rosterReadings;
    pep.logIn(BOB, ["tune+notify"]);
    await pep.settled();
    strictEqual(pep.rosterReadings - before, isKept ? 0 : 1);
  }
});

Deno.test("LastItems are sent again to a client that leaves and comes back before they are read", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  pep.logIn(BOB, ["tune+notify"]);
  await pep.publish("alice@example.com/x", "tune", item("alice"));
  await pep.server.settled();
  deepStrictEqual(changesIn(pep.delivered.splice(0).map(({ stanza }) => textOf(stanza))), [
    "alice",
  ]);
  pep.presence(BOB, { ...presenceOf(BOB), type: "unavailable" });
  pep.logIn(BOB, ["tune+notify"]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["alice"]);
});

Deno.test("LastItems forgets a client that leaves before they are read", async () => {
  await using pep = await PepFixture.open();
  const before = pep.readings.length;
  pep.logIn(BOB, ["tune+notify"]);
  pep.server.closed(parseJid(BOB) as FullJid);
  await pep.settled();
  deepStrictEqual(pep.readings.slice(before).filter(({ nodes }) => nodes.includes("tune")), []);
});

Deno.test("LastItems sends nothing twice of which the client heard before they are read", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  pep.logIn(BOB, ["tune+notify", "mood+notify"]);
  await pep.publish("alice@example.com/x", "tune", item("alice"));
  await pep.server.settled();
  deepStrictEqual(changesIn(pep.delivered.map(({ stanza }) => textOf(stanza))), ["alice"]);
  pep.server.datacenterBack(); // the client gets all of it anyway
  deepStrictEqual(changesIn(await pep.received(BOB)), ["alice"]);
});

Deno.test("LastItems sends the item that is the last one once a newer one is retracted", async () => {
  await using pep = await PepFixture.open();
  const options = { "pubsub#max_items": "max" };
  await pep.publish(ALICE, TUNE, item("one"), options);
  pep.logIn(ALICE, [`${TUNE}+notify`]);
  await pep.publish(ALICE, TUNE, item("two"), options);
  const retract = `<retract node='${TUNE}' notify='true'><item id='two'/></retract>`;
  const pubsub = `<pubsub xmlns='${OWNER.replace("#owner", "")}'>${retract}</pubsub>`;
  match(await pep.ask(ALICE, "set", pubsub), /type='result'/);
  deepStrictEqual(changesIn(await pep.received(ALICE)), ["two", "two", "one"]);
});

for (const isNew of [true, false]) {
  const what = isNew ? "again for a client that moves soon" : "once for one that moves long";
  Deno.test(`LastItems are read ${what} after its login`, async () => {
    await using pep = await PepFixture.open();
    await pep.publish(ALICE, TUNE, item("one"));
    const ver = createHash("sha1").update(`${TUNE}+notify<`).digest("base64");
    const c = "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' " +
      `node='http://client.example' ver='${ver}'/>`;
    const laptop = "alice@example.com/laptop";
    pep.here.set(laptop, undefined);
    pep.presence(laptop, presenceOf(laptop, c));
    const id = /id='([^']+)'/.exec(textOf(pep.delivered[0]!.stanza))![1]!;
    const info = "http://jabber.org/protocol/disco#info";
    pep.answer(laptop, id, `<query xmlns='${info}'><feature var='${TUNE}+notify'/></query>`);
    await pep.settled();
    const presence = presenceOf(ALICE, c);
    pep.here.set(ALICE, presence);
    pep.server.arrived(presence.from as FullJid, presence, isNew);
    deepStrictEqual(changesIn(await pep.received(ALICE)), isNew ? ["one"] : []);
  });
}

Deno.test("LastItems are sent a client that has moved as far as it may have missed them, once it has said its interests", async () => {
  await using pep = await PepFixture.open({ maxNodes: 50 });
  const nodes = Array.from({ length: 25 }, (_, index) => `urn:${index}`);
  const c = "<c xmlns='http://jabber.org/protocol/caps' node='http://client.example' ver='1'/>";
  const presence = presenceOf(ALICE, c);
  const alice = presence.from as FullJid;
  pep.here.set(ALICE, presence);
  pep.server.arrived(alice, presence, false);
  const arrivedMs = pep.clock.wallMs();
  const id = /id='([^']+)'/.exec(textOf(pep.delivered.splice(0)[0]!.stanza))![1]!;
  strictEqual(pep.server.isSending(alice), false, "its former node has sent them");
  pep.clock.advance(5_000);
  for (const node of nodes) await pep.publish(ALICE, node, item("new"));
  const features = nodes.map((node) => `<feature var='${node}+notify'/>`).join("");
  const info = "http://jabber.org/protocol/disco#info";
  pep.answer(ALICE, id, `<query xmlns='${info}'>${features}</query>`);
  const found = changesIn(await pep.received(ALICE));
  deepStrictEqual(found, nodes.map(() => "new"), "more than can wait, and none twice");
  const readings = pep.readings.filter((each) => each.nodes.includes("urn:0"));
  deepStrictEqual(readings.map(({ sinceMs }) => sinceMs), [arrivedMs - 60_000]);
});

Deno.test("PepServer.isSending() is true until a client that has logged in has got the last items", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"));
  const isSending = () => pep.server.isSending(parseJid(ALICE) as FullJid);
  strictEqual(isSending(), false);
  const answer = pep.appear(ALICE);
  strictEqual(isSending(), true, "its capabilities are not known");
  answer([`${TUNE}+notify`]);
  strictEqual(isSending(), true, "they come after the presence");
  deepStrictEqual(changesIn(await pep.received(ALICE)), ["one"]);
  strictEqual(isSending(), false);
});

Deno.test("LastItems that cannot be read are read again, and none is sent twice", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, TUNE, item("alice"));
  await pep.publish("bob@example.com/tv", TUNE, item("bob"));
  const isSending = () => pep.server.isSending(parseJid(BOB) as FullJid);
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read", { retryable: true });
  await pep.online(BOB, [`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["bob"], "they need no roster");
  strictEqual(isSending(), true);
  pep.clock.advance(RETRY_MS);
  deepStrictEqual(await pep.received(BOB), []);
  strictEqual(pep.log.named("pep.last-items-failed").length, 1);
  pep.rostersFailure = undefined;
  pep.clock.advance(RETRY_MS);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["alice"]);
  strictEqual(isSending(), false);
  // Somebody who leaves in between is sent all of them when they are back.
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read", { retryable: true });
  await pep.online("bob@example.com/desk", [`${TUNE}+notify`]);
  await pep.received("bob@example.com/desk");
  pep.presence("bob@example.com/desk", {
    ...presenceOf("bob@example.com/desk"),
    type: "unavailable",
  });
  pep.rostersFailure = undefined;
  await pep.online("bob@example.com/desk", [`${TUNE}+notify`]);
  pep.clock.advance(RETRY_MS);
  deepStrictEqual(changesIn(await pep.received("bob@example.com/desk")), ["bob", "alice"]);
});

Deno.test("LastItems that can never be read are given up", async () => {
  await using pep = await PepFixture.open();
  pep.lastItemsFailure = new CausewayError("storage/corrupt", "Cannot read: damaged");
  await pep.online(ALICE, [`${TUNE}+notify`]);
  strictEqual(pep.server.isSending(parseJid(ALICE) as FullJid), false);
});

Deno.test("LastItems sends a client that comes back nothing that is still read for the time before", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, TUNE, item("alice"));
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  pep.logIn(BOB, [`${TUNE}+notify`]);
  pep.clock.advance(PAUSE_MS);
  pep.presence(BOB, { ...presenceOf(BOB), type: "unavailable" });
  pep.logIn(BOB, [`${TUNE}+notify`]);
  resolve();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["alice"]);
});

Deno.test("LastItems that wait until others are read are still to be sent, unless the client hears of them or leaves", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"));
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  const [laptop, phone, desk] = ["laptop", "phone", "desk"].map((each) =>
    `bob@example.com/${each}`
  );
  await pep.subscribe("alice@example.com", "bob@example.com");
  const others = Array.from({ length: 10 }, (_, index) => `carol@example.com/${index}`);
  const clients = [...others, laptop!, phone!, desk!];
  for (const each of clients) pep.logIn(each, [`${TUNE}+notify`]);
  pep.clock.advance(PAUSE_MS);
  const isSending = (jid: string) => pep.server.isSending(parseJid(jid) as FullJid);
  deepStrictEqual(clients.filter((each) => !isSending(each)), [], "all but ten wait");
  const notice = `<message type='headline' from='alice@example.com' to='${phone}'>` +
    `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='${TUNE}'>` +
    "<item id='one'><x xmlns='urn:x'/></item></items></event></message>";
  pep.server.notified({
    kind: "message",
    type: "headline",
    from: parseJid("alice@example.com"),
    to: parseJid(phone!),
    bytes: new TextEncoder().encode(notice),
  });
  pep.presence(desk!, { ...presenceOf(desk!), type: "unavailable" });
  strictEqual(isSending(desk!), false);
  resolve();
  deepStrictEqual(changesIn(await pep.received(laptop!)), ["one"]);
  deepStrictEqual(await pep.received(phone!), [], "it has got it");
  deepStrictEqual(await pep.received(desk!), []);
  deepStrictEqual(clients.filter(isSending), []);
});

Deno.test("PepServer.approved() gives a new contact the last items, through the nodes of its sessions", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, "tune", item("t"));
  await pep.publish(ALICE, "own", item("o"), { "pubsub#access_model": "whitelist" });
  await pep.publish(ALICE, "never", item("n"), { "pubsub#send_last_published_item": "never" });
  await pep.online(BOB, ["tune+notify", "own+notify", "never+notify"]);
  await pep.online("bob@example.com/tv", []);
  await pep.received(BOB);
  await pep.subscribe("alice@example.com", "bob@example.com");
  pep.server.approved(parseJid("alice@example.com"), parseJid("bob@example.com"));
  await pep.server.settled();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["t"]);
  deepStrictEqual(pep.delivered, []);
});

Deno.test("PepServer.datacenterBack() gives clients again what they may have missed", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, "tune", item("t"));
  await pep.online(BOB, ["tune+notify"]);
  await pep.online("bob@example.com/tv", []);
  await pep.received(BOB);
  pep.server.datacenterBack();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["t"]);
  deepStrictEqual(pep.delivered, []);
});

Deno.test("PepServer.datacenterBack() gives clients that still wait for that nothing twice", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, "tune", item("t"));
  const clients = Array.from({ length: 12 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of clients) await pep.online(jid, ["tune+notify"]);
  pep.delivered.length = 0;
  // Ten are read at once: the others wait.
  for (let count = 0; count < 3; count++) pep.server.datacenterBack();
  deepStrictEqual(changesIn(await pep.received(clients.at(-1)!)), ["t"]);
  deepStrictEqual(changesIn(await pep.received(clients.at(-2)!)), ["t"]);
  strictEqual((await pep.received(clients[0]!)).length > 0, true);
});

Deno.test("LastItems sends nothing that a notification has overtaken", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("old"));
  const reading = pep.online(ALICE, [`${TUNE}+notify`]);
  const notice = `<message type='headline' from='alice@example.com' to='${ALICE}'>` +
    `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='${TUNE}'>` +
    "<item id='new'><x xmlns='urn:x'/></item></items></event></message>";
  // It arrives after the reading has begun, and before it ends.
  const outcome = pep.server.notified({
    kind: "message",
    type: "headline",
    from: parseJid("alice@example.com"),
    to: parseJid(ALICE),
    bytes: new TextEncoder().encode(notice),
  });
  strictEqual(outcome, undefined, "it is delivered as every message");
  await reading;
  deepStrictEqual(await pep.received(ALICE), []);
});

Deno.test("PepNotices tells of what others publish while one account publishes more than is told", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  await pep.online(BOB, [`${TUNE}+notify`]);
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  const payload = element("tune", { xmlns: TUNE });
  const options = new Map([["pubsub#persist_items", ["false"]]]);
  const publish = (owner: string, id: string) =>
    pep.server.publish(parseJid(owner).bare, { node: TUNE, id, payload, options });
  for (let i = 0; i < 2_100; i++) await publish(ALICE, `${i}`);
  await publish(BOB, "own");
  resolve();
  await pep.server.settled();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["own"]);
  const told = changesIn(await pep.received(ALICE));
  deepStrictEqual(told.length, 2_000, "of the 10000 places, alice has a fifth");
});

Deno.test("PepServer keeps a bounded number of bytes of changes that are still to be told", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  await pep.online(BOB, [`${TUNE}+notify`]);
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  const payload = element("tune", { xmlns: TUNE }, "x".repeat(16_000));
  const options = new Map([["pubsub#persist_items", ["false"]]]);
  const publish = (owner: string, id: string) =>
    pep.server.publish(parseJid(owner).bare, { node: TUNE, id, payload, options });
  for (let i = 0; i < 250; i++) await publish(ALICE, `${i}`);
  await publish(BOB, "own");
  resolve();
  await pep.server.settled();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["own"]);
  const { length } = changesIn(await pep.received(ALICE));
  const fifth = 16 * 1_048_576 / 5;
  ok(length * 16_000 <= fifth && (length + 2) * 16_100 > fifth, `${length}`);
});

Deno.test("PepServer tells of changes, in their order, once it can read who is to hear of them", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const away = { retryable: true };
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
  const publications = ["one", "two"].map((id) => pep.publish(ALICE, TUNE, item(id)));
  const failures = () => pep.log.named("pep.notification-failed").length;
  while (failures() === 0) await new Promise((done) => setTimeout(done));
  deepStrictEqual(changesIn(pep.delivered.map(({ stanza }) => textOf(stanza))), []);
  pep.rostersFailure = undefined;
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["one", "two"]);
  strictEqual(failures(), 1);
});

Deno.test("PepServer tells sessions elsewhere of changes, in their order, once they are known again", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const place = { host: "dc2.example.com", resourcepart: "tv", process: 1 };
  pep.elsewhere.set("bob@example.com", [place]);
  pep.isTableAway = true;
  const here = () => changesIn(pep.delivered.map(({ stanza }) => textOf(stanza)));
  const there = () => changesIn(pep.routed.map(textOf));
  const publications: Promise<string>[] = [];
  for (const id of ["one", "two", "three"]) {
    if (id === "three") pep.isTableAway = false;
    publications.push(pep.publish(ALICE, TUNE, item(id)));
    while (!here().includes(id)) await new Promise((done) => setTimeout(done));
    deepStrictEqual(there(), []);
  }
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(there(), ["one", "two", "three"]);
  deepStrictEqual(here(), ["one", "two", "three"], "each once");
});

Deno.test("PepServer tells sessions elsewhere nothing later of a node that is hidden by then", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const place = { host: "dc2.example.com", resourcepart: "tv", process: 1 };
  pep.elsewhere.set("bob@example.com", [place]);
  pep.isTableAway = true;
  const timers = pep.clock.pendingTimers;
  const publication = pep.publish(ALICE, TUNE, item("one"));
  while (pep.clock.pendingTimers === timers) await new Promise((done) => setTimeout(done));
  const values = new Map([["pubsub#access_model", ["whitelist"]]]);
  await pep.server.configure(parseJid("alice@example.com"), TUNE, values);
  pep.isTableAway = false;
  pep.clock.advance(RETRY_MS);
  await publication;
  deepStrictEqual(pep.routed, []);
});

Deno.test("PepServer.close() waits for no session table", async () => {
  await using pep = await PepFixture.open();
  const timers = pep.clock.pendingTimers;
  pep.isTableAway = true;
  const payload = element("tune", { xmlns: TUNE });
  for (const id of ["one", "two"]) {
    await pep.server.publish(parseJid(ALICE).bare, { node: TUNE, id, payload });
  }
  await pep.server.close();
  strictEqual(pep.clock.pendingTimers, timers);
});

Deno.test("PepServer tells nobody later of items in a node that is hidden by then, or has another owner", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`, `${MOOD}+notify`]);
  await pep.publish(ALICE, MOOD, item("before"));
  await pep.received(BOB);
  const store = pep.store.pep("example.com");
  const away = { retryable: true };
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
  const publications = [TUNE, MOOD].map((node) => pep.publish(ALICE, node, item("late")));
  const failures = () => pep.log.named("pep.notification-failed").length;
  while (failures() === 0) await new Promise((done) => setTimeout(done));
  const { config } = (await store.node("alice", TUNE))!;
  const hidden = config.replace("[", '[["pubsub#access_model",["whitelist"]],');
  await store.configure("alice", { node: TUNE, expected: config, config: hidden, maxItems: 1 });
  // As if the account had been deleted and made again.
  const { config: expected } = (await store.node("alice", MOOD))!;
  await store.configure("alice", { node: MOOD, expected, config: "[]", maxItems: 1 });
  pep.rostersFailure = undefined;
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
});

Deno.test("PepServer.close() tries once more to tell of changes, and then waits for no database", async () => {
  for (const isBack of [true, false]) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    await pep.online(BOB, [`${TUNE}+notify`]);
    const timers = pep.clock.pendingTimers;
    const away = { retryable: true };
    pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
    const payload = element("tune", { xmlns: TUNE });
    for (const id of ["one", "two"]) {
      await pep.server.publish(parseJid(ALICE).bare, { node: TUNE, id, payload });
    }
    while (pep.log.named("pep.notification-failed").length === 0) {
      await new Promise((done) => setTimeout(done));
    }
    if (isBack) pep.rostersFailure = undefined;
    await pep.server.close();
    strictEqual(pep.clock.pendingTimers, timers);
    deepStrictEqual(changesIn(await pep.received(BOB)), isBack ? ["one", "two"] : []);
  }
});

Deno.test("PepServer gives up what it can never tell", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  pep.rostersFailure = new CausewayError("storage/corrupt", "Cannot read rosters");
  match(await pep.publish(ALICE, TUNE, item("one")), /type='result'/);
  pep.rostersFailure = undefined;
  match(await pep.publish(ALICE, TUNE, item("two")), /type='result'/);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["two"]);
});

Deno.test("PepNotices tells members of a whitelist who may see the presence, and no outcast", async () => {
  await using pep = await PepFixture.open();
  const [carol, dave] = ["carol@example.com/desk", "dave@example.com/desk"];
  for (const contact of ["bob@example.com", "dave@example.com"]) {
    await pep.subscribe("alice@example.com", contact);
  }
  const clients = [ALICE, BOB, carol, dave];
  for (const jid of clients) await pep.online(jid, ["a+notify", "b+notify"]);
  const affiliate = (node: string, list: Readonly<Record<string, string>>) => {
    const each = Object.entries(list).map(([jid, affiliation]) =>
      `<affiliation jid='${jid}' affiliation='${affiliation}'/>`
    );
    const content = `<affiliations node='${node}'>${each.join("")}</affiliations>`;
    return pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${content}</pubsub>`);
  };
  await pep.publish(ALICE, "a", item("1"), { "pubsub#access_model": "whitelist" });
  await pep.publish(ALICE, "b", item("1"));
  await affiliate("a", { "bob@example.com": "member", "carol@example.com": "member" });
  await affiliate("b", { "dave@example.com": "outcast" });
  pep.delivered.splice(0);
  await pep.publish(ALICE, "a", item("2"));
  await pep.publish(ALICE, "b", item("3"));
  const told = async () =>
    await Promise.all(clients.map(async (jid) => changesIn(await pep.received(jid))));
  deepStrictEqual(await told(), [["2", "3"], ["2", "3"], [], []]);
  for (const jid of [BOB, carol, dave]) await pep.online(`${jid}2`, ["a+notify", "b+notify"]);
  deepStrictEqual(
    await Promise.all(
      [BOB, carol, dave].map(async (jid) => changesIn(await pep.received(`${jid}2`)).toSorted()),
    ),
    [["2", "3"], [], []],
    "the last items go to the same",
  );
  pep.creations.set("bob@example.com", "2"); // the name has another owner, and its subscription
  pep.delivered.splice(0);
  await pep.publish(ALICE, "a", item("4"));
  deepStrictEqual(await told(), [["4"], [], [], []]);
  await pep.online(`${BOB}3`, ["a+notify", "b+notify"]);
  deepStrictEqual(changesIn(await pep.received(`${BOB}3`)), ["3"]);
});
