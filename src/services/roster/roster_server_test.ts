import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { CausewayError, ManualClock, PacedWork } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import {
  buildStanza,
  CLIENT_NAMESPACE,
  element,
  parseElement,
  parseJid,
  stanzaElement,
} from "../../xmpp/mod.ts";
import { HostServices } from "../mod.ts";
import { AGAIN_PAYLOAD, partedPayload, readSignal } from "./presence_signal.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";
import { fullJid, hidingFrom, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];
const PHONE = `${ALICE}/phone`;
const DC2 = "dc2.example.com";
const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", { retryable: true });

function query(...items: readonly Record<string, string>[]) {
  return element(
    "query",
    { xmlns: ROSTER_NAMESPACE },
    ...items.map((each) => element("item", each)),
  );
}

/** alice has a phone here and a laptop at dc2. */
function withAlice(fixture = new RosterFixture()): RosterFixture {
  fixture.here.set(PHONE, undefined);
  fixture.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "laptop", process: 2 }]);
  return fixture;
}

/** The same, and bob at dc2 sees her presence. */
function withBobAtDc2(): RosterFixture {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  return fixture;
}

/** Stanzas that were sent to bob, in one line each. */
function toBob({ sent }: RosterFixture): readonly string[] {
  return lines(sent.map(({ stanza }) => stanza).filter(({ to }) => to.text === BOB));
}

Deno.test("a roster set is pushed to all sessions of the account, in every datacenter", async () => {
  const fixture = withAlice();
  assert.equal(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), "empty");
  assert.deepEqual(lines(fixture.routed).toSorted(), [
    `push ${BOB} none: ${ALICE} → ${ALICE}/laptop`,
    `push ${BOB} none: ${ALICE} → ${PHONE}`,
  ]);
  const pushes = fixture.routed.map((stanza) => stanzaElement(stanza));
  assert.equal(new Set(pushes.map((push) => push.attribute("id"))).size, 2);
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "Bob");
});

Deno.test("a push reaches only clients that have asked for the roster", async () => {
  const fixture = withAlice();
  await fixture.ask(PHONE, "set", query({ jid: BOB }));
  const push = fixture.routed.find(({ to }) => to.text === PHONE)!;
  assert.equal(fixture.server.isUnwantedPush(push), true);
  await fixture.ask(PHONE, "get", query());
  assert.equal(fixture.server.isUnwantedPush(push), false);
  fixture.server.closed(fullJid(PHONE));
  assert.equal(fixture.server.isUnwantedPush(push), true);
  const other = buildStanza(
    element("iq", { type: "set", id: "1" }, element("block", { xmlns: "urn:xmpp:blocking" })),
    { from: parseJid(ALICE), to: parseJid(PHONE) },
  );
  assert.equal(fixture.server.isUnwantedPush(other), false);
});

Deno.test("a roster at its bound takes no further contact, and changes of those in it", async () => {
  const fixture = withAlice(new RosterFixture({ maxItems: 1 }));
  await fixture.ask(PHONE, "set", query({ jid: BOB }));
  assert.deepEqual(await fixture.ask(PHONE, "set", query({ jid: CAROL })), {
    error: "resource-constraint",
  });
  assert.equal(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), "empty");
  fixture.routed.length = 0;
  await fixture.enter(PHONE, "subscribe", CAROL);
  assert.deepEqual(lines(fixture.routed), [`error: ${CAROL} → ${PHONE}`]);
  assert.equal(fixture.store.item(ALICE, CAROL), undefined);
});

Deno.test("a client that knows a version gets what has changed since, after an empty answer", async () => {
  const fixture = withAlice();
  for (const jid of [BOB, CAROL]) fixture.store.put(ALICE, item(jid));
  const get = (ver: string) =>
    fixture.ask(PHONE, "get", element("query", { xmlns: ROSTER_NAMESPACE, ver }));
  assert.equal(await get("2"), "empty");
  assert.equal(await get("1"), "empty");
  assert.deepEqual(fixture.routed, [], "the result goes first");
  fixture.clock.advance(1);
  assert.deepEqual(lines(fixture.routed), [`push ${CAROL} none: ${ALICE} → ${PHONE}`]);
  const whole = await get("7");
  assert.ok(typeof whole === "object" && "written" in whole);
  const roster = parseElement(new TextEncoder().encode(whole.written), CLIENT_NAMESPACE);
  assert.equal(roster.attribute("ver"), "2");
  assert.equal(roster.elements.length, 2);
});

/** Delivers the pushes that were routed to alice's phone; returns those that its client gets. */
function delivered(fixture: RosterFixture): readonly string[] {
  const pushes = fixture.routed.splice(0).filter(({ to }) => to.text === PHONE);
  return lines(pushes.filter((push) => !fixture.server.takes(push)));
}

