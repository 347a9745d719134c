import assert from "node:assert/strict";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { ALICE, BOB, CAROL, DC2, DOWN, PHONE, query, withAlice } from "./testing/alice_and_bob.ts";
import { item, lines, RosterFixture } from "./testing/roster_fixture.ts";

Deno.test("a removed contact stops seeing the account, and hears of the end", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = fixture.routed.length = 0;
  await fixture.ask(PHONE, "set", query({ jid: BOB, subscription: "remove" }));
  assert.deepEqual(
    fixture.sent.map(({ host, stanza }) => `${host} ${lines([stanza])[0]}`),
    [`${DC2} unavailable: ${PHONE} → ${BOB}`],
  );
  assert.deepEqual(lines(fixture.routed).slice(2), [
    `set: ${ALICE} → ${ALICE}/laptop`, // asks its node to end its presence
    `unsubscribed: ${ALICE} → ${BOB}`,
    `unsubscribe: ${ALICE} → ${BOB}`,
  ]);
});

Deno.test("a request is written before its sender may forget it, and routed then", async () => {
  const fixture = withAlice();
  const steps = await fixture.enter(PHONE, "subscribe", `${BOB}/x`);
  assert.equal(steps.length, 1);
  assert.deepEqual(lines(fixture.routed).toSorted(), [
    `push ${BOB} none: ${ALICE} → ${ALICE}/laptop`,
    `push ${BOB} none: ${ALICE} → ${PHONE}`,
    `subscribe: ${ALICE} → ${BOB}`,
  ]);
  // The pushes were there, and the request was not: its way says something of the contact.
  assert.deepEqual(steps, ["settled, 2 routed"]);
  assert.equal(fixture.store.item(ALICE, BOB)?.isAsking, true);
});

Deno.test("a database failure is told to the client, and the stanza goes nowhere", async () => {
  const fixture = withAlice();
  fixture.store.failure = DOWN;
  const steps = await fixture.enter(PHONE, "subscribe", BOB);
  assert.equal(steps.length, 1);
  assert.deepEqual(lines(fixture.routed), [`error: ${BOB} → ${PHONE}`]);
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="failed"} 1'));
});

Deno.test("a session of an account that is gone changes no subscription of the name's new owner", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { request: new Uint8Array(1) }));
  fixture.former.add(PHONE);
  const steps = await fixture.enter(PHONE, "subscribed", BOB);
  assert.deepEqual(steps, ["settled, 0 routed"]);
  assert.deepEqual(lines(fixture.routed), [`error: ${BOB} → ${PHONE}`]);
  assert.match(new TextDecoder().decode(fixture.routed[0]!.bytes), /<registration-required/);
  assert.equal(fixture.store.item(ALICE, BOB)?.subscription, "none");
});

Deno.test("a session whose account is deleted meanwhile leaves no approval to the name's next owner", async () => {
  const fixture = withAlice();
  fixture.store.beforeWrite = () => fixture.former.add(PHONE);
  await fixture.enter(PHONE, "subscribed", BOB);
  assert.match(new TextDecoder().decode(fixture.routed.at(-1)!.bytes), /<registration-required/);
  assert.equal(fixture.store.item(ALICE, BOB), undefined);
  assert.deepEqual(lines(fixture.routed).filter((line) => line.includes(`→ ${BOB}`)), []);
});

Deno.test("a request to an account that is deleted meanwhile is not kept for the name's next owner", async () => {
  const fixture = withAlice();
  fixture.store.beforeWrite = () => fixture.accounts.set(ALICE, "second");
  await fixture.take(BOB, "subscribe", ALICE);
  assert.equal(fixture.store.item(ALICE, BOB), undefined);
  assert.deepEqual([fixture.routed, fixture.sent], [[], []]);
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="ignored"} 1'));
  await fixture.take(BOB, "subscribe", ALICE);
  assert.notEqual(fixture.store.item(ALICE, BOB)?.request, undefined);
});

Deno.test("a request to an account that does not exist is ignored and counted", async () => {
  const fixture = withAlice();
  await fixture.take(ALICE, "subscribe", "nobody@example.com");
  assert.deepEqual([fixture.routed, fixture.sent], [[], []]);
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="ignored"} 1'));
  assert.equal(fixture.store.calls.includes("write"), false);
});

