import assert from "node:assert/strict";
import { ALICE, BOB, CAROL, DC2, DOWN, PHONE, query, withAlice } from "./testing/alice_and_bob.ts";
import { item, lines, RosterFixture } from "./testing/roster_fixture.ts";

const TO_LAPTOP = `${ALICE} → ${ALICE}/laptop`;

/**
 * Cuts dc2 off while `change` runs. Returns all that the laptop there is sent once dc2 is back, which is
 * announced twice.
 */
async function missed(fixture: RosterFixture, change: () => Promise<unknown>) {
  const places = [...fixture.elsewhere];
  fixture.elsewhere.clear();
  await change();
  for (const [account, there] of places) fixture.elsewhere.set(account, there);
  fixture.routed.length = 0;
  await fixture.cutOff(DC2, 2);
  await fixture.server.settled();
  return lines(fixture.routed.filter(({ to }) => to.text === `${ALICE}/laptop`));
}

Deno.test("clients at a datacenter that is back get the roster changes and requests that they missed, once", async () => {
  const fixture = withAlice(new RosterFixture({ maxItems: 10 }));
  fixture.store.put(ALICE, item(BOB));
  const told = await missed(fixture, async () => {
    await fixture.ask(PHONE, "set", query({ jid: "dave@example.com", name: "first" }));
    await fixture.ask(PHONE, "set", query({ jid: "dave@example.com", name: "second" }));
    await fixture.ask(PHONE, "set", query({ jid: BOB, subscription: "remove" }));
    await fixture.take(CAROL, "subscribe", ALICE);
  });
  assert.deepEqual(told, [
    `push dave@example.com none: ${TO_LAPTOP}`,
    `push ${BOB} remove: ${TO_LAPTOP}`,
    `subscribe: ${CAROL} → ${ALICE}/laptop`,
  ]);
});

Deno.test("clients at a datacenter that is back are not brought requests that were answered meanwhile", async () => {
  const fixture = withAlice();
  const told = await missed(fixture, async () => {
    await fixture.take(CAROL, "subscribe", ALICE);
    await fixture.enter(PHONE, "subscribed", CAROL);
  });
  assert.deepEqual(told, [`push ${CAROL} from: ${TO_LAPTOP}`]);
});

Deno.test("missed roster changes are told at the second announcement when the database fails at the first", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB));
  const find = fixture.store.find.bind(fixture.store);
  let attempts = 0;
  const told = await missed(fixture, async () => {
    await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
    fixture.store.find = (...asked) => ++attempts === 1 ? Promise.reject(DOWN) : find(...asked);
  });
  assert.deepEqual(told, [`push ${BOB} none: ${TO_LAPTOP}`]);
  assert.equal(attempts, 2);
});