Deno.test("a roster answer is not older than a push that its client got before it", async () => {
  const gate = Promise.withResolvers<void>();
  let pieces = 0;
  const paced = new PacedWork();
  const fixture = withAlice(
    new RosterFixture({
      paced: {
        run: async <T>(piece: () => T | Promise<T>) => {
          if (++pieces === 2) await gate.promise; // between the read and the answer
          return await paced.run(piece);
        },
        task: () => paced.task(),
      },
    }),
  );
  fixture.store.put(ALICE, item(BOB, { isAsking: true }));
  const asked = fixture.ask(PHONE, "get", query());
  while (pieces < 2) await immediately();
  await fixture.take(BOB, "subscribed", ALICE);
  assert.ok(delivered(fixture).includes(`push ${BOB} to: ${ALICE} → ${PHONE}`));
  gate.resolve();
  const answer = await asked;
  assert.ok(typeof answer === "object" && "written" in answer);
  assert.match(answer.written, /subscription='to'/);
  assert.doesNotMatch(answer.written, /ask=/);
  assert.equal(pieces, 3);
});

Deno.test("a roster is read a few times at the most while its client gets pushes", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB));
  await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
  const push = fixture.routed.find(({ to }) => to.text === PHONE)!;
  const { store } = fixture;
  const read = store.read.bind(store);
  let reads = 0;
  store.read = async (owner) => {
    reads++;
    const roster = await read(owner);
    assert.equal(fixture.server.takes(push), false);
    return roster;
  };
  const answer = await fixture.ask(PHONE, "get", query());
  assert.ok(typeof answer === "object" && "written" in answer);
  assert.equal(reads, 5);
});

Deno.test("a client that knows a version keeps the push that came between answer and older changes", async () => {
  const fixture = withAlice();
  for (const jid of [BOB, CAROL]) fixture.store.put(ALICE, item(jid, { isAsking: true }));
  const known = element("query", { xmlns: ROSTER_NAMESPACE, ver: "0" });
  assert.equal(await fixture.ask(PHONE, "get", known), "empty");
  await fixture.take(BOB, "subscribed", ALICE);
  assert.ok(delivered(fixture).includes(`push ${BOB} to: ${ALICE} → ${PHONE}`));
  fixture.clock.advance(1);
  assert.deepEqual(delivered(fixture), [`push ${CAROL} none: ${ALICE} → ${PHONE}`]);
});

Deno.test("an item that was never there cannot be removed", async () => {
  const fixture = withAlice();
  const remove = query({ jid: BOB, subscription: "remove" });
  assert.deepEqual(await fixture.ask(PHONE, "set", remove), { error: "item-not-found" });
  fixture.store.put(ALICE, item(BOB, { isListed: false, request: new Uint8Array(1) }));
  assert.deepEqual(await fixture.ask(PHONE, "set", remove), { error: "item-not-found" });
});

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

