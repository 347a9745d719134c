import assert from "node:assert/strict";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { DOWN } from "./testing/alice_and_bob.ts";
import { fullJid, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

const ALICE = "alice@example.com";
const PHONE = `${ALICE}/phone`;
const BOB = "bob@example.com";
const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const DELAY_MS = 5_000;

/** alice has just logged in at dc1, and nobody else was found. bob is her contact. */
async function loggedIn(): Promise<RosterFixture> {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  return fixture;
}

async function afterAMoment(fixture: RosterFixture): Promise<readonly string[]> {
  fixture.clock.advance(DELAY_MS);
  await fixture.server.settled();
  return fixture.sent.map(({ host, stanza }) => `${lines([stanza])[0]} at ${host}`);
}

Deno.test("a contact whose login at the same moment was not known yet is told and asked", async () => {
  const fixture = await loggedIn();
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "tablet", process: 2 }]);
  assert.deepEqual((await afterAMoment(fixture)).toSorted(), [
    `available: ${PHONE} → ${ALICE} at ${DC2}`,
    `available: ${PHONE} → ${BOB} at ${DC2}`,
    `probe: ${PHONE} → ${ALICE} at ${DC2}`,
    `probe: ${PHONE} → ${BOB} at ${DC2}`,
  ]);
  fixture.sent.length = 0;
  assert.deepEqual(await afterAMoment(fixture), [], "one second look only");
});

Deno.test("a second look tells the node of another session of a contact who was found", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  const first = { host: DC1, resourcepart: "x", process: 2 };
  fixture.elsewhere.set(BOB, [first]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  fixture.elsewhere.set(BOB, [first, { host: DC1, resourcepart: "y", process: 3 }]);
  assert.deepEqual(await afterAMoment(fixture), [`available: ${PHONE} → ${BOB} at ${DC1}`]);
});

Deno.test("a second look tells nobody who was found before, or logged in at this node", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  fixture.here.set(`${BOB}/here`, undefined);
  assert.deepEqual(await afterAMoment(fixture), []);
});

Deno.test("a second look asks a contact who was found before, and whose answer was lost", async () => {
  for (const isLost of [true, false]) {
    const fixture = new RosterFixture();
    fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
    fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    await fixture.changePresence(PHONE);
    fixture.sent.length = 0;
    if (!isLost) hear(fixture, undefined, PHONE);
    const asked = [`probe: ${PHONE} → ${BOB} at ${DC2}`];
    assert.deepEqual(await afterAMoment(fixture), isLost ? asked : [], `lost: ${isLost}`);
  }
});

Deno.test("a second look tells and asks only those who may see or be seen", async () => {
  for (
    const [own, theirs, expected] of [["from", "to", "available"], ["to", "from", "probe"]] as const
  ) {
    const fixture = new RosterFixture();
    fixture.store.put(ALICE, item(BOB, { subscription: own }));
    fixture.store.put(BOB, item(ALICE, { subscription: theirs }));
    await fixture.changePresence(PHONE);
    fixture.sent.length = 0;
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    await afterAMoment(fixture);
    assert.deepEqual(fixture.sent.map(({ stanza }) => stanza.type), [expected]);
  }
});

for (const how of ["has become unavailable", "has ended"]) {
  Deno.test(`a second look tells nothing of a session that ${how}`, async () => {
    const fixture = await loggedIn();
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    if (how === "has ended") {
      fixture.here.delete(PHONE);
      fixture.server.closed(fullJid(PHONE));
    } else await fixture.changePresence(PHONE, "unavailable");
    fixture.sent.length = 0;
    assert.deepEqual(await afterAMoment(fixture), []);
  });
}

/** Presence of bob's `resourcepart` at dc2 comes to `to`. */
function hear(fixture: RosterFixture, type?: "unavailable", to = ALICE): void {
  const presence = buildStanza(element("presence", { type }), {
    from: parseJid(`${BOB}/x`),
    to: parseJid(to),
  });
  fixture.server.saw(presence, { origin: DC2, process: 2, sentAtUs: 1 });
}

