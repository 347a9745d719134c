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

Deno.test("clients at other nodes of the datacenter get the roster changes that they missed, and none here", async () => {
  const fixture = withAlice();
  await fixture.ask(PHONE, "set", query({ jid: BOB }));
  fixture.elsewhere.set(ALICE, [{
    host: "dc1.example.com",
    resourcepart: "laptop",
    process: 2,
  }]);
  fixture.routed.length = 0;
  fixture.server.tellAgain("dc1.example.com");
  await fixture.server.settled();
  assert.deepEqual(lines(fixture.routed), [`push ${BOB} none: ${TO_LAPTOP}`]);
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

/** Changes at a node of dc1, and the pushes to the sessions that each account has at dc2. */
function changesWith(resources: string[]) {
  const { clock, metrics, store } = withAlice();
  const pushes: string[] = [];
  const lookups: number[] = [];
  const turns = new AccountTurns({
    maxWaiting: 1_000,
    maxBytes: 10_000_000,
    maxRunning: { prompt: 1, portioned: 1, patient: 1 },
    failed: (thrown) => {
      throw thrown;
    },
  });
  const missed = new MissedChanges({
    process: 1,
    hosts: {
      localHost: "dc1.example.com",
      globalHost: "example.com",
      store: () => store,
      isShared: () => true,
      hasVersions: () => true,
    },
    routes: { route() {}, sendTo() {}, sendToNodes() {}, deliver: () => true, offer: () => true },
    reach: {
      sessionsOf: (accounts) => {
        lookups.push(accounts.length);
        const places = resources.map((resourcepart) => ({ host: DC2, resourcepart, process: 2 }));
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
  const tell = async () => {
    missed.tell(DC2);
    await turns.settled();
    return pushes.splice(0);
  };
  return { missed, clock, tell, lookups };
}

Deno.test("MissedChanges tells each session once, and remembers those alone that are there", async () => {
  const resources = ["laptop"];
  const { missed, tell } = changesWith(resources);
  missed.note(parseJid(ALICE), BOB, { isVisible: true, version: 1 });
  assert.deepEqual(await tell(), [`${ALICE}/laptop ${BOB}`]);
  resources.push("tablet");
  assert.deepEqual(await tell(), [`${ALICE}/tablet ${BOB}`]);
  assert.deepEqual(await tell(), []);
  resources.splice(0, 2, "phone");
  assert.deepEqual(await tell(), [`${ALICE}/phone ${BOB}`]);
  resources.splice(0, 1, "laptop"); // a new login may have another session's resource
  assert.deepEqual(await tell(), [`${ALICE}/laptop ${BOB}`]);
});

Deno.test("MissedChanges tells a datacenter that comes and goes all the time once behind the running time", async () => {
  const { missed, tell, lookups } = changesWith(["laptop"]);
  missed.note(parseJid(ALICE), BOB, { isVisible: true, version: 1 });
  for (let i = 0; i < 5; i++) missed.tell(DC2);
  await tell();
  assert.deepEqual(lookups, [1, 1]);
  await tell();
  assert.deepEqual(lookups, [1, 1, 1]);
});

Deno.test("MissedChanges remembers changes for a day, and 10 000 of them at the most", async () => {
  const { missed, clock, tell } = changesWith(["laptop"]);
  const change = { isVisible: true, version: 1 };
  for (let i = 0; i <= 10_000; i++) missed.note(parseJid(ALICE), `user${i}@example.com`, change);
  missed.note(parseJid("zoe@dc1.example.com"), BOB, change);
  const { length, 0: first } = await tell();
  assert.deepEqual([length, first], [10_000, `${ALICE}/laptop user1@example.com`]);
  missed.note(parseJid(ALICE), BOB, change);
  clock.advance(86_399_999);
  missed.note(parseJid(ALICE), CAROL, change);
  clock.advance(1);
  assert.deepEqual(await tell(), [`${ALICE}/laptop ${CAROL}`]);
});