Deno.test("a change is applied to what another node has written meanwhile", async () => {
  const fixture = withAlice();
  let races = 3;
  fixture.store.beforeWrite = () => {
    if (races-- > 0) fixture.store.put(ALICE, item(CAROL, { name: `${races}` }));
  };
  const asked = fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
  for (let i = 0; i < 50; i++) {
    await Promise.resolve();
    fixture.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.equal(await asked, "empty");
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "Bob");
  assert.equal(fixture.store.item(ALICE, CAROL)?.name, "0");
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

Deno.test("a request without an answer is repeated at each login", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { isAsking: true }));
  await fixture.changePresence(PHONE);
  assert.deepEqual(lines(fixture.routed), [`subscribe: ${ALICE} → ${BOB}`]);
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

Deno.test("very many logins at once leave the database room for others, and all are told", async () => {
  const fixture = new RosterFixture();
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.store.answersAfter = promise;
  for (let i = 0; i < 2000; i++) {
    fixture.store.put(`user${i}@example.com`, item(BOB, { subscription: "from" }));
    fixture.sendPresence(`user${i}@example.com/x`);
  }
  assert.ok(fixture.store.calls.length <= 200, `${fixture.store.calls.length} queries at once`);
  resolve();
  await fixture.server.settled();
  assert.equal(fixture.sent.filter(({ stanza }) => stanza.to.text === BOB).length, 2000);
});

/** Paced work that waits while the loop is busy with something else. */
class BusyPace {
  isBusy = false;
  readonly waiting: (() => void)[] = [];
  readonly #paced = new PacedWork();

  async run<T>(piece: () => T | Promise<T>): Promise<T> {
    if (this.isBusy) await new Promise<void>((resolve) => void this.waiting.push(resolve));
    return await this.#paced.run(piece);
  }

  task(): this {
    return this;
  }
}

Deno.test("what others do does not wait for the first presences of very many sessions", async () => {
  const pace = new BusyPace();
  const { waiting } = pace;
  const fixture = new RosterFixture({ paced: pace });
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(CAROL, item(ALICE, { request: new Uint8Array(1) }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  pace.isBusy = true;
  for (let i = 0; i < 500; i++) fixture.sendPresence(`user${i}@example.com/x`);
  fixture.sendPresence(PHONE, undefined, "away");
  fixture.sendPresence(`${ALICE}/tablet`);
  const fate = { settle: () => {} };
  const stanza = buildStanza(element("presence", { type: "subscribed" }), {
    from: parseJid(CAROL),
    to: parseJid(ALICE),
  });
  fixture.server.entered(stanza, parseJid(`${CAROL}/x`), fate, 1);
  await new Promise((resolve) => setTimeout(resolve));
  const toBob = () =>
    lines(fixture.sent.map(({ stanza }) => stanza)).filter((each) => each.endsWith(BOB));
  assert.deepEqual(toBob(), [`available: ${PHONE} → ${BOB}`]);
  assert.equal(fixture.store.item(CAROL, ALICE)?.subscription, "from");
  assert.equal(waiting.length, 200);
  fixture.sendPresence(PHONE, "unavailable");
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(toBob().at(-1), `unavailable: ${PHONE} → ${BOB}`);
  pace.isBusy = false;
  for (const go of waiting) go();
  await fixture.server.settled();
  assert.ok(toBob().includes(`available: ${ALICE}/tablet → ${BOB}`));
});

Deno.test("what others do does not wait for presence that goes to many contacts each", async () => {
  const pace = new BusyPace();
  const { waiting } = pace;
  const fixture = new RosterFixture({ paced: pace });
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(CAROL, item(ALICE, { request: new Uint8Array(1) }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  const contacts = Array.from({ length: 9 }, (_, index) => `contact${index}@example.com`);
  for (const contact of contacts) {
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  const users = Array.from({ length: 240 }, (_, index) => `user${index}@example.com`);
  for (const [index, user] of users.entries()) {
    for (const each of contacts) fixture.store.put(user, item(each, { subscription: "from" }));
    if (index % 2 === 0) fixture.sendPresence(`${user}/x`);
    else fixture.arrive(`${user}/x`, false); // from another node
  }
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  pace.isBusy = true;
  for (const [index, user] of users.entries()) {
    fixture.sendPresence(`${user}/x`, index % 4 < 2 ? "unavailable" : undefined);
  }
  fixture.sendPresence(PHONE, undefined, "away");
  const stanza = buildStanza(element("presence", { type: "subscribed" }), {
    from: parseJid(CAROL),
    to: parseJid(ALICE),
  });
  fixture.server.entered(stanza, parseJid(`${CAROL}/x`), { settle: () => {} }, 1);
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(waiting.length, 100);
  assert.equal(fixture.store.item(CAROL, ALICE)?.subscription, "from");
  const told = () => lines(fixture.sent.map(({ stanza }) => stanza));
  assert.ok(told().includes(`available: ${PHONE} → ${BOB}`));
  pace.isBusy = false;
  for (const go of waiting) go();
  await fixture.server.settled();
  assert.equal(told().filter((line) => line.includes("contact")).length, 240 * 9);
  fixture.server.close();
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

Deno.test("nothing is remembered of a client that asks for the roster and is not here", async () => {
  const fixture = withAlice();
  await fixture.ask(`${ALICE}/elsewhere`, "get", query());
  await fixture.ask(PHONE, "get", query());
  const push = (to: string) =>
    buildStanza(element("iq", { type: "set", id: "1" }, query()), {
      from: parseJid(ALICE),
      to: parseJid(to),
    });
  assert.equal(fixture.server.isUnwantedPush(push(PHONE)), false);
  assert.equal(fixture.server.isUnwantedPush(push(`${ALICE}/elsewhere`)), true);
});

Deno.test("the changes of one client are made in their order, however slow the first one is", async () => {
  const fixture = withAlice();
  const services = new HostServices({
    software: { name: "test", version: "1" },
    publicDomains: () => Promise.resolve([]),
    reply: () => {},
    metrics: new MetricsRegistry(new ManualClock()),
    services: fixture.server.services,
  });
  const client = parseJid(PHONE);
  const set = (name: string) => {
    const iq = element("iq", { type: "set", id: name }, query({ jid: BOB, name }));
    assert.equal(services.handle(buildStanza(iq, { from: client, to: client.bare })), "delivered");
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.store.answersAfter = promise;
  set("first");
  fixture.store.answersAfter = undefined;
  set("second");
  await new Promise((done) => setTimeout(done));
  resolve();
  await services.close();
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "second");
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

Deno.test("a later presence reads no kept requests, and a probe one item alone", async () => {
  const fixture = withAlice();
  await fixture.changePresence(PHONE);
  fixture.store.calls.length = 0;
  await fixture.changePresence(PHONE);
  await fixture.take(BOB, "probe", ALICE);
  assert.deepEqual(fixture.store.calls, ["contacts", "subscription"]);
});

Deno.test("a datacenter that is back costs one query for each account, and hears of all sessions", async () => {
  const fixture = withAlice();
  const clients = Array.from({ length: 5 }, (_, i) => `${ALICE}/${i}`);
  for (const client of [...clients, `${BOB}/x`]) await fixture.changePresence(client);
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "y", process: 2 }]);
  fixture.server.start();
  const look = async () => {
    fixture.clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve));
    await fixture.server.settled();
  };
  await look();
  fixture.sent.length = fixture.store.calls.length = 0;
  fixture.live.set(DC2, new Set([2]));
  await look();
  fixture.server.close();
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(toBob.map(({ stanza }) => stanza.from.text), [...clients, `${BOB}/x`]);
  assert.deepEqual(fixture.store.calls, ["contacts", "contacts"]);
});

Deno.test("a datacenter that is back hears of sixteen accounts at once, and a second time beside the first", async () => {
  const time = new ManualClock();
  const paced = new PacedWork({
    nowMs: () => time.monotonicMs(),
    after: (delayMs, callback) => time.after(delayMs, callback),
  });
  const fixture = new RosterFixture({ paced });
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "y", process: 2 }]);
  for (let i = 0; i < 40; i++) {
    fixture.store.put(`user${i}@example.com`, item(BOB, { subscription: "from" }));
    fixture.arrive(`user${i}@example.com/x`, false);
  }
  fixture.server.start();
  const look = async () => {
    fixture.clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve));
    time.advance(25); // what waits for the database no longer counts as under way
  };
  await look();
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.store.answersAfter = promise;
  fixture.live.set(DC2, new Set([2]));
  for (let i = 0; i < 8; i++) await look();
  assert.equal(fixture.store.calls.length, 16, "although it was announced again");
  resolve();
  await fixture.server.settled();
  fixture.server.close();
  const told = fixture.sent.map(({ stanza }) => stanza.from.text);
  assert.equal(told.length, 16 + 40, "those who were first are told again, and no others");
  assert.equal(new Set(told.slice(16)).size, 40);
});