Deno.test("a request goes to all sessions of the contact, is kept, and comes at the next login", async () => {
  const fixture = withAlice();
  await fixture.take(BOB, "subscribe", ALICE);
  assert.deepEqual(lines(fixture.routed).toSorted(), [
    `subscribe: ${BOB} → ${ALICE}/laptop`,
    `subscribe: ${BOB} → ${PHONE}`,
  ]);
  await fixture.take(BOB, "subscribe", ALICE);
  assert.equal(fixture.routed.length, 2, "a second request says nothing new");
  await fixture.changePresence(PHONE);
  assert.deepEqual(lines(fixture.delivered.map(({ stanza }) => stanza)), [
    `subscribe: ${BOB} → ${ALICE}`,
  ]);
  await fixture.changePresence(PHONE);
  assert.equal(fixture.delivered.length, 1, "a later presence is no login");
});

Deno.test("requests beyond the bound are counted, and change nothing", async () => {
  const fixture = withAlice(new RosterFixture({ maxRequests: 1 }));
  await fixture.take(BOB, "subscribe", ALICE);
  await fixture.take(CAROL, "subscribe", ALICE);
  assert.equal(fixture.store.item(ALICE, CAROL), undefined);
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="full"} 1'));
});

Deno.test("who sees the presence already gets the answer from the server", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  await fixture.take(BOB, "subscribe", ALICE);
  assert.deepEqual(lines(fixture.routed), [`subscribed: ${ALICE} → ${BOB}`]);
});

Deno.test("an accepted contact is sent the presence of all sessions", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { request: new Uint8Array(1) }));
  await fixture.enter(PHONE, "subscribed", BOB);
  assert.equal(lines(fixture.routed).at(-1), `subscribed: ${ALICE} → ${BOB}`);
  assert.deepEqual(
    fixture.sent.map(({ host, stanza }) => `${host} ${lines([stanza])[0]}`).toSorted(),
    [`dc1.example.com probe: ${BOB} → ${ALICE}`, `${DC2} probe: ${BOB} → ${ALICE}`],
  );
});

Deno.test("a client hears that it is accepted before its roster and the contact's presence say so", async () => {
  for (const entry of ["by hand", "in advance"]) {
    const fixture = withAlice();
    fixture.here.set(`${BOB}/x`, undefined);
    fixture.store.put(BOB, item(ALICE, { isAsking: true }));
    let sentBefore: number | undefined;
    fixture.onRoute = (stanza) => {
      if (stanza.to.text === `${BOB}/x`) sentBefore ??= fixture.sent.length;
      if (stanza.to.text !== BOB) return;
      fixture.server.take({ stanza, settle: () => {} }); // as the router does
    };
    if (entry === "by hand") {
      fixture.store.put(ALICE, item(BOB, { request: new Uint8Array(1) }));
      await fixture.enter(PHONE, "subscribed", BOB);
    } else {
      fixture.store.put(ALICE, item(BOB, { isApproved: true }));
      await fixture.take(BOB, "subscribe", ALICE);
    }
    const toBob = fixture.routed.filter(({ to }) => to.text === `${BOB}/x`);
    const expected = [`subscribed: ${ALICE} → ${BOB}/x`, `push ${ALICE} to: ${BOB} → ${BOB}/x`];
    assert.deepEqual(lines(toBob), expected, entry);
    assert.equal(sentBefore, 0, entry);
    const probes = [`probe: ${BOB} → ${ALICE}`, `probe: ${BOB} → ${ALICE}`];
    assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), probes, entry);
  }
});

Deno.test("a client hears that a contact refuses or leaves before its roster says so", async () => {
  for (const [verb, subscription] of [["unsubscribed", "to"], ["unsubscribe", "from"]] as const) {
    const fixture = withAlice();
    fixture.store.put(ALICE, item(BOB, { subscription }));
    await fixture.take(BOB, verb, ALICE);
    const toPhone = fixture.routed.filter(({ to }) => to.text === PHONE);
    assert.deepEqual(lines(toPhone).slice(0, 2), [
      `${verb}: ${BOB} → ${PHONE}`,
      `push ${BOB} none: ${ALICE} → ${PHONE}`,
    ]);
  }
});

