import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { CausewayError } from "../../base/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { PAUSE_MS, RETRY_MS } from "./last_items.ts";
import { PepFixture, presenceOf, textOf } from "./testing/pep_fixture.ts";
import { ALICE, BOB, changesIn, item, OWNER, TUNE } from "./testing/pep_scene.ts";

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

Deno.test("LastItems gives nobody an item that is published once they are no contact any more", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish("alice@example.com/x", "tune", item("before"));
  pep.told = await pep.store.rosters().contacts("bob@example.com");
  pep.logIn(BOB, ["tune+notify"]);
  await pep.server.settled();
  await pep.store.rosters().part("alice@example.com", "bob@example.com");
  await pep.publish("alice@example.com/x", "tune", item("secret"));
  deepStrictEqual(await pep.received(BOB), []);
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