Deno.test("an account that is deleted leaves its contacts, who are told of it first", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.store.put(ALICE, item(CAROL, { isAsking: true }));
  fixture.store.put(CAROL, item(ALICE, { request: new Uint8Array(1), isListed: false }));
  fixture.store.put(ALICE, item("dave@elsewhere.example", { subscription: "to" }));
  fixture.here.set(`${BOB}/x`, undefined);
  await fixture.changePresence(PHONE);
  fixture.routed.length = fixture.sent.length = 0;
  await fixture.server.leave(parseJid(ALICE));
  await fixture.server.settled();
  const { subscription, isAsking } = fixture.store.item(BOB, ALICE)!;
  assert.deepEqual([subscription, isAsking], ["none", false]);
  assert.equal(fixture.store.item(CAROL, ALICE)?.request, undefined, "her request is taken back");
  const told = lines(fixture.routed);
  for (
    const line of [
      `push ${ALICE} from: ${BOB} → ${BOB}/x`,
      `unsubscribed: ${ALICE} → ${BOB}/x`,
      `push ${ALICE} none: ${BOB} → ${BOB}/x`,
      `unsubscribe: ${ALICE} → ${BOB}/x`,
      `unsubscribe: ${ALICE} → dave@elsewhere.example`,
    ]
  ) assert.ok(told.includes(line), `${line} of\n${told.join("\n")}`);
  const presences = lines(fixture.sent.map(({ stanza }) => stanza));
  assert.ok(presences.includes(`unavailable: ${PHONE} → ${BOB}`), presences.join());
});

