import assert from "node:assert/strict";
import type { Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { partedPayload } from "./presence_signal.ts";
import {
  ALICE,
  BOB,
  CAROL,
  DC2,
  DOWN,
  PHONE,
  toBob,
  withAlice,
  withBobAtDc2,
} from "./testing/alice_and_bob.ts";
import { fullJid, hidingFrom, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

Deno.test("a session of an account that is gone tells the new owner's contacts nothing, and gets nothing of theirs", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both", request: new Uint8Array(1) }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: "dc2.example.com", resourcepart: "desk", process: 2 }]);
  fixture.former.add(PHONE);
  await fixture.changePresence(PHONE);
  await fixture.changePresence(PHONE, "unavailable");
  assert.deepEqual([toBob(fixture), fixture.routed, fixture.delivered], [[], [], []]);
  fixture.server.closed(fullJid(PHONE));
  await fixture.server.settled();
  fixture.former.clear();
  await fixture.changePresence(PHONE);
  assert.equal(toBob(fixture).length, 2, "the new owner's session tells bob, and asks for his");
});

Deno.test("a probe is answered with the presence of the available sessions here", async () => {
  const fixture = withAlice();
  await fixture.changePresence(PHONE);
  fixture.here.set(`${ALICE}/silent`, undefined);
  fixture.sent.length = 0;
  const probe = (from: string) =>
    buildStanza(element("presence", { type: "probe" }), {
      from: parseJid(from),
      to: parseJid(ALICE),
    });
  fixture.server.probed(probe(`${BOB}/x`));
  assert.deepEqual(lines(fixture.routed), [`available: ${PHONE} → ${BOB}/x`]);
});

Deno.test("a probe that was allowed before the subscription ended is not answered", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  const answersTo = (from: string) => {
    const addresses = { from: parseJid(from), to: parseJid(ALICE) };
    fixture.routed.length = 0;
    fixture.server.probed(buildStanza(element("presence", { type: "probe" }), addresses));
    return lines(fixture.routed);
  };
  const answers = [`available: ${PHONE} → ${BOB}/x`];
  assert.deepEqual(answersTo(`${BOB}/x`), answers);
  await fixture.enter(PHONE, "unsubscribed", BOB);
  assert.deepEqual(answersTo(`${BOB}/x`), [], "bob has been told that she is gone");
  assert.equal(answersTo(`${CAROL}/x`).length, 1);
  answersTo(BOB); // as he may see her again
  assert.deepEqual(answersTo(`${BOB}/x`), answers);
  fixture.server.takes(partedSignal());
  assert.deepEqual(answersTo(`${BOB}/x`), [], "another node has ended it");
  fixture.clock.advance(300_000);
  assert.deepEqual(answersTo(`${BOB}/x`), answers, "no such probe takes so long");
});

/** The request of another node to tell bob of the end of alice's presence. */
function partedSignal(): Stanza {
  const iq = element("iq", { type: "set", id: "1" });
  const addresses = { from: parseJid(ALICE), to: parseJid(PHONE) };
  return buildStanza(iq, { ...addresses, content: partedPayload(parseJid(BOB)) });
}

