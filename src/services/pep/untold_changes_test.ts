import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import { element, parseJid } from "../../xmpp/mod.ts";
import { RETRY_MS } from "./last_items.ts";
import { PepFixture, textOf } from "./testing/pep_fixture.ts";
import { ALICE, BOB, changesIn, item, MOOD, TUNE } from "./testing/pep_scene.ts";

Deno.test("PepNotices tells of what others publish while one account publishes more than is told", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  await pep.online(BOB, [`${TUNE}+notify`]);
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  const payload = element("tune", { xmlns: TUNE });
  const options = new Map([["pubsub#persist_items", ["false"]]]);
  const publish = (owner: string, id: string) =>
    pep.server.publish(parseJid(owner).bare, { node: TUNE, id, payload, options });
  for (let i = 0; i < 2_100; i++) await publish(ALICE, `${i}`);
  await publish(BOB, "own");
  resolve();
  await pep.server.settled();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["own"]);
  const told = changesIn(await pep.received(ALICE));
  deepStrictEqual(told.length, 2_000, "of the 10000 places, alice has a fifth");
});

Deno.test("PepServer keeps a bounded number of bytes of changes that are still to be told", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  await pep.online(BOB, [`${TUNE}+notify`]);
  const { promise, resolve } = Promise.withResolvers<void>();
  pep.rostersAfter = promise;
  const payload = element("tune", { xmlns: TUNE }, "x".repeat(16_000));
  const options = new Map([["pubsub#persist_items", ["false"]]]);
  const publish = (owner: string, id: string) =>
    pep.server.publish(parseJid(owner).bare, { node: TUNE, id, payload, options });
  for (let i = 0; i < 250; i++) await publish(ALICE, `${i}`);
  await publish(BOB, "own");
  resolve();
  await pep.server.settled();
  deepStrictEqual(changesIn(await pep.received(BOB)), ["own"]);
  const { length } = changesIn(await pep.received(ALICE));
  const fifth = 16 * 1_048_576 / 5;
  ok(length * 16_000 <= fifth && (length + 2) * 16_100 > fifth, `${length}`);
});

Deno.test("PepServer tells of changes, in their order, once it can read who is to hear of them", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const away = { retryable: true };
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
  const publications = ["one", "two"].map((id) => pep.publish(ALICE, TUNE, item(id)));
  const failures = () => pep.log.named("pep.notification-failed").length;
  while (failures() === 0) await new Promise((done) => setTimeout(done));
  deepStrictEqual(changesIn(pep.delivered.map(({ stanza }) => textOf(stanza))), []);
  pep.rostersFailure = undefined;
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["one", "two"]);
  strictEqual(failures(), 1);
});

Deno.test("PepServer tells sessions elsewhere of changes, in their order, once they are known again", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const place = { host: "dc2.example.com", resourcepart: "tv", process: 1 };
  pep.elsewhere.set("bob@example.com", [place]);
  pep.isTableAway = true;
  const here = () => changesIn(pep.delivered.map(({ stanza }) => textOf(stanza)));
  const there = () => changesIn(pep.routed.map(textOf));
  const publications: Promise<string>[] = [];
  for (const id of ["one", "two", "three"]) {
    if (id === "three") pep.isTableAway = false;
    publications.push(pep.publish(ALICE, TUNE, item(id)));
    while (!here().includes(id)) await new Promise((done) => setTimeout(done));
    deepStrictEqual(there(), []);
  }
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(there(), ["one", "two", "three"]);
  deepStrictEqual(here(), ["one", "two", "three"], "each once");
});

Deno.test("PepServer tells sessions elsewhere nothing later of a node that is hidden by then", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const place = { host: "dc2.example.com", resourcepart: "tv", process: 1 };
  pep.elsewhere.set("bob@example.com", [place]);
  pep.isTableAway = true;
  const timers = pep.clock.pendingTimers;
  const publication = pep.publish(ALICE, TUNE, item("one"));
  while (pep.clock.pendingTimers === timers) await new Promise((done) => setTimeout(done));
  const values = new Map([["pubsub#access_model", ["whitelist"]]]);
  await pep.server.configure(parseJid("alice@example.com"), TUNE, values);
  pep.isTableAway = false;
  pep.clock.advance(RETRY_MS);
  await publication;
  deepStrictEqual(pep.routed, []);
});

Deno.test("PepServer.close() waits for no session table", async () => {
  await using pep = await PepFixture.open();
  const timers = pep.clock.pendingTimers;
  pep.isTableAway = true;
  const payload = element("tune", { xmlns: TUNE });
  for (const id of ["one", "two"]) {
    await pep.server.publish(parseJid(ALICE).bare, { node: TUNE, id, payload });
  }
  await pep.server.close();
  strictEqual(pep.clock.pendingTimers, timers);
});

Deno.test("PepServer tells nobody later of items in a node that is hidden by then, or has another owner", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`, `${MOOD}+notify`]);
  await pep.publish(ALICE, MOOD, item("before"));
  await pep.received(BOB);
  const store = pep.store.pep("example.com");
  const away = { retryable: true };
  pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
  const publications = [TUNE, MOOD].map((node) => pep.publish(ALICE, node, item("late")));
  const failures = () => pep.log.named("pep.notification-failed").length;
  while (failures() === 0) await new Promise((done) => setTimeout(done));
  const { config } = (await store.node("alice", TUNE))!;
  const hidden = config.replace("[", '[["pubsub#access_model",["whitelist"]],');
  await store.configure("alice", { node: TUNE, expected: config, config: hidden, maxItems: 1 });
  // As if the account had been deleted and made again.
  const { config: expected } = (await store.node("alice", MOOD))!;
  await store.configure("alice", { node: MOOD, expected, config: "[]", maxItems: 1 });
  pep.rostersFailure = undefined;
  pep.clock.advance(RETRY_MS);
  await Promise.all(publications);
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
});

Deno.test("PepServer.close() tries once more to tell of changes, and then waits for no database", async () => {
  for (const isBack of [true, false]) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    await pep.online(BOB, [`${TUNE}+notify`]);
    const timers = pep.clock.pendingTimers;
    const away = { retryable: true };
    pep.rostersFailure = new CausewayError("storage/pool-full", "Cannot read rosters", away);
    const payload = element("tune", { xmlns: TUNE });
    for (const id of ["one", "two"]) {
      await pep.server.publish(parseJid(ALICE).bare, { node: TUNE, id, payload });
    }
    while (pep.log.named("pep.notification-failed").length === 0) {
      await new Promise((done) => setTimeout(done));
    }
    if (isBack) pep.rostersFailure = undefined;
    await pep.server.close();
    strictEqual(pep.clock.pendingTimers, timers);
    deepStrictEqual(changesIn(await pep.received(BOB)), isBack ? ["one", "two"] : []);
  }
});

Deno.test("PepServer gives up what it can never tell", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  pep.rostersFailure = new CausewayError("storage/corrupt", "Cannot read rosters");
  match(await pep.publish(ALICE, TUNE, item("one")), /type='result'/);
  pep.rostersFailure = undefined;
  match(await pep.publish(ALICE, TUNE, item("two")), /type='result'/);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["two"]);
});