Deno.test("an account is not left while the database fails", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.failure = DOWN;
  await assert.rejects(fixture.server.leave(parseJid(ALICE)), { code: "storage/unreachable" });
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

Deno.test("presence does not go to contacts from whom a list hides the session, nor comes from them", async () => {
  const fixture = withAlice();
  for (const contact of [BOB, CAROL]) {
    fixture.store.put(ALICE, item(contact, { subscription: "both", isAsking: contact === BOB }));
    fixture.store.put(contact, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  fixture.hidden.set(PHONE, new Set([BOB]));
  const toContacts = () =>
    lines(fixture.sent.splice(0).map(({ stanza }) => stanza)).filter((line) =>
      !line.endsWith(ALICE)
    );
  await fixture.changePresence(PHONE);
  assert.deepEqual(toContacts(), [`available: ${PHONE} → ${CAROL}`, `probe: ${PHONE} → ${CAROL}`]);
  assert.deepEqual(fixture.routed, [], "nor is a request repeated");
  const probe = (from: string) =>
    buildStanza(element("presence", { type: "probe" }), {
      from: parseJid(from),
      to: parseJid(ALICE),
    });
  for (const from of [`${BOB}/x`, `${CAROL}/x`]) fixture.server.probed(probe(from));
  assert.deepEqual(lines(fixture.routed), [`available: ${PHONE} → ${CAROL}/x`]);
  await fixture.changePresence(PHONE, "unavailable");
  assert.deepEqual(toContacts(), [`unavailable: ${PHONE} → ${CAROL}`]);
});

Deno.test("contacts and the client are told what a change of a list means for presence", async () => {
  const fixture = withAlice();
  const [DAN, EVE] = ["dan@example.com", "eve@example.com"];
  for (const contact of [BOB, CAROL, DAN]) {
    fixture.store.put(ALICE, item(contact, { subscription: "both" }));
    fixture.store.put(contact, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  await fixture.changePresence(PHONE);
  fixture.heard(`${BOB}/x`, ALICE);
  fixture.sent.length = 0;
  fixture.directed.push(parseJid(`${EVE}/x`), parseJid(`${DAN}/x`));
  const [earlier, later] = [new Set([CAROL]), new Set([BOB, EVE])];
  fixture.hidden.set(PHONE, later);
  const change = { before: hidingFrom(earlier), after: hidingFrom(later) };
  fixture.server.privacyChanged(fullJid(PHONE), change);
  await fixture.server.settled();
  assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), [
    `unavailable: ${PHONE} → ${BOB}`,
    `available: ${PHONE} → ${CAROL}`,
    `probe: ${PHONE} → ${CAROL}`,
  ]);
  assert.deepEqual(lines(fixture.delivered.map(({ stanza }) => stanza)), [
    `unavailable: ${BOB}/x → ${PHONE}`,
  ]);
  assert.deepEqual(lines(fixture.routed), [`unavailable: ${PHONE} → ${EVE}/x`]);
  fixture.sent.length = 0;
  fixture.server.privacyChanged(fullJid(`${ALICE}/gone`), change);
  await fixture.server.settled();
  assert.deepEqual(fixture.sent, []);
});

/** Has alice's phone block bob and carol, and returns the presences that its client gets. */
async function takenLeave(fixture: RosterFixture): Promise<string[]> {
  for (const contact of [BOB, CAROL]) {
    fixture.store.put(ALICE, item(contact, { subscription: "both" }));
    fixture.store.put(contact, item(ALICE, { subscription: "both" }));
  }
  await fixture.changePresence(PHONE);
  fixture.delivered.length = 0;
  const blocked = new Set([BOB, CAROL]);
  fixture.hidden.set(PHONE, blocked);
  fixture.server.privacyChanged(fullJid(PHONE), {
    before: hidingFrom(),
    after: hidingFrom(blocked),
  });
  fixture.heard(`${CAROL}/seen`, ALICE, "unavailable"); // the new list keeps it out
  await fixture.server.settled();
  return lines(fixture.delivered.map(({ stanza }) => stanza)).toSorted();
}

Deno.test("a client that blocks contacts hears nothing of sessions elsewhere that it was not told of", async () => {
  const fixture = withAlice();
  // bob blocks alice, or has sent no presence: his sessions are in the table alone.
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.elsewhere.set(CAROL, [
    { host: DC2, resourcepart: "seen", process: 2 },
    { host: DC2, resourcepart: "idle", process: 2 },
    { host: DC2, resourcepart: "gone", process: 2 },
    { host: DC2, resourcepart: "answered", process: 2 },
    { host: DC2, resourcepart: "other", process: 2 },
  ]);
  fixture.here.set(`${ALICE}/tablet`, undefined);
  fixture.heard(`${CAROL}/seen`, ALICE);
  fixture.heard(`${CAROL}/gone`, ALICE);
  fixture.heard(`${CAROL}/gone`, ALICE, "unavailable");
  fixture.heard(`${CAROL}/answered`, PHONE);
  fixture.heard(`${CAROL}/other`, `${ALICE}/tablet`);
  assert.deepEqual(await takenLeave(fixture), [
    `unavailable: ${CAROL}/answered → ${PHONE}`,
    `unavailable: ${CAROL}/seen → ${PHONE}`,
  ]);
});

Deno.test("a client that blocks contacts hears nothing of sessions at its node that hide from it", async () => {
  for (const isHidden of [true, false]) {
    const fixture = withAlice();
    await fixture.changePresence(`${BOB}/x`);
    fixture.here.set(`${BOB}/idle`, undefined);
    if (isHidden) fixture.hidden.set(`${BOB}/x`, new Set([ALICE]));
    const leave = isHidden ? [] : [`unavailable: ${BOB}/x → ${PHONE}`];
    assert.deepEqual(await takenLeave(fixture), leave);
  }
});

Deno.test("a client that blocks a contact hears the end of directed presence from its own node", async () => {
  for (const isHidden of [true, false]) {
    const fixture = withAlice();
    fixture.here.set(`${BOB}/idle`, undefined);
    fixture.directed.push(parseJid(PHONE));
    if (isHidden) fixture.hidden.set(`${BOB}/idle`, new Set([ALICE]));
    const leave = isHidden ? [] : [`unavailable: ${BOB}/idle → ${PHONE}`];
    assert.deepEqual(await takenLeave(fixture), leave);
  }
});

Deno.test("a client that blocks a contact whose roster does not show them hears nothing", async () => {
  const fixture = withAlice();
  await fixture.changePresence(`${BOB}/x`);
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "none" }));
  await fixture.changePresence(PHONE);
  fixture.delivered.length = 0;
  const change = { before: hidingFrom(), after: hidingFrom(new Set([BOB])) };
  fixture.server.privacyChanged(fullJid(PHONE), change);
  await fixture.server.settled();
  assert.deepEqual(fixture.delivered, []);
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

/** Returns the requests that were routed to the node of alice's tablet at dc2. */
function signalsOf(fixture: RosterFixture): Stanza[] {
  return fixture.routed.filter((stanza) =>
    stanza.to.text === `${ALICE}/tablet` && readSignal(stanza) !== undefined
  );
}

Deno.test("a contact who is removed hears nothing of sessions that are not available or hidden", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "tablet", process: 2 }]);
  fixture.here.set(`${ALICE}/idle`, undefined);
  await fixture.changePresence(PHONE);
  const unavailable = async () => {
    fixture.sent.length = fixture.routed.length = 0;
    fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
    await fixture.enter(PHONE, "unsubscribed", BOB);
    assert.equal(signalsOf(fixture).length, 1, "the tablet's node tells of the tablet");
    return lines(fixture.sent.map(({ stanza }) => stanza)).filter((line) => line.endsWith(BOB));
  };
  assert.deepEqual(await unavailable(), [`unavailable: ${PHONE} → ${BOB}`]);
  fixture.hidden.set(PHONE, new Set([BOB]));
  assert.deepEqual(await unavailable(), []);
});

