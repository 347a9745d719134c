import assert from "node:assert/strict";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { ALICE, BOB, CAROL, DC2, PHONE, withBobAtDc2 } from "./testing/alice_and_bob.ts";
import type { RosterFixture } from "./testing/roster_fixture.ts";
import { item, lines } from "./testing/roster_fixture.ts";

/** Loses all that was sent to dc2 since the last call. Returns how much it was. */
function loseAll({ server, sent }: RosterFixture, process = 1): number {
  const lost = sent.splice(0).filter(({ host }) => host === DC2);
  for (const { host, stanza } of lost) {
    const { sinceUs = 0 } = stanza;
    server.lost(host, stanza, { origin: "dc1.example.com", process, sentAtUs: sinceUs });
  }
  return lost.length;
}

/** Tells dc2 again; returns what it is told of alice's phone, in one line each. */
async function toldAgain({ server, sent }: RosterFixture): Promise<readonly string[]> {
  server.tellAgain(DC2);
  await server.settled();
  return lines(
    sent.splice(0).map(({ stanza }) => stanza)
      .filter(({ from, type }) => from.text === PHONE && type !== "probe"),
  );
}

Deno.test("RosterServer.tellAgain() tells of an end of presence that was lost, once", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  await fixture.changePresence(PHONE, "unavailable");
  assert.equal(loseAll(fixture), 2);
  const ends = [`unavailable: ${PHONE} → ${BOB}`, `unavailable: ${PHONE} → ${ALICE}`];
  fixture.server.tellAgain("dc3.example.com");
  await fixture.server.settled();
  assert.deepEqual(fixture.sent, []);
  assert.deepEqual(await toldAgain(fixture), ends);
  assert.deepEqual(await toldAgain(fixture), []);
});

Deno.test("RosterServer.tellAgain() tells once more of an end that is lost again", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  await fixture.changePresence(PHONE, "unavailable");
  loseAll(fixture);
  fixture.server.tellAgain(DC2);
  await fixture.server.settled();
  assert.equal(loseAll(fixture), 2);
  assert.equal((await toldAgain(fixture)).length, 2);
});

Deno.test("RosterServer.tellAgain() tells of a session that is back, and not of its end before", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  await fixture.changePresence(PHONE, "unavailable");
  loseAll(fixture);
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  assert.deepEqual(await toldAgain(fixture), [
    `available: ${PHONE} → ${BOB}`,
    `available: ${PHONE} → ${ALICE}`,
  ]);
});

Deno.test("RosterServer.tellAgain() tells of the end for one who may not see a session any more", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  fixture.sent.length = 0;
  fixture.store.put(ALICE, item(BOB, { subscription: "none" }));
  await fixture.changePresence(PHONE); // the end for bob comes with it
  loseAll(fixture);
  assert.deepEqual(await toldAgain(fixture), [
    `unavailable: ${PHONE} → ${BOB}`,
    `available: ${PHONE} → ${ALICE}`,
  ]);
});

Deno.test("RosterServer.tellAgain() tells of the end of directed presence, unless it was sent again", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  const end = buildStanza(element("presence", { type: "unavailable" }), {
    from: parseJid(PHONE),
    to: parseJid(CAROL),
  });
  const loseEnd = () => {
    fixture.sent.length = 0;
    fixture.sent.push({ host: DC2, stanza: end });
    loseAll(fixture);
  };
  const toCarol = async () => (await toldAgain(fixture)).filter((each) => each.endsWith(CAROL));
  loseEnd();
  assert.deepEqual(await toCarol(), [`unavailable: ${PHONE} → ${CAROL}`]);
  loseEnd();
  fixture.directed.push(parseJid(CAROL));
  assert.deepEqual(await toCarol(), []);
});

Deno.test("RosterServer.lost() leaves presence to the node that has told of it, and to rooms", async () => {
  const fixture = withBobAtDc2();
  await fixture.changePresence(PHONE);
  await fixture.changePresence(PHONE, "unavailable");
  loseAll(fixture, 3);
  const stanza = buildStanza(element("presence", { type: "unavailable" }), {
    from: parseJid("room@rooms.example.com/alice"),
    to: parseJid(BOB),
  });
  fixture.server.lost(DC2, stanza, { origin: "dc1.example.com", process: 1, sentAtUs: 0 });
  fixture.server.tellAgain(DC2);
  await fixture.server.settled();
  assert.deepEqual(fixture.sent, []);
});

Deno.test("RosterServer.lost() remembers 50,000 ends, the last ones of the datacenter with most of them", async () => {
  const fixture = withBobAtDc2();
  const DC3 = "dc3.example.com";
  const lose = (host: string, from: string) => {
    const stanza = buildStanza(element("presence", { type: "unavailable" }), {
      from: parseJid(from),
      to: parseJid(BOB),
    });
    fixture.server.lost(host, stanza, { origin: "dc1.example.com", process: 1, sentAtUs: 0 });
  };
  lose(DC3, `${CAROL}/x`);
  for (let i = 0; i < 50_000; i++) lose(DC2, `user${i}@example.com/x`);
  const told = async (host: string) => {
    fixture.server.tellAgain(host);
    await fixture.server.settled();
    return fixture.sent.splice(0).map(({ stanza }) => stanza.from.text);
  };
  const { length, 0: first } = await told(DC2);
  assert.deepEqual([length, first], [49_999, "user1@example.com/x"]);
  assert.deepEqual(await told(DC3), [`${CAROL}/x`]);
});
