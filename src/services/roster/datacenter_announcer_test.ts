import assert from "node:assert/strict";
import { ManualClock, PacedWork } from "../../base/mod.ts";
import { ALICE, BOB, DC2, PHONE, withAlice } from "./testing/alice_and_bob.ts";
import { item, lines, RosterFixture } from "./testing/roster_fixture.ts";

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

Deno.test("RosterServer.tellAgain() tells a datacenter of a session whose presence it has missed", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "y", process: 2 }]);
  await fixture.changePresence(`${ALICE}/phone`);
  fixture.sent.length = 0;
  fixture.server.tellAgain(DC2);
  await fixture.server.settled();
  fixture.server.close();
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(toBob.map(({ stanza }) => stanza.from.text), [`${ALICE}/phone`]);
});

Deno.test("RosterServer.tellAgain() tells the other nodes of its datacenter what they have missed, and nobody here", async () => {
  const DC1 = "dc1.example.com";
  const fixture = withAlice();
  const { server, store, sent, sentToNodes } = fixture;
  store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.elsewhere.set(BOB, [{ host: DC1, resourcepart: "y", process: 2 }]);
  const toBob = () => lines(sentToNodes.splice(0).filter(({ to }) => to.text === BOB));
  await fixture.changePresence(PHONE);
  sent.length = 0;
  server.tellAgain(DC1);
  await server.settled();
  assert.deepEqual(toBob(), [`available: ${PHONE} → ${BOB}`]);
  await fixture.changePresence(PHONE, "unavailable");
  for (const { host, stanza } of sent.splice(0)) {
    const { sinceUs: sentAtUs = 0 } = stanza;
    server.lost(host, stanza, { origin: DC1, process: 1, sentAtUs });
  }
  server.tellAgain(DC1);
  await server.settled();
  assert.deepEqual(toBob(), [`unavailable: ${PHONE} → ${BOB}`]);
  assert.deepEqual(sent, []);
  server.close();
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

Deno.test("RosterServer says that a datacenter is back when sessions here may have missed something of it", async () => {
  const fixture = withAlice();
  fixture.server.tellAgain(DC2);
  await fixture.server.settled();
  assert.equal(fixture.backs, 0, "it has missed something, and was linked");
  fixture.server.linkedAgain(DC2, 119_999);
  assert.equal(fixture.backs, 0);
  fixture.server.linkedAgain(DC2, 120_000);
  assert.equal(fixture.backs, 1);
  await fixture.cutOff(DC2, 2);
  assert.equal(fixture.backs, 3, "at once, and a moment later");
});