Deno.test("a node that is told of the end of a subscription ends the presence of its own session", async () => {
  const asking = withAlice();
  asking.store.put(ALICE, item(BOB, { subscription: "from" }));
  asking.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "tablet", process: 2 }]);
  await asking.enter(PHONE, "unsubscribed", BOB);
  const [signal] = signalsOf(asking);
  for (const state of ["available", "not available", "hidden", "gone"]) {
    const fixture = new RosterFixture();
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    await fixture.changePresence(PHONE);
    if (state !== "gone") fixture.here.set(`${ALICE}/tablet`, undefined);
    if (state === "hidden") fixture.hidden.set(`${ALICE}/tablet`, new Set([BOB]));
    if (state === "available" || state === "hidden") {
      await fixture.changePresence(`${ALICE}/tablet`);
    }
    fixture.sent.length = 0;
    // Its client does not get it. If it has moved, the request goes on to its new node.
    assert.equal(fixture.server.takes(signal!), state !== "gone");
    await immediately();
    const expected = state === "available" ? [`unavailable: ${ALICE}/tablet → ${BOB}`] : [];
    assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), expected, state);
  }
});

Deno.test("a node sends directed presence again to those who ask for their own, unless a list hides it", () => {
  const fixture = withAlice();
  const ask = (session: string) => {
    const iq = element("iq", { type: "set", id: "1" });
    const addresses = { from: parseJid(BOB), to: parseJid(session) };
    return fixture.server.takes(buildStanza(iq, { ...addresses, content: AGAIN_PAYLOAD }));
  };
  assert.equal(ask(PHONE), true);
  assert.equal(ask(`${ALICE}/gone`), false);
  assert.deepEqual(fixture.repeated, [`${PHONE} ${BOB}`]);
  fixture.hidden.set(PHONE, new Set([BOB]));
  assert.equal(ask(PHONE), true);
  assert.equal(fixture.repeated.length, 1);
});

Deno.test("directed presence of people without rosters here is not asked for", async () => {
  const fixture = withAlice();
  const resources = [`${BOB}/x`, "echo.example.org/x"];
  for (const from of resources) fixture.heard(from, PHONE);
  await fixture.cutOff(DC2, 2);
  const asked = fixture.routed.filter((stanza) => readSignal(stanza)?.kind === "again");
  assert.deepEqual(lines(asked), [`set: ${ALICE} → ${BOB}/x`]);
});

