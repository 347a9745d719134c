import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { PacedWork } from "../../base/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { ALICE, BOB, CAROL, DC2, PHONE } from "./testing/alice_and_bob.ts";
import { fullJid, hidingFrom, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

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

Deno.test("a contact who is blocked while a login tells others is not told of it any more", async () => {
  const { fixture, told, useUp, onePiece, nextTurn } = inTurns(20);
  await useUp();
  fixture.sendPresence(PHONE);
  await onePiece();
  const isTold = (contact: string) => told().includes(`available: ${PHONE} → ${contact}`);
  const contacts = Array.from({ length: 20 }, (_, index) => `contact${index}@example.com`);
  // 8 of them have been told.
  const [blocked, blockedNext] = contacts.filter((each) => !isTold(each)) as [string, string];
  const views = [[], [blocked], [blocked, blockedNext]].map((hidden) => new Set(hidden));
  for (const [index, hidden] of views.entries()) {
    if (index === 0) continue;
    fixture.hidden.set(PHONE, hidden);
    fixture.server.privacyChanged(fullJid(PHONE), {
      before: hidingFrom(views[index - 1]),
      after: hidingFrom(hidden),
    });
  }
  for (let i = 0; i < 20; i++) await nextTurn();
  await fixture.server.settled();
  assert.deepEqual(contacts.filter((each) => !isTold(each)), [blocked, blockedNext]);
  const toBlocked = () =>
    told().filter((each) => each.endsWith(` ${blocked}`) || each.endsWith(` ${blockedNext}`));
  assert.deepEqual(toBlocked(), [], "nor of an end");
  fixture.sendPresence(PHONE, "unavailable");
  for (let i = 0; i < 20; i++) await nextTurn();
  await fixture.server.settled();
  assert.deepEqual(toBlocked(), []);
});

Deno.test("presence comes to contacts as their blocks say, however these change while it waits", async () => {
  const contact = "contact0@example.com";
  for (
    const [changes, expected] of [
      [["block"], []],
      [["block", "unblock"], ["available"]],
      [["block", "unblock", "block"], []],
      [["turn", "block"], ["available", "unavailable"]],
      [["end", "block"], []],
      [["block", "end"], []],
      [["turn", "block", "unblock"], ["available"]],
      [["turn", "block", "turn", "unblock"], ["available", "unavailable", "available"]],
    ] as const
  ) {
    const { fixture, told, useUp, nextTurn } = inTurns(4);
    await useUp();
    fixture.sendPresence(PHONE);
    for (const change of changes) {
      if (change === "turn") { for (let i = 0; i < 5; i++) await nextTurn(); }
      else if (change === "end") fixture.sendPresence(PHONE, "unavailable");
      else {
        const before = fixture.hidden.get(PHONE);
        const after = new Set(change === "block" ? [contact] : []);
        fixture.hidden.set(PHONE, after);
        fixture.server.privacyChanged(fullJid(PHONE), {
          before: hidingFrom(before),
          after: hidingFrom(after),
        });
      }
    }
    for (let i = 0; i < 10; i++) await nextTurn();
    await fixture.server.settled();
    const types = told().filter((each) => each.endsWith(` ${contact}`)).map((each) =>
      each.slice(0, each.indexOf(":"))
    );
    assert.deepEqual(types, expected, changes.join(", "));
  }
});

Deno.test("a contact who is blocked and unblocked while a login tells others is told of it", async () => {
  const { fixture, told, useUp, onePiece, nextTurn } = inTurns(20);
  await useUp();
  fixture.sendPresence(PHONE);
  await onePiece();
  const contacts = Array.from({ length: 20 }, (_, index) => `contact${index}@example.com`);
  const toOne = (contact: string) => told().filter((each) => each.endsWith(` ${contact}`));
  const blocked = new Set(contacts.filter((each) => toOne(each).length === 0));
  const [open, closed] = [hidingFrom(), hidingFrom(blocked)];
  fixture.hidden.set(PHONE, blocked);
  fixture.server.privacyChanged(fullJid(PHONE), { before: open, after: closed });
  await nextTurn();
  fixture.hidden.delete(PHONE);
  fixture.server.privacyChanged(fullJid(PHONE), { before: closed, after: open });
  for (let i = 0; i < 20; i++) await nextTurn();
  await fixture.server.settled();
  for (const each of contacts) {
    assert.ok(toOne(each).length >= 1, each);
    assert.ok(toOne(each).every((line) => line.startsWith("available")), each);
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
