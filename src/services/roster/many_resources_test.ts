import assert from "node:assert/strict";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { fullJid, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const DEVICES = 1000;

Deno.test("presence for a contact with 1000 resources goes to each of its datacenters once", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  const hosts = ["dc2.example.com", "dc3.example.com"];
  fixture.elsewhere.set(
    BOB,
    Array.from({ length: DEVICES }, (_, i) => ({
      host: hosts[i % 2]!,
      resourcepart: `device${i}`,
      process: 2 + i % 2,
    })),
  );
  await fixture.changePresence(`${ALICE}/phone`);
  const toBob = fixture.sent.filter(({ stanza }) => stanza.to.text === BOB);
  assert.deepEqual(
    toBob.map(({ host, stanza }) => `${host} ${stanza.type}`).toSorted(),
    hosts.flatMap((host) => [`${host} available`, `${host} probe`]),
  );
  assert.deepEqual(fixture.routed, []);
});

Deno.test("a probe of somebody with 1000 resources is answered with the presence of each, once", async () => {
  const fixture = new RosterFixture();
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  const devices = Array.from({ length: DEVICES }, (_, i) => `${ALICE}/device${i}`);
  for (const device of devices) {
    const from = fullJid(device);
    fixture.here.set(device, buildStanza(element("presence", {}), { from, to: from.bare }));
  }
  fixture.here.set(`${ALICE}/silent`, undefined);
  const probe = element("presence", { type: "probe" });
  fixture.server.probed(
    buildStanza(probe, { from: parseJid(`${BOB}/x`), to: parseJid(ALICE) }),
  );
  await fixture.server.settled();
  assert.deepEqual(
    lines(fixture.routed),
    devices.map((device) => `available: ${device} → ${BOB}/x`),
  );
});