Deno.test("a probe of a stranger is refused in silence, and one of a subscriber is sent on", async () => {
  const fixture = withAlice();
  await fixture.take(CAROL, "probe", ALICE);
  await fixture.take(CAROL, "probe", "nobody@example.com");
  assert.deepEqual([fixture.routed, fixture.sent], [[], []]);
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  await fixture.take(BOB, "probe", ALICE);
  assert.deepEqual(fixture.sent.map(({ host }) => host).toSorted(), ["dc1.example.com", DC2]);
  assert.ok(await fixture.counts('causeway_probes_total{outcome="refused"} 2'));
  assert.ok(await fixture.counts('causeway_probes_total{outcome="answered"} 1'));
});

Deno.test("a request without an answer is repeated at each login", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { isAsking: true }));
  await fixture.changePresence(PHONE);
  assert.deepEqual(lines(fixture.routed), [`subscribe: ${ALICE} → ${BOB}`]);
});

Deno.test("a contact of the local host is sent the presence of all sessions, wherever they are", async () => {
  const fixture = withAlice();
  for (const host of ["dc1.example.com", "other.example"]) {
    const [contact, asked] = [`dora@${host}`, fixture.sent.length];
    fixture.hosts.add(host);
    fixture.store.put(ALICE, item(contact, { request: new Uint8Array(1) }));
    await fixture.enter(PHONE, "subscribed", contact);
    assert.equal(fixture.approved.pop(), `${ALICE} ${contact}`);
    // Another datacenter refuses what we send in the name of people of our further hosts.
    assert.deepEqual(
      fixture.sent.slice(asked).map(({ host }) => host).toSorted(),
      host === "other.example" ? ["dc1.example.com"] : ["dc1.example.com", DC2],
    );
  }
});

Deno.test("the end of a subscription that the database kept from a roster is applied later, in order", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.failure = DOWN;
  const settled: string[] = [];
  const take = async (type: string, from = BOB) => {
    const stanza = buildStanza(element("presence", { type }), {
      from: parseJid(from),
      to: parseJid(ALICE),
    });
    fixture.server.take({ stanza, settle: () => void settled.push(type) });
    await fixture.server.settled();
  };
  await take("unsubscribe");
  fixture.clock.advance(60_000);
  await fixture.server.settled();
  fixture.store.failure = undefined;
  await take("unsubscribed");
  await take("subscribe", "carol@example.com");
  assert.deepEqual(settled, ["subscribe"], "others do not wait");
  assert.equal(fixture.store.item(ALICE, BOB)?.subscription, "both");
  fixture.clock.advance(60_000);
  await fixture.server.settled();
  assert.deepEqual(settled, ["subscribe", "unsubscribe", "unsubscribed"]);
  assert.equal(fixture.store.item(ALICE, BOB)?.subscription, "none");
  assert.ok(!await fixture.counts('causeway_subscriptions_total{outcome="failed"} 1'));
});

Deno.test("a subscription stanza that the database keeps refusing is given up and counted", async () => {
  const fixture = withAlice();
  fixture.store.failure = DOWN;
  let isSettled = false;
  const stanza = buildStanza(element("presence", { type: "unsubscribe" }), {
    from: parseJid(BOB),
    to: parseJid(ALICE),
  });
  fixture.server.take({ stanza, settle: () => void (isSettled = true) });
  await fixture.server.settled();
  for (let i = 0; i < 20; i++) {
    assert.equal(isSettled, i > 8, `after ${i} pauses`);
    fixture.clock.advance(60_000);
    await fixture.server.settled();
  }
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="failed"} 1'));
});

Deno.test("subscription stanzas that the account's list denies change nothing, and are counted", async () => {
  const fixture = withAlice();
  fixture.hidden.set(ALICE, new Set([BOB]));
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  for (const type of ["subscribe", "unsubscribe", "unsubscribed"]) {
    await fixture.take(BOB, type, ALICE);
  }
  assert.equal(fixture.store.item(ALICE, BOB)?.subscription, "both");
  assert.deepEqual([fixture.routed, fixture.sent], [[], []]);
  assert.ok(await fixture.counts('causeway_subscriptions_total{outcome="blocked"} 3'));
});