Deno.test("only a session's own account tells its node of the end of a subscription", () => {
  const [bob, phone] = [parseJid(BOB), parseJid(PHONE)];
  const payload = partedPayload(parseJid(CAROL));
  const ask = (from: Jid, to: Jid, content = payload) => {
    const iq = element("iq", { type: "set", id: "1" });
    const { kind, contact } = readSignal(buildStanza(iq, { from, to, content })) ?? {};
    return kind && `${kind} ${contact!.text}`;
  };
  assert.equal(ask(phone.bare, phone), `parted ${CAROL}`);
  assert.equal(ask(bob, phone, AGAIN_PAYLOAD), `again ${BOB}`);
  assert.equal(ask(parseJid(`${BOB}/x`), phone, AGAIN_PAYLOAD), undefined, "a client");
  assert.equal(ask(phone.bare, phone, AGAIN_PAYLOAD), undefined);
  assert.equal(ask(phone, phone), undefined, "a client");
  assert.equal(ask(bob, phone), undefined);
  assert.equal(ask(phone.bare, phone.bare), undefined);
  assert.equal(ask(phone.bare, phone, payload.replace(CAROL, "@")), undefined);
  assert.equal(ask(phone.bare, phone, payload.replaceAll("parted", "other")), undefined);
  assert.equal(ask(phone.bare, phone, payload.replace("causeway", "other")), undefined);
});

Deno.test("a contact whose subscription ends while a login waits to be told hears no more of it", async () => {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const paced = new PacedWork({
    sliceMs: 1,
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
  });
  const fixture = new RosterFixture({ paced });
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "to" }));
  fixture.elsewhere.set(BOB, [{ host: "dc2.example.com", resourcepart: "x", process: 2 }]);
  await paced.run(() => void (nowMs += 5)); // this turn has no time left
  fixture.sendPresence(PHONE);
  while (paced.waiting() === 0) await immediately();
  void fixture.enter(PHONE, "unsubscribed", BOB);
  const told = () => lines([...fixture.routed, ...fixture.sent.map(({ stanza }) => stanza)]);
  while (!told().some((line) => line.startsWith("unsubscribed:"))) await immediately();
  while (turns.length > 0) turns.shift()!();
  await fixture.server.settled();
  assert.ok(!told().some((line) => line.startsWith("available:") && line.includes("bob")));
});