Deno.test("a second look does not ask contacts whose presence has come by itself", async () => {
  const both = [`available: ${PHONE} → ${BOB} at ${DC2}`, `probe: ${PHONE} → ${BOB} at ${DC2}`];
  const cases: readonly (readonly [string, (fixture: RosterFixture) => void, isAsked: boolean])[] =
    [
      ["nothing", () => {}, true],
      ["presence", (fixture) => hear(fixture), false],
      ["presence to the full JID", (fixture) => hear(fixture, undefined, PHONE), false],
      ["presence to another one", (fixture) => hear(fixture, undefined, `${ALICE}/x`), true],
      ["presence and its end", (fixture) => {
        hear(fixture);
        hear(fixture, "unavailable");
      }, true],
    ];
  for (const [what, happens, isAsked] of cases) {
    const fixture = await loggedIn();
    happens(fixture);
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    assert.deepEqual((await afterAMoment(fixture)).toSorted(), isAsked ? both : [both[0]], what);
  }
});

Deno.test("a second look asks a datacenter with one session whose presence has not come", async () => {
  const fixture = await loggedIn();
  hear(fixture);
  fixture.elsewhere.set(BOB, [
    { host: DC2, resourcepart: "x", process: 2 },
    { host: DC2, resourcepart: "y", process: 3 },
  ]);
  assert.equal((await afterAMoment(fixture)).length, 2, "told and asked");
});

Deno.test("a session that moves to another node right after its login looks again there", async () => {
  for (const isNew of [true, false]) {
    const fixture = new RosterFixture();
    fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
    fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    fixture.arrive(PHONE, isNew);
    await fixture.server.settled();
    assert.deepEqual(fixture.sent, [], "its contacts know of it");
    assert.deepEqual(
      await afterAMoment(fixture),
      isNew ? [`available: ${PHONE} → ${BOB} at ${DC2}`, `probe: ${PHONE} → ${BOB} at ${DC2}`] : [],
    );
    assert.equal(fixture.lookups.length, isNew ? 1 : 0);
  }
});

Deno.test("a session that moves on before its second look does not look again", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.arrive(PHONE, true);
  fixture.here.delete(PHONE);
  fixture.server.closed(fullJid(PHONE));
  await fixture.server.settled();
  assert.deepEqual(await afterAMoment(fixture), []);
});

Deno.test("a second look leaves contacts of further hosts to this datacenter", async () => {
  const fixture = new RosterFixture();
  fixture.hosts.add("im.example.com");
  const KIM = "kim@im.example.com";
  fixture.store.put(ALICE, item(KIM, { subscription: "both" }));
  fixture.store.put(KIM, item(ALICE, { subscription: "both" }));
  fixture.elsewhere.set(KIM, [
    { host: DC1, resourcepart: "x", process: 3 },
    { host: DC2, resourcepart: "namesake", process: 2 },
  ]);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  assert.deepEqual(await afterAMoment(fixture), []);
});

Deno.test("a second look tells and asks nobody whose subscription has ended since the login", async () => {
  const fixture = await loggedIn();
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await fixture.enter(PHONE, "unsubscribed", BOB);
  fixture.sent.length = 0;
  assert.deepEqual(await afterAMoment(fixture), [`probe: ${PHONE} → ${BOB} at ${DC2}`]);

  const cancelled = new RosterFixture();
  cancelled.store.put(ALICE, item(BOB, { subscription: "to" }));
  cancelled.store.put(BOB, item(ALICE, { subscription: "from" }));
  await cancelled.changePresence(PHONE);
  cancelled.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  await cancelled.enter(`${BOB}/x`, "unsubscribed", ALICE);
  await cancelled.take(BOB, "unsubscribed", ALICE);
  cancelled.sent.length = 0;
  assert.deepEqual(await afterAMoment(cancelled), []);
});

Deno.test("a second look that the database fails is made again", async () => {
  for (const way of ["login", "move"] as const) {
    const fixture = new RosterFixture();
    fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
    if (way === "login") await fixture.changePresence(PHONE);
    else fixture.arrive(PHONE, true);
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    fixture.store.failure = DOWN;
    for (let i = 0; i < 2; i++) assert.deepEqual(await afterAMoment(fixture), [], way);
    fixture.store.failure = undefined;
    assert.deepEqual(await afterAMoment(fixture), [`available: ${PHONE} → ${BOB} at ${DC2}`], way);
    fixture.sent.length = 0;
    assert.deepEqual(await afterAMoment(fixture), [], "once");
  }
});