Deno.test("a login with very many contacts asks the database once and the session table once", async () => {
  const fixture = withAlice();
  const friends = Array.from({ length: 500 }, (_, i) => `friend${i}@example.com`);
  for (const [i, friend] of friends.entries()) {
    fixture.store.put(ALICE, item(friend, { subscription: "both" }));
    fixture.store.put(friend, item(ALICE, { subscription: "both" }));
    if (i < 50) fixture.elsewhere.set(friend, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  fixture.sendPresence(PHONE);
  const contacts = await fixture.server.contactsTold(fullJid(PHONE)); // as personal eventing asks
  await fixture.server.settled();
  assert.equal(contacts?.length, 500);
  assert.deepEqual(fixture.store.calls, ["contacts with requests"]);
  assert.equal(fixture.lookups.length, 1);
  assert.equal(new Set(fixture.lookups[0]).size, fixture.lookups[0]!.length, "nobody twice");
  const to = (type: string) =>
    fixture.sent.filter(({ stanza }) => stanza.type === type && stanza.to.text !== ALICE);
  assert.equal(to("available").length, 50);
  assert.equal(to("probe").length, 50);
  assert.ok(fixture.sent.every(({ host }) => host === DC2), "only where somebody is online");
});

Deno.test("contactsTold() knows nothing when no presence is told, or that failed", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  assert.equal(await fixture.server.contactsTold(fullJid(PHONE)), undefined);
  fixture.store.failure = DOWN;
  fixture.sendPresence(PHONE);
  assert.equal(await fixture.server.contactsTold(fullJid(PHONE)), undefined);
  fixture.server.close();
});

Deno.test("presence goes to those who may see it, and probes to those who let the account see them", async () => {
  const fixture = withAlice();
  for (
    const [name, own, theirs] of [
      ["from", "from", "to"],
      ["to", "to", "from"],
      ["none", "none", "none"],
      ["revoked", "to", "none"],
    ] as const
  ) {
    const friend = `${name}@example.com`;
    fixture.store.put(ALICE, item(friend, { subscription: own }));
    fixture.store.put(friend, item(ALICE, { subscription: theirs }));
    fixture.elsewhere.set(friend, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  await fixture.changePresence(PHONE);
  assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)).toSorted(), [
    `available: ${PHONE} → ${ALICE}`,
    `available: ${PHONE} → from@example.com`,
    `probe: ${PHONE} → ${ALICE}`,
    `probe: ${PHONE} → to@example.com`,
  ]);
});

Deno.test("the end of a presence is told without the database to those who were told of it", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  fixture.store.failure = DOWN;
  await fixture.changePresence(PHONE, "unavailable");
  assert.ok(
    lines(fixture.sent.map(({ stanza }) => stanza)).includes(`unavailable: ${PHONE} → ${BOB}`),
  );
});

Deno.test("the end of a presence is not told to a contact who was told so when the subscription ended", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  await fixture.enter(PHONE, "unsubscribed", BOB);
  assert.equal(toBob(fixture).at(-1), `unavailable: ${PHONE} → ${BOB}`);
  fixture.sent.length = 0;
  await fixture.changePresence(PHONE, "unavailable");
  assert.deepEqual(toBob(fixture), []);
});

Deno.test("a session that came from another node tells of its end, and asks nobody anew", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.server.arrived(fullJid(PHONE), { isAvailable: true, isNew: false });
  await fixture.changePresence(PHONE);
  await fixture.changePresence(PHONE, "unavailable");
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(toBob.map(({ stanza }) => stanza.type), ["available", "unavailable"]);
});

Deno.test("a client that leaves and comes back at once is told and asks as at every login", async () => {
  for (const isTold of [true, false]) {
    const fixture = withAlice();
    fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
    fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    fixture.sendPresence(PHONE);
    if (isTold) await fixture.server.settled();
    fixture.sent.length = 0;
    fixture.sendPresence(PHONE, "unavailable");
    fixture.sendPresence(PHONE);
    await fixture.server.settled();
    const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
    const types = toBob.map(({ stanza }) => stanza.type);
    assert.deepEqual(types.slice(-3), ["unavailable", "available", "probe"]);
  }
});

Deno.test("presences that wait for the database replace one another, and the last one counts", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.store.answersAfter = promise;
  for (let i = 0; i < 50; i++) {
    fixture.sendPresence(PHONE, undefined, `${i}`);
    if (i % 7 === 0) fixture.sendPresence(PHONE, "unavailable");
  }
  fixture.sendPresence(PHONE, undefined, "last");
  resolve();
  await fixture.server.settled();
  assert.equal(fixture.store.calls.length, 3, "the first, the last end, and the last presence");
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(toBob.map(({ stanza }) => stanza.type), [
    "available",
    "unavailable",
    "available",
  ]);
  assert.match(new TextDecoder().decode(toBob.at(-1)!.stanza.bytes), /last/);
});

Deno.test("a presence that the database kept from being told is told when it is back", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.store.failure = DOWN;
  await fixture.changePresence(PHONE);
  assert.deepEqual(fixture.sent, []);
  const later = async () => {
    fixture.clock.advance(60_000);
    await fixture.server.settled();
  };
  for (let i = 0; i < 20; i++) await later();
  fixture.store.failure = undefined;
  for (let i = 0; i < 2; i++) await later();
  const toBob = () =>
    lines(fixture.sent.map(({ stanza }) => stanza)).filter((each) => each.endsWith(BOB));
  assert.deepEqual(toBob(), [`available: ${PHONE} → ${BOB}`], "once");
});