Deno.test("contacts of all sessions of a node that stops hear of their ends although the loop is busy", async () => {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const paced = new PacedWork({
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
    after: () => () => {},
  });
  const longTurn = async () => {
    nowMs += 5;
    for (let i = 0; i < 20; i++) await immediately();
    turns.shift()?.();
  };
  const fixture = new RosterFixture({ paced });
  const contacts = Array.from({ length: 20 }, (_, index) => `contact${index}@example.com`);
  for (const contact of contacts) {
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  const users = Array.from({ length: 30 }, (_, index) => `user${index}@example.com`);
  for (const user of users) {
    for (const contact of contacts) {
      fixture.store.put(user, item(contact, { subscription: "from" }));
    }
    fixture.here.set(`${user}/x`, undefined);
    fixture.server.arrived(fullJid(`${user}/x`), { isAvailable: true, isNew: false });
  }
  void paced.run(() => void (nowMs += 5));
  await longTurn();
  for (let piece = 0; piece < 1_000; piece++) void paced.run(() => void (nowMs += 0.5));
  paced.hurry();
  for (const user of users) {
    fixture.sendPresence(`${user}/x`, "unavailable");
    fixture.server.closed(fullJid(`${user}/x`));
  }
  const startMs = nowMs;
  while (fixture.sent.length < 30 * 20 && nowMs < startMs + 10_000) await longTurn();
  assert.ok(nowMs - startMs < 700, `${nowMs - startMs} ms`);
});

/** A roster server whose paced work is done in turns that the test makes. */
function inTurns(contacts: number) {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const paced = new PacedWork({
    sliceMs: 1,
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
    after: () => () => {},
  });
  const fixture = new RosterFixture({ paced, maxItems: 50 });
  for (let i = 0; i < contacts; i++) {
    const contact = `contact${i}@example.com`;
    fixture.store.put(ALICE, item(contact, { subscription: "from" }));
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  return {
    fixture,
    told: () => lines(fixture.sent.map(({ stanza }) => stanza)),
    /** Adds pieces of others' logins. */
    storm: (count: number) => {
      nowMs += 0.01;
      for (let i = 0; i < count; i++) void paced.run(() => void (nowMs += 0.5));
    },
    /** Leaves this turn no time for anything else, and lets promises settle. */
    useUp: async () => {
      void paced.run(() => void (nowMs += 1));
      for (let i = 0; i < 20; i++) await immediately();
    },
    nextTurn: async () => {
      turns.shift()?.();
      for (let i = 0; i < 20; i++) await immediately();
    },
    /** Does pieces of paced work, one in each turn, until one sends something or there were `most`. */
    onePiece: async (most = 10) => {
      const before = fixture.sent.length;
      for (let i = 0; i < most && fixture.sent.length === before; i++) {
        void paced.run(() => void (nowMs += 1)); // whatever comes next waits for another turn
        turns.shift()?.();
        for (let k = 0; k < 20; k++) await immediately();
      }
    },
  };
}

Deno.test("a later presence does not wait for its turn if it goes to few contacts", async () => {
  for (const contacts of [8, 9]) {
    const { fixture, told, useUp, nextTurn } = inTurns(contacts);
    fixture.arrive(PHONE, false);
    await useUp();
    fixture.sendPresence(PHONE);
    fixture.sendPresence(`${ALICE}/new`);
    for (let i = 0; i < 20; i++) await immediately();
    assert.equal(told().length, contacts === 8 ? 8 : 0);
    assert.ok(!told().some((line) => line.includes("/new")), "the first presence of a session");
    await nextTurn();
    await fixture.server.settled();
    assert.equal(told().filter((line) => line.includes(PHONE)).length, contacts);
  }
});

Deno.test("a later presence for many contacts does not wait for the logins that come behind it", async () => {
  for (const type of [undefined, "unavailable"] as const) {
    const { fixture, told, storm, useUp, nextTurn } = inTurns(40);
    fixture.arrive(PHONE, false);
    await useUp();
    fixture.sendPresence(PHONE, type);
    for (let i = 0; i < 20; i++) await immediately();
    assert.deepEqual(told(), []);
    storm(1_000);
    let turns = 0;
    while (told().filter((line) => line.includes("contact")).length < 40) {
      await nextTurn();
      storm(4); // of which a turn does two
      assert.ok(++turns <= 10, `${told().length} contacts told in ${turns} turns`);
    }
  }
});

Deno.test("presence of a session that moves while its contacts are told is sent by its new node", async () => {
  for (const ends of [false, true]) {
    const { fixture, told, useUp, onePiece, nextTurn } = inTurns(20);
    await useUp();
    fixture.sendPresence(PHONE);
    await onePiece();
    assert.equal(told().length, 8);
    assert.ok(fixture.server.isTelling(fullJid(PHONE)));
    if (ends) fixture.sendPresence(PHONE, "unavailable");
    fixture.here.delete(PHONE);
    fixture.server.closed(fullJid(PHONE));
    for (let i = 0; i < 20; i++) await nextTurn();
    await fixture.server.settled();
    assert.ok(!fixture.server.isTelling(fullJid(PHONE)));
    const count = (type: string) => told().filter((line) => line.startsWith(type)).length;
    assert.deepEqual([count("available"), count("unavailable")], ends ? [20, 20] : [8, 0]);
  }
});

Deno.test("a session that moves and comes back while its contacts are told is known to all of them", async () => {
  for (const isSlow of [false, true]) {
    const { fixture, told, useUp, onePiece, nextTurn } = inTurns(20);
    await useUp();
    fixture.sendPresence(PHONE);
    await onePiece();
    assert.equal(told().length, 8);
    fixture.here.delete(PHONE);
    fixture.server.closed(fullJid(PHONE));
    if (isSlow) await onePiece(1);
    fixture.arrive(PHONE, true);
    for (let i = 0; i < 20; i++) await nextTurn();
    fixture.clock.advance(5_000);
    for (let i = 0; i < 20; i++) await nextTurn();
    await fixture.server.settled();
    fixture.server.close();
    const available = told().filter((line) => line.startsWith("available"));
    assert.equal(new Set(available).size, 20, available.join("\n"));
  }
});

Deno.test("a login tells many contacts a few at a time", async () => {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const paced = new PacedWork({
    sliceMs: 1,
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
  });
  const fixture = new RosterFixture({ paced, maxItems: 30 });
  const contacts = Array.from({ length: 20 }, (_, index) => `contact${index}@example.com`);
  for (const contact of contacts) {
    fixture.store.put(ALICE, item(contact, { subscription: "from" }));
    fixture.elsewhere.set(contact, [{ host: "dc2.example.com", resourcepart: "x", process: 2 }]);
  }
  fixture.store.put(ALICE, item("offline@example.com", { subscription: "from" }));
  fixture.sendPresence(PHONE);
  let isSettled = false;
  void fixture.server.settled().then(() => isSettled = true);
  const perTurn: number[] = [];
  for (let before = 0; !isSettled; before = fixture.sent.length) {
    await paced.run(() => void (nowMs += 1)); // whatever comes next waits for another turn
    for (let i = 0; i < 50 && paced.waiting() === 0; i++) await immediately();
    turns.shift()?.();
    if (fixture.sent.length > before) perTurn.push(fixture.sent.length - before);
  }
  assert.deepEqual(perTurn, [8, 8, 4]);
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
