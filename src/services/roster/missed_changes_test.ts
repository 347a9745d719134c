import assert from "node:assert/strict";
import { PacedWork } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import { parseJid, stanzaElement } from "../../xmpp/mod.ts";
import { AccountTurns } from "./account_turns.ts";
import { MissedChanges } from "./missed_changes.ts";
import { RosterMetrics } from "./roster_metrics.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";
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

Deno.test("a missed roster change does not tell the version of changes of other items", async () => {
  for (const change of ["update", "removal"] as const) {
    const fixture = withAlice();
    fixture.store.put(ALICE, item(BOB)); // version 1
    await missed(fixture, async () => {
      const own = change === "update" ? { name: "Bob" } : { subscription: "remove" };
      await fixture.ask(PHONE, "set", query({ jid: BOB, ...own }));
      fixture.store.put(ALICE, item(CAROL)); // by a node that will not tell of it
    });
    const [push] = fixture.routed.filter(({ to }) => to.text === `${ALICE}/laptop`);
    const ver = stanzaElement(push!).child("query", ROSTER_NAMESPACE)?.attribute("ver");
    assert.equal(ver, "2", "not 3, or the client would take carol's item for known");
  }
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

Deno.test("MissedChanges remembers changes for a day, and 10 000 of them at the most", async () => {
  const { clock, metrics, store } = withAlice();
  const pushes: string[] = [];
  const turns = new AccountTurns({
    maxWaiting: 10,
    maxBytes: 100_000,
    maxRunning: { prompt: 1, portioned: 1, patient: 1 },
    failed: (thrown) => {
      throw thrown;
    },
  });
  const missed = new MissedChanges({
    hosts: {
      localHost: "dc1.example.com",
      globalHost: "example.com",
      store: () => store,
      isShared: () => true,
      hasVersions: () => true,
    },
    routes: { route() {}, sendTo() {}, deliver: () => true, offer: () => true },
    reach: {
      sessionsOf: (accounts) => {
        const places = [{ host: DC2, resourcepart: "laptop", process: 2 }];
        return Promise.resolve(new Map(accounts.map(({ text }) => [text, places])));
      },
      pushTo: (to, _owner, payload) => {
        pushes.push(`${to.text} ${/jid='([^']*)'/.exec(payload)?.[1]}`);
      },
    },
    turns,
    paced: new PacedWork(),
    metrics: new RosterMetrics(metrics, () => 0),
    clock,
    log: SILENT_LOGGER,
  });
  const change = { isVisible: true, version: 1 };
  for (let i = 0; i <= 10_000; i++) missed.note(parseJid(ALICE), `user${i}@example.com`, change);
  missed.note(parseJid("zoe@dc1.example.com"), BOB, change);
  missed.tell(DC2);
  await turns.settled();
  const { length, 0: first } = pushes;
  assert.deepEqual([length, first], [10_000, `${ALICE}/laptop user1@example.com`]);
  pushes.length = 0;
  missed.note(parseJid(ALICE), BOB, change);
  clock.advance(86_399_999);
  missed.note(parseJid(ALICE), CAROL, change);
  clock.advance(1);
  missed.tell(DC2);
  await turns.settled();
  assert.deepEqual(pushes, [`${ALICE}/laptop ${CAROL}`]);
});