Deno.test("the end of a session that came from another node is told when the database is back", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.server.arrived(fullJid(PHONE), { isAvailable: true, isNew: false });
  fixture.store.failure = DOWN;
  await fixture.changePresence(PHONE, "unavailable");
  fixture.server.closed(fullJid(PHONE));
  await fixture.server.settled();
  fixture.store.failure = undefined;
  fixture.clock.advance(60_000);
  await fixture.server.settled();
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(toBob.map(({ stanza }) => stanza.type), ["unavailable"]);
});

Deno.test("the end of a presence is told when the database is back, though its session closes at once", async () => {
  const fixture = withBobAtDc2();
  fixture.server.arrived(fullJid(PHONE), { isAvailable: true, isNew: false });
  fixture.store.failure = DOWN;
  fixture.sendPresence(PHONE, "unavailable");
  fixture.server.closed(fullJid(PHONE));
  fixture.here.delete(PHONE);
  await fixture.server.settled();
  assert.deepEqual(toBob(fixture), []);
  fixture.store.failure = undefined;
  for (let i = 0; i < 3; i++) {
    fixture.clock.advance(60_000);
    await fixture.server.settled();
  }
  assert.deepEqual(toBob(fixture), [`unavailable: ${PHONE} → ${BOB}`], "once");
});

Deno.test("the end of an earlier session is told no more once its full JID has come from elsewhere", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  fixture.store.failure = DOWN;
  fixture.sendPresence(PHONE, "unavailable");
  fixture.server.closed(fullJid(PHONE));
  await fixture.server.settled();
  fixture.store.failure = undefined;
  fixture.sent.length = 0;
  fixture.arrive(PHONE, false);
  fixture.clock.advance(60_000);
  await fixture.server.settled();
  assert.deepEqual(toBob(fixture), []);
});

Deno.test("a contact from whom the list hid a session hears nothing of its end, whenever that is told", async () => {
  for (const isDown of [false, true]) {
    const fixture = withBobAtDc2();
    fixture.hidden.set(PHONE, new Set([BOB]));
    await fixture.changePresence(PHONE);
    fixture.store.failure = isDown ? DOWN : undefined;
    fixture.sendPresence(PHONE, "unavailable");
    fixture.server.closed(fullJid(PHONE));
    // The list is forgotten with the session.
    fixture.hidden.delete(PHONE);
    fixture.here.delete(PHONE);
    await fixture.server.settled();
    fixture.store.failure = undefined;
    fixture.clock.advance(60_000);
    await fixture.server.settled();
    assert.deepEqual(toBob(fixture), [], `the database is ${isDown ? "down" : "there"}`);
    const toLaptop = fixture.sent.filter(({ stanza }) => stanza.to.text === ALICE);
    assert.equal(toLaptop.at(-1)?.stanza.type, "unavailable", "her own client hears of it");
  }
});

