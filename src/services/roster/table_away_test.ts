import assert from "node:assert/strict";
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
import type { RosterFixture } from "./testing/roster_fixture.ts";
import { fullJid, hidingFrom, item } from "./testing/roster_fixture.ts";

/** Milliseconds after which every pause between two attempts is over, and a second look is due. */
const LATER_MS = 60_000;

/** Presence that bob is sent once the session table tells again where he is. */
async function onceItTells(fixture: RosterFixture): Promise<readonly string[]> {
  fixture.isTableAway = false;
  fixture.sent.length = 0;
  await later(fixture);
  return toBob(fixture);
}

async function later(fixture: RosterFixture): Promise<void> {
  fixture.clock.advance(LATER_MS);
  await fixture.server.settled();
}

Deno.test("contacts elsewhere hear of a presence's end that came while the session table was away", async () => {
  for (const hasDatabase of [true, false]) {
    const fixture = withBobAtDc2();
    await fixture.changePresence(PHONE);
    fixture.sent.length = 0;
    fixture.isTableAway = true;
    if (!hasDatabase) fixture.store.failure = DOWN;
    await fixture.changePresence(PHONE, "unavailable");
    fixture.server.closed(fullJid(PHONE));
    await later(fixture);
    assert.deepEqual(toBob(fixture), [], "nobody knows where bob is");
    assert.deepEqual(await onceItTells(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
    fixture.store.failure = undefined;
    assert.equal(
      (await onceItTells(fixture)).length,
      hasDatabase ? 0 : 1,
      "contacts are read then",
    );
    assert.deepEqual(await onceItTells(fixture), []);
  }
});

Deno.test("contacts elsewhere hear of a presence that came while the session table was away", async () => {
  const fixture = withBobAtDc2();
  fixture.store.put(ALICE, item(CAROL, { subscription: "from" }));
  fixture.here.set(`${CAROL}/x`, undefined);
  await fixture.changePresence(PHONE);
  fixture.store.put(ALICE, item(BOB, { subscription: "none" })); // as another node did
  fixture.sent.length = 0;
  fixture.isTableAway = true;
  await fixture.changePresence(PHONE);
  for (let i = 0; i < 3; i++) await later(fixture);
  const toCarol = fixture.sent.filter(({ stanza }) => stanza.to.text === CAROL);
  assert.equal(toCarol.length, 1, "carol is at this node");
  assert.deepEqual(await onceItTells(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
  assert.deepEqual(await onceItTells(fixture), []);
});

Deno.test("a client that logs in while the session table is away is told and asks once it is back", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.isTableAway = true;
  await fixture.changePresence(PHONE);
  for (let i = 0; i < 3; i++) await later(fixture);
  assert.deepEqual(toBob(fixture), []);
  const told = new Set(await onceItTells(fixture));
  assert.deepEqual(told, new Set([`available: ${PHONE} → ${BOB}`, `probe: ${PHONE} → ${BOB}`]));
  assert.deepEqual(await onceItTells(fixture), []);
});

Deno.test("a session that ends while the session table is away is not looked for again", async () => {
  const fixture = withBobAtDc2();
  fixture.isTableAway = true;
  await fixture.changePresence(PHONE);
  await later(fixture);
  await fixture.changePresence(PHONE, "unavailable");
  fixture.server.closed(fullJid(PHONE));
  fixture.here.delete(PHONE);
  await fixture.server.settled();
  assert.deepEqual(await onceItTells(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
  const { length } = fixture.lookups;
  await later(fixture);
  assert.equal(fixture.lookups.length, length);
});

Deno.test("a contact who lost its subscription or was blocked while the session table was away hears the end later", async () => {
  for (const way of ["subscription", "list"] as const) {
    const fixture = withBobAtDc2();
    await fixture.changePresence(PHONE);
    fixture.sent.length = 0;
    fixture.isTableAway = true;
    if (way === "subscription") await fixture.enter(PHONE, "unsubscribed", BOB);
    else {
      const blocked = new Set([BOB]);
      fixture.hidden.set(PHONE, blocked);
      const change = { before: hidingFrom(), after: hidingFrom(blocked) };
      fixture.server.privacyChanged(fullJid(PHONE), change);
      await fixture.server.settled();
    }
    assert.deepEqual(toBob(fixture), []);
    fixture.isTableAway = false;
    await fixture.changePresence(PHONE);
    assert.deepEqual(toBob(fixture), [`unavailable: ${PHONE} → ${BOB}`], way);
    await fixture.changePresence(PHONE, "unavailable");
    assert.equal(toBob(fixture).length, 1, "once");
    fixture.server.close();
  }
});

Deno.test("a contact who was blocked before the end of a presence could be told hears that end with the next one", async () => {
  for (const type of [undefined, "unavailable"] as const) {
    const fixture = withBobAtDc2();
    await fixture.changePresence(PHONE);
    fixture.isTableAway = true;
    await fixture.changePresence(PHONE, "unavailable");
    fixture.sent.length = 0;
    const blocked = new Set([BOB]);
    fixture.hidden.set(PHONE, blocked);
    fixture.server.privacyChanged(fullJid(PHONE), {
      before: hidingFrom(),
      after: hidingFrom(blocked),
    });
    await fixture.changePresence(PHONE);
    if (type !== undefined) await fixture.changePresence(PHONE, type);
    assert.deepEqual(toBob(fixture), []);
    assert.deepEqual(await onceItTells(fixture), [`unavailable: ${PHONE} → ${BOB}`]);
    await fixture.changePresence(PHONE, "unavailable");
    assert.equal(toBob(fixture).length, 1, "once");
    fixture.server.close();
  }
});
