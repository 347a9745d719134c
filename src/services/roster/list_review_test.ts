import assert from "node:assert/strict";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { ALICE, BOB, CAROL, DC2, DOWN, PHONE, withAlice } from "./testing/alice_and_bob.ts";
import { fullJid, hidingFrom, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

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
  const [earlier, later] = [new Set([CAROL]), new Set([BOB, EVE])];
  fixture.hidden.set(PHONE, earlier);
  await fixture.changePresence(PHONE);
  fixture.heard(`${BOB}/x`, ALICE);
  fixture.sent.length = 0;
  fixture.directed.push(parseJid(`${EVE}/x`), parseJid(`${DAN}/x`));
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

Deno.test("a client that blocks one device of a contact hears that it is gone, and asks for it afterwards", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.elsewhere.set(
    BOB,
    ["x", "y"].map((resourcepart) => ({
      host: DC2,
      resourcepart,
      process: 2,
    })),
  );
  await fixture.changePresence(PHONE);
  for (const resource of ["x", "y"]) fixture.heard(`${BOB}/${resource}`, ALICE);
  fixture.sent.length = 0;
  const change = async (before: readonly string[], after: readonly string[]) => {
    fixture.hidden.set(PHONE, new Set(after));
    fixture.server.privacyChanged(fullJid(PHONE), {
      before: hidingFrom(new Set(before)),
      after: hidingFrom(new Set(after)),
    });
    await fixture.server.settled();
    const all = [...fixture.sent.splice(0), ...fixture.delivered.splice(0)];
    return lines(all.map(({ stanza }) => stanza));
  };
  assert.deepEqual(await change([], [`${BOB}/x`]), [`unavailable: ${BOB}/x → ${PHONE}`]);
  assert.deepEqual(await change([`${BOB}/x`], []), [`probe: ${PHONE} → ${BOB}`]);
});

Deno.test("a list that changes before a session tells its first presence decides on that presence", async () => {
  const fixture = withAlice();
  for (const contact of [BOB, CAROL]) {
    fixture.store.put(ALICE, item(contact, { subscription: "both" }));
    fixture.store.put(contact, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  fixture.hidden.set(PHONE, new Set([BOB]));
  const change = { before: hidingFrom(new Set([CAROL])), after: hidingFrom(new Set([BOB])) };
  // The second change waits for the first one, and so does the presence, which is sent meanwhile.
  fixture.server.privacyChanged(fullJid(PHONE), change);
  fixture.server.privacyChanged(fullJid(PHONE), change);
  await fixture.changePresence(PHONE);
  assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), [
    `available: ${PHONE} → ${CAROL}`,
    `available: ${PHONE} → ${ALICE}`,
    `probe: ${PHONE} → ${CAROL}`,
    `probe: ${PHONE} → ${ALICE}`,
  ]);
});

/** alice's phone, which bob and carol see, and which sees them. The database fails as it blocks bob. */
async function withLateBlock() {
  const fixture = withAlice();
  for (const contact of [BOB, CAROL]) {
    fixture.store.put(ALICE, item(contact, { subscription: "both" }));
    fixture.store.put(contact, item(ALICE, { subscription: "both" }));
    fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
  }
  await fixture.changePresence(PHONE);
  for (const contact of [BOB, CAROL]) fixture.heard(`${contact}/x`, ALICE);
  fixture.sent.length = 0;
  const hide = async (earlier: readonly string[], later: readonly string[]) => {
    fixture.hidden.set(PHONE, new Set(later));
    const change = {
      before: hidingFrom(new Set(earlier)),
      after: hidingFrom(new Set(later)),
    };
    fixture.server.privacyChanged(fullJid(PHONE), change);
    await fixture.server.settled();
  };
  fixture.store.failure = DOWN;
  await hide([], [BOB]);
  const told = async (ms = 0) => {
    fixture.clock.advance(ms);
    await fixture.server.settled();
    const all = [...fixture.sent.splice(0), ...fixture.delivered.splice(0)];
    // A login asks again for the presence of contacts, some time later.
    return lines(all.map(({ stanza }) => stanza).filter(({ type }) => type !== "probe"));
  };
  assert.deepEqual(await told(), []);
  return { fixture, hide, told };
}

Deno.test("a change of a list is told when the database is back", async () => {
  const { fixture, told } = await withLateBlock();
  fixture.directed.push(parseJid(`${BOB}/x`));
  assert.deepEqual(await told(2_000), []);
  fixture.store.failure = undefined;
  assert.deepEqual(await told(4_000), [
    `unavailable: ${PHONE} → ${BOB}`,
    `unavailable: ${BOB}/x → ${PHONE}`,
  ]);
  assert.deepEqual(await told(60_000), [], "once");
  assert.deepEqual(fixture.routed, [], "directed presence did not wait for the database");
});

Deno.test("a change of a list that was not told is told with the next one", async () => {
  const { fixture, hide, told } = await withLateBlock();
  fixture.heard(`${CAROL}/y`, ALICE);
  fixture.store.failure = undefined;
  await hide([BOB], [BOB, CAROL]);
  assert.deepEqual(await told(), [
    `unavailable: ${PHONE} → ${BOB}`,
    `unavailable: ${PHONE} → ${CAROL}`,
    `unavailable: ${BOB}/x → ${PHONE}`,
    `unavailable: ${CAROL}/x → ${PHONE}`,
    `unavailable: ${CAROL}/y → ${PHONE}`,
  ]);
  assert.deepEqual(await told(60_000), []);
});

Deno.test("a change of a list is told nobody that was taken back while the database was away", async () => {
  const { fixture, hide, told } = await withLateBlock();
  await hide([BOB], []);
  fixture.store.failure = undefined;
  assert.deepEqual(await told(60_000), []);
});

Deno.test("a change of a list that waits for the database goes with its session", async () => {
  const { fixture, told } = await withLateBlock();
  fixture.here.delete(PHONE);
  fixture.server.closed(fullJid(PHONE));
  fixture.store.failure = undefined;
  await fixture.changePresence(PHONE); // of a later session
  assert.deepEqual(await told(60_000), [
    `available: ${PHONE} → ${CAROL}`,
    `available: ${PHONE} → ${ALICE}`,
  ]);
});

/** Makes alice's phone block bob and carol, and returns the presences that its client gets. */
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