Deno.test("a contact who is blocked at the last moment hears of the end, and no word more", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  const blocked = new Set([BOB]);
  fixture.hidden.set(PHONE, blocked);
  fixture.sendPresence(PHONE, "unavailable", "off to Rome");
  fixture.server.privacyChanged(fullJid(PHONE), {
    before: hidingFrom(),
    after: hidingFrom(blocked),
  });
  fixture.server.closed(fullJid(PHONE));
  fixture.here.delete(PHONE);
  await fixture.server.settled();
  assert.deepEqual(toBob(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
  const words = (account: string) =>
    fixture.sent.filter(({ stanza }) => stanza.to.text === account)
      .map(({ stanza }) => /Rome/.test(new TextDecoder().decode(stanza.bytes)));
  assert.deepEqual([words(BOB), words(ALICE)], [[false], [true]]);
});

Deno.test("a contact who is one no more is told so by the next presence, though no request came", async () => {
  for (const next of [undefined, "unavailable"] as const) {
    const fixture = withBobAtDc2();
    await fixture.changePresence(PHONE);
    fixture.sent.length = 0;
    // Another node writes this. Its request to end the presence for bob is lost.
    fixture.store.put(ALICE, item(BOB, { subscription: "none" }));
    for (let i = 0; i < 2; i++) await fixture.changePresence(PHONE, next);
    assert.deepEqual(toBob(fixture), [`unavailable: ${PHONE} → ${BOB}`], "once");
  }
});

Deno.test("a login repeats a bounded number of requests, and the next one goes on from there", async () => {
  const fixture = withAlice();
  for (let i = 0; i < 175; i++) {
    fixture.store.put(ALICE, item(`friend${i}@example.com`, { isAsking: true }));
  }
  const asked = new Set<string>();
  for (let login = 0; login < 4; login++) {
    fixture.routed.length = 0;
    await fixture.changePresence(PHONE);
    assert.equal(fixture.routed.length, 50);
    for (const { to } of fixture.routed) asked.add(to.text);
    await fixture.changePresence(PHONE, "unavailable");
  }
  assert.equal(asked.size, 175);
});

Deno.test("a later presence reads no kept requests, and a probe one item alone", async () => {
  const fixture = withAlice();
  await fixture.changePresence(PHONE);
  fixture.store.calls.length = 0;
  await fixture.changePresence(PHONE);
  await fixture.take(BOB, "probe", ALICE);
  assert.deepEqual(fixture.store.calls, ["contacts", "subscription"]);
});

Deno.test("the end of a session whose account is gone is told to those who knew of it, and nobody else", async () => {
  const fixture = withBobAtDc2();
  fixture.elsewhere.set(CAROL, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.changePresence(PHONE);
  await fixture.store.removeAll(ALICE);
  fixture.server.gone([fullJid(PHONE)]);
  // Somebody else has got the name.
  fixture.store.put(ALICE, item(CAROL, { subscription: "from" }));
  fixture.sent.length = 0;
  fixture.sendPresence(PHONE, "unavailable");
  fixture.server.closed(fullJid(PHONE));
  await fixture.server.settled();
  assert.deepEqual(toBob(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
  assert.deepEqual(fixture.sent.filter(({ stanza }) => stanza.to.text === CAROL), []);
});

Deno.test("somebody is seen online by those who were told of their presence, and by nobody else", async () => {
  const fixture = withAlice();
  const isSeen = (asker = `${BOB}/x`) =>
    fixture.server.isSeenOnline(parseJid(ALICE), parseJid(asker));
  fixture.here.set(`${BOB}/x`, undefined);
  assert.equal(isSeen(), false, "her sessions are not available");
  fixture.heard(`${ALICE}/laptop`, BOB);
  assert.equal(isSeen(), true, "at dc2");
  assert.equal(isSeen(PHONE), false, "nobody has told herself");
  assert.equal(isSeen("alice@example.co/x"), false);
  fixture.heard(`${ALICE}/laptop`, BOB, "unavailable");
  assert.equal(isSeen(), false);
  await fixture.changePresence(PHONE);
  assert.deepEqual([isSeen(), isSeen(PHONE)], [true, true], "here");
  fixture.hidden.set(PHONE, new Set([BOB]));
  assert.deepEqual([isSeen(), isSeen(PHONE)], [false, true], "her list hides it from him");
  fixture.heard(`${ALICE}.example/x`, BOB);
  assert.equal(isSeen(), false, "another account");
});

Deno.test("a session that comes from another node meets the sessions of this one", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  await fixture.changePresence(`${BOB}/x`); // alice logs in elsewhere, and is not found yet
  fixture.sent.length = 0;
  fixture.arrive(PHONE, true);
  fixture.clock.advance(5_000);
  await fixture.server.settled();
  assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), [
    `available: ${PHONE} → ${BOB}`,
    `probe: ${PHONE} → ${BOB}`,
  ]);
});

Deno.test("a client that logs in later hears of contacts whose rosters lie elsewhere, though others have", async () => {
  const fixture = withAlice();
  const dave = "dave@dc2.example.com";
  fixture.store.put(ALICE, item(dave, { subscription: "to" }));
  await fixture.changePresence(PHONE);
  const addresses = { from: parseJid(`${dave}/x`), to: parseJid(ALICE) };
  const presence = buildStanza(element("presence"), addresses);
  const saw = () => fixture.server.saw(presence, { origin: DC2, process: 2, sentAtUs: 1 });
  assert.deepEqual([saw(), saw()], [true, false]);
  fixture.routed.length = 0;
  await fixture.changePresence(`${ALICE}/tablet`);
  assert.deepEqual(lines(fixture.routed), [`probe: ${ALICE} → ${dave}`]);
  assert.deepEqual([saw(), saw()], [true, false], "the answer to that");
});
