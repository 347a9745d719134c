import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import type { StanzaShape } from "./testing/router_fixture.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/x";
const BOB = "bob@example.com";
const [DC1, DC2, DC3] = ["dc1.example.com", "dc2.example.com", "dc3.example.com"] as const;

/** A router at dc1. Bob has sessions at `hosts`, the newest at the last. */
function bobAt(...hosts: readonly string[]): RouterFixture {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, hosts.at(-1)!);
  fixture.spread.set(BOB, hosts.map((host) => ({ host, resourcepart: host.slice(0, 3) })));
  return fixture;
}

/** Makes bob's session at dc1 available with `priority`, or unavailable. */
function bobHere(fixture: RouterFixture, priority: number | undefined): void {
  fixture.sessions.set(BOB, { isHere: true, isResourceHere: false, priority });
  const isReachable = priority !== undefined && priority >= 0;
  fixture.local.set(BOB, isReachable ? "delivered" : "no-session");
}

function toBob(shape: StanzaShape = {}, to = BOB) {
  return stanza(ALICE, to, shape);
}

/** Returns the host of each stanza that was sent on, marked if it was a copy. */
function sent({ sent }: RouterFixture): string[] {
  return sent.map(({ host, envelope }) => `${host}${envelope.isCopy ? " copy" : ""}`);
}

Deno.test("Router sends a message for a person to all datacenters where they are", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, 0);
  fixture.router.accept(toBob());
  assert.deepEqual(fixture.delivered.map(idOf), ["1"], "the one here answers for it");
  assert.deepEqual(sent(fixture), [`${DC3} copy`, `${DC2} copy`]);
  assert.ok(fixture.sent.every(({ envelope }) => envelope.isSpread));
});

Deno.test("Router asks the datacenter of the newest login to answer, when nobody here can get it", () => {
  for (const priority of [-1, undefined]) {
    const fixture = bobAt(DC3, DC1, DC2);
    bobHere(fixture, priority);
    fixture.router.accept(toBob());
    assert.deepEqual(sent(fixture), [DC2, `${DC3} copy`]);
    assert.equal(fixture.router.bouncing, 0);
  }
});

Deno.test("Router settles a message for several datacenters once all have settled theirs", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, 0);
  const client = new FakeLink();
  fixture.router.accept(toBob(), client, 7);
  assert.deepEqual(client.settled, []);
  fixture.sent[0]!.envelope.settle();
  assert.deepEqual(client.settled, []);
  fixture.sent[1]!.envelope.settle();
  assert.deepEqual(client.settled, [7]);
});

Deno.test("Router sends what is for one resource to that one alone", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.cache.set(`${BOB}/dc2`, DC2);
  for (const type of ["chat", "normal", "headline"] as const) {
    fixture.router.accept(toBob({ type }, `${BOB}/dc2`));
  }
  assert.deepEqual(sent(fixture), [DC2, DC2, DC2]);
});

Deno.test("Router sends chat for a resource that is gone to all datacenters of the account", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.cache.set(`${BOB}/gone`, DC2);
  fixture.router.accept(toBob({ type: "chat" }, `${BOB}/gone`));
  assert.equal(fixture.delivered.length, 1);
  assert.deepEqual(sent(fixture), [`${DC2} copy`]);
});

Deno.test("Router keeps a message that was spread where it arrives, without a lookup", async () => {
  const fixture = new RouterFixture();
  bobHere(fixture, 0);
  const message = new Envelope({ ...fromLink(toBob()), isSpread: true });
  fixture.received(message, DC2);
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  assert.deepEqual(fixture.lookups, []);
  assert.deepEqual(sent(fixture), []);
});

Deno.test("Router spreads a message whose last datacenter knew of one place only", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, 0);
  fixture.received(fromLink(toBob()), DC2);
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  assert.deepEqual(sent(fixture), [`${DC3} copy`]);
});

Deno.test("Router passes on what was spread and finds nobody here, not back to where it came from", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, -1);
  const message = new Envelope({ ...fromLink(toBob()), isSpread: true });
  fixture.received(message, DC2);
  assert.deepEqual(sent(fixture), [DC3]);
});

Deno.test("Router sends a message back to where its recipient has logged in meanwhile", async () => {
  for (const isSpread of [false, true]) {
    const fixture = bobAt(DC1, DC2);
    bobHere(fixture, -1);
    fixture.table.set(BOB, DC2); // he was not there when dc2 passed it on
    fixture.received(new Envelope({ ...fromLink(toBob()), isSpread }), DC2);
    await fixture.settled();
    assert.deepEqual(sent(fixture), [DC2]);
    assert.equal(fixture.router.bouncing, 0);
    const other = bobAt(DC2, DC1);
    bobHere(other, -1);
    other.received(new Envelope({ ...fromLink(toBob()), isSpread }), DC2);
    assert.deepEqual(sent(other), [], "his newest login is here: dc2 has nobody who gets it");
  }
});

Deno.test("Router passes on what was spread to each datacenter once, without copies", async () => {
  const hosts = ["dc1", "dc2", "dc3", "dc4"].map((name) => `${name}.example.com`);
  const visited = ["dc1.example.com"];
  // It entered at dc1, which has asked dc2 to answer, and sent copies to dc3 and dc4.
  let cameFrom = "dc1.example.com";
  let at = "dc2.example.com";
  let ttl = 3;
  while (ttl > 1) {
    const spread = hosts.map((host) => ({ host, resourcepart: host }));
    const fixture = new RouterFixture({
      domains: {
        globalHost: "example.com",
        localHost: at,
        hosts: new Set(["example.com", at]),
        isOtherLocalHost: (domain) => domain !== at && hosts.includes(domain),
      },
    });
    fixture.table.set(BOB, "dc2.example.com");
    fixture.spread.set(BOB, spread);
    bobHere(fixture, -1);
    const message = fromLink(toBob(), { origin: "dc1.example.com", ttl });
    fixture.received(new Envelope({ ...message, isSpread: true }), cameFrom);
    await fixture.settled();
    assert.equal(fixture.sent.length, 1, at);
    const [{ host, envelope }] = fixture.sent as [typeof fixture.sent[number]];
    visited.push(at);
    [cameFrom, at, ttl] = [at, host, envelope.ttl];
  }
  assert.deepEqual([...visited, at], hosts);
});

Deno.test("Router sends what was spread past a datacenter that cannot take it, as others may have delivered it", () => {
  const fixture = bobAt(DC3, DC2);
  fixture.cache.set(ALICE, DC1);
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(toBob());
  const [{ envelope }] = fixture.sent.splice(0) as [typeof fixture.sent[number]];
  for (let hops = 0; hops < 3; hops++) {
    fixture.router.returned(envelope, "full");
    assert.deepEqual(sent(fixture), [DC3]);
    assert.ok(fixture.sent.splice(0)[0]!.envelope.isSpread, "dc3 recognises it");
  }
  fixture.router.returned(envelope, "full");
  assert.deepEqual(
    fixture.delivered.map(conditionOf),
    ["resource-constraint"],
    "it goes not for ever",
  );
});

Deno.test("Router looks for another datacenter when the one of a message that was spread is out of reach", async () => {
  const fixture = bobAt(DC3, DC2);
  fixture.cache.set(ALICE, DC1);
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(toBob());
  const [{ envelope }] = fixture.sent.splice(0) as [typeof fixture.sent[number]];
  fixture.table.set(BOB, DC3); // the lease of dc2 has ended, too
  fixture.spread.clear();
  fixture.router.returned(envelope, "expired");
  await fixture.settled();
  assert.deepEqual(sent(fixture), [DC3]);
  for (let hops = 1; hops < 4; hops++) {
    fixture.router.returned(envelope, "expired");
    await fixture.settled();
  }
  assert.deepEqual(fixture.delivered.map(conditionOf), ["remote-server-timeout"]);
});

Deno.test("Router holds what was spread when it has no hops left, and gives no error at once", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, undefined);
  fixture.cache.set(ALICE, DC2);
  const message = new Envelope({ ...fromLink(toBob(), { ttl: 0 }), isSpread: true });
  fixture.received(message, DC2);
  assert.deepEqual([fixture.router.bouncing, sent(fixture)], [1, []]);
  bobHere(fixture, 0);
  fixture.cache.set(BOB, DC1);
  fixture.router.revealed(parseJid(BOB));
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
});

Deno.test("Router delivers a copy from a link, and drops one that nobody here gets", () => {
  const fixture = new RouterFixture();
  const copy = (sequence: number) =>
    new Envelope({ ...fromLink(toBob(), { sequence }), isCopy: true, isSpread: true });
  const link = new FakeLink();
  fixture.received(new Envelope(copy(1), link, 1), DC2);
  assert.deepEqual([fixture.delivered.length, link.settled, sent(fixture)], [0, [1], []]);
  assert.equal(fixture.router.bouncing, 0);
  bobHere(fixture, 0);
  fixture.received(new Envelope(copy(2), link, 2), DC2);
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
});

Deno.test("Router delivers a message once when its copy came before", () => {
  const fixture = new RouterFixture();
  bobHere(fixture, 0);
  const fields = { ...fromLink(toBob()), isSpread: true };
  fixture.received(new Envelope({ ...fields, isCopy: true }), DC2);
  // The datacenter that was to answer for it has found nobody.
  fixture.received(new Envelope({ ...fields, mayBeRepeat: false }), DC3);
  assert.equal(fixture.delivered.length, 1);
  assert.equal(fixture.router.bouncing, 0);
});

Deno.test("Router delivers a message when sessions here have left without acknowledging its copy", () => {
  for (const isAcknowledged of [false, true]) {
    const fixture = bobAt(DC1);
    bobHere(fixture, 0);
    const fields = { ...fromLink(toBob()), process: 77, isSpread: true };
    const copy = new Envelope({ ...fields, isCopy: true });
    fixture.received(copy, DC2);
    if (!isAcknowledged) fixture.router.returned(copy, "unacknowledged");
    fixture.received(new Envelope({ ...fields, isRerouted: true }), DC2);
    assert.equal(fixture.delivered.length, isAcknowledged ? 1 : 2);
  }
});

Deno.test("Router gives no error for what a session here refuses, while others have it", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(ALICE, DC1);
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(toBob());
  assert.deepEqual(sent(fixture), [DC2], "dc2 answers for it now");
  assert.deepEqual(fixture.delivered.map(conditionOf), []);
});

Deno.test("Router sends a copy again that did not leave, while the account is still there", async () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.router.accept(toBob());
  const { envelope } = fixture.sent.splice(0)[0]!;
  fixture.router.returned(envelope, "peer-restarted");
  assert.deepEqual(sent(fixture), [`${DC2} copy`]);
  fixture.spread.clear();
  fixture.table.set(BOB, DC1);
  fixture.sent.splice(0);
  fixture.router.returned(envelope, "peer-gone");
  await fixture.settled();
  assert.deepEqual(sent(fixture), []);
});

Deno.test("Router spreads what bounces as soon as it knows where the account is", async () => {
  const fixture = new RouterFixture();
  fixture.router.accept(toBob());
  await fixture.settled();
  assert.equal(fixture.router.bouncing, 1);
  fixture.cache.set(BOB, DC2);
  fixture.spread.set(BOB, [DC2, DC3].map((host) => ({ host, resourcepart: host })));
  fixture.router.revealed(parseJid(BOB));
  assert.deepEqual(sent(fixture), [DC2, `${DC3} copy`]);
});

Deno.test("Router sends a note to oneself to one's devices in all datacenters", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.router.accept(stanza(`${BOB}/dc1`, BOB));
  assert.equal(fixture.delivered.length, 1);
  assert.deepEqual(sent(fixture), [`${DC2} copy`]);
});

Deno.test("Router sends copies of what its client may have sent before, or what came back", () => {
  const resent = bobAt(DC1, DC2);
  bobHere(resent, 0);
  resent.acceptResent(toBob());
  assert.deepEqual(resent.delivered.length, 1);
  assert.deepEqual(sent(resent), [`${DC2} copy`]);

  const returned = bobAt(DC2);
  returned.router.accept(toBob());
  const { envelope } = returned.sent.splice(0)[0]!;
  envelope.mayBeRepeat = true;
  returned.spread.set(BOB, [DC1, DC3].map((host) => ({ host, resourcepart: host })));
  bobHere(returned, 0);
  returned.router.returned(envelope, "peer-restarted");
  assert.equal(returned.delivered.length, 1);
  assert.deepEqual(sent(returned).filter((each) => each === `${DC3} copy`), [`${DC3} copy`]);
});

Deno.test("Router answers no copy with an error: the message itself is answered", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, 0);
  fixture.cache.set(ALICE, DC2);
  fixture.kept.set(BOB, "full");
  const link = new FakeLink();
  const copy = new Envelope({ ...fromLink(toBob()), isCopy: true, isSpread: true }, link, 1);
  fixture.received(copy, DC2);
  assert.deepEqual(fixture.sent, []);
  assert.deepEqual(link.settled, [1]);
});

Deno.test("Router passes on a note to oneself that was spread and finds nobody here", () => {
  const fixture = bobAt(DC2, DC1, DC3);
  bobHere(fixture, -1);
  fixture.cache.set(`${BOB}/dc2`, DC2);
  const note = new Envelope({ ...fromLink(stanza(`${BOB}/dc2`, BOB)), isSpread: true });
  fixture.received(note, DC2);
  assert.deepEqual(sent(fixture), [DC3], "and gives no error");
  assert.equal(fixture.sent[0]!.envelope.stanza.type, "chat");
});

Deno.test("Router keeps a copy for the sessions here, when it had to wait", () => {
  const fixture = bobAt(DC1, DC2);
  bobHere(fixture, -1);
  fixture.copiesToDevices = true;
  const kept: Envelope[] = [];
  fixture.whenKept = (envelope) => envelope.isCopy && kept.push(envelope) > 0;
  fixture.router.accept(toBob());
  assert.deepEqual(sent(fixture), [DC2]);
  assert.equal(kept.length, 1);
  fixture.whenKept = () => false;
  fixture.local.set(BOB, "delivered"); // a carbon
  fixture.router.returned(kept[0]!, "waited");
  assert.equal(fixture.delivered.length, 1);
  assert.deepEqual(sent(fixture), [DC2]);
});

Deno.test("Router passes on a message that was spread and that the session here cannot take", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  bobHere(fixture, 0);
  fixture.local.set(BOB, "resource-constraint");
  fixture.received(new Envelope({ ...fromLink(toBob()), isSpread: true }), DC2);
  assert.deepEqual(sent(fixture), [DC3], "which has a copy");
  assert.equal(fixture.router.bouncing, 0);
});

Deno.test("Router gives no error for want of room here, while another datacenter may have its copy", async () => {
  const rows: [what: string, make: () => RouterFixture][] = [
    ["no room to bounce", () => new RouterFixture({ bounce: { maxItems: 0 } })],
    ["no room behind others", () => {
      const fixture = new RouterFixture();
      bobHere(fixture, 0);
      fixture.kept.set(BOB, "full");
      return fixture;
    }],
    ["no room to wait for a lookup", () => {
      const [lookup, bounce] = [new FairShares({ maxItems: 0 }), new FairShares()];
      return new RouterFixture({}, { lookup, bounce });
    }],
    ["a session that reads too slowly", () => {
      const fixture = new RouterFixture();
      bobHere(fixture, 0);
      fixture.local.set(BOB, "resource-constraint");
      return fixture;
    }],
  ];
  for (const [what, make] of rows) {
    const fixture = make();
    fixture.cache.set(ALICE, DC3);
    const fields = { ...fromLink(toBob(), { origin: DC3 }), isSpread: true };
    const link = new FakeLink();
    fixture.received(new Envelope(fields, link, 1), DC2);
    await fixture.settled();
    assert.deepEqual(sent(fixture), [DC3], `${what}: it knows who else has a copy`);
    const [{ envelope: { stanza, ttl } }] = fixture.sent.splice(0) as [typeof fixture.sent[number]];
    assert.deepEqual([conditionOf(stanza), link.settled, ttl], ["", [], 2], what);
    fixture.cache.delete(BOB);
    const lastHop = { ...fromLink(toBob(), { origin: DC3, sequence: 2, ttl: 0 }), isSpread: true };
    fixture.received(new Envelope(lastHop), DC2);
    await fixture.settled();
    const errors = fixture.sent.map(({ envelope }) => conditionOf(envelope.stanza));
    assert.deepEqual(errors, ["resource-constraint"], `${what}: it goes not for ever`);
    fixture.close();
  }
});

Deno.test("Router answers at once for a session that does not take its message, though others have its carbon", () => {
  const fixture = bobAt(DC1, DC2);
  fixture.cache.set(`${BOB}/dc1`, DC1);
  fixture.sessions.set(BOB, { isHere: true, isResourceHere: true, priority: 0 });
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(ALICE, DC3);
  const message = fromLink(toBob({}, `${BOB}/dc1`), { origin: DC3 });
  fixture.received(new Envelope({ ...message, isSpread: true }), DC3);
  assert.deepEqual(sent(fixture), [DC3]);
  assert.equal(conditionOf(fixture.sent[0]!.envelope.stanza), "resource-constraint");
});

Deno.test("Router finds the datacenter's nodes for a message that was spread", async () => {
  const fixture = new RouterFixture();
  bobHere(fixture, 0);
  fixture.isUnplaced = true;
  fixture.received(new Envelope({ ...fromLink(toBob()), isSpread: true }), DC2);
  await fixture.settled();
  assert.deepEqual(fixture.lookups, [BOB]);
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("Router drops copies that no datacenter sends", () => {
  const fixture = new RouterFixture();
  const marks = { isCopy: true, isSpread: true };
  const rows: readonly [what: string, to: string, shape: StanzaShape, Partial<Envelope>][] = [
    ["probe", BOB, { kind: "presence", type: "probe" }, marks],
    ["approval", BOB, { kind: "presence", type: "subscribed" }, marks],
    ["request", BOB, { kind: "iq", type: "get" }, marks],
    ["for a host", "example.com", {}, marks],
    ["for a local user", "bob@dc1.example.com", {}, marks],
    ["carbon that is no copy", BOB, {}, { isCarbon: true }],
  ];
  for (const [i, [what, to, shape, flags]] of rows.entries()) {
    fixture.local.set(to, "delivered");
    const link = new FakeLink();
    const fields = fromLink(stanza(ALICE, to, shape), { sequence: i + 1 });
    fixture.received(new Envelope({ ...fields, ...flags }, link, 1), DC2);
    assert.deepEqual([fixture.delivered, link.settled], [[], [1]], what);
  }
  assert.deepEqual(sent(fixture), []);
});

/** Messages that were sent on as carbons: their hosts. */
function carbonHosts({ sent }: RouterFixture): string[] {
  return sent.filter(({ envelope }) => envelope.isCarbon).map(({ host }) => host);
}

Deno.test("Router tells a person's other datacenters of a message for one resource, once", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  fixture.copiesToDevices = true;
  fixture.cache.set(`${BOB}/dc3`, DC3);
  fixture.sessions.set(BOB, { isHere: true, isResourceHere: false, priority: 0 });
  fixture.local.set(`${BOB}/dc3`, "delivered"); // the carbon for the session here
  fixture.router.accept(toBob({}, `${BOB}/dc3`));
  assert.deepEqual(fixture.delivered.length, 1);
  assert.deepEqual(carbonHosts(fixture), [DC2]);
  const original = fixture.sent.find(({ envelope }) => !envelope.isCopy)!;
  assert.equal(original.host, DC3);
  assert.equal(original.envelope.isSpread, true, "dc3 tells nobody else");
});

Deno.test("Router asks where a person's other devices are before it delivers a message to one", async () => {
  const fixture = bobAt(DC1, DC2);
  fixture.copiesToDevices = true;
  fixture.cache.set(`${BOB}/dc1`, DC1);
  fixture.local.set(`${BOB}/dc1`, "delivered");
  fixture.sessions.set(BOB, { isHere: true, isResourceHere: true, priority: 0 });
  for (const id of ["1", "2"]) {
    fixture.unplaced.add(BOB); // it has just logged in
    fixture.router.accept(toBob({ id }, `${BOB}/dc1`));
    fixture.router.accept(toBob({ id: `${id} again` }, `${BOB}/dc1`));
    await fixture.settled();
  }
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "1 again", "2", "2 again"]);
  assert.deepEqual(carbonHosts(fixture), [DC2, DC2, DC2, DC2]);
  assert.deepEqual(fixture.lookups, [BOB, BOB]);
});

Deno.test("Router does not ask where other devices are for what they get no carbon of", async () => {
  const fixture = bobAt(DC1, DC2);
  fixture.cache.set(`${BOB}/dc1`, DC1);
  fixture.local.set(`${BOB}/dc1`, "delivered");
  fixture.unplaced.add(BOB);
  fixture.router.accept(toBob({ id: "1" }, `${BOB}/dc1`));
  fixture.copiesToDevices = true;
  fixture.router.accept(toBob({ id: "2", kind: "iq", type: "get" }, `${BOB}/dc1`));
  fixture.received(new Envelope({ ...fromLink(toBob({}, `${BOB}/dc1`)), isSpread: true }), DC2);
  await fixture.settled();
  assert.equal(fixture.delivered.length, 3);
  assert.deepEqual(fixture.lookups, []);
  assert.deepEqual(carbonHosts(fixture), []);
});

Deno.test("Router passes on no carbons for what was spread before, or is not to be copied", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  fixture.local.set(`${BOB}/dc1`, "delivered");
  fixture.cache.set(`${BOB}/dc1`, DC1);
  fixture.router.accept(toBob({}, `${BOB}/dc1`));
  assert.deepEqual(sent(fixture), []);
  fixture.copiesToDevices = true;
  fixture.received(new Envelope({ ...fromLink(toBob({}, `${BOB}/dc1`)), isSpread: true }), DC2);
  assert.deepEqual(sent(fixture), []);
  fixture.received(fromLink(toBob({}, `${BOB}/dc1`), { sequence: 2 }), DC2);
  assert.deepEqual(carbonHosts(fixture), [DC3, DC2].toSorted());
});

Deno.test("Router sends no carbons of a message for a resource that is connected nowhere", () => {
  const fixture = bobAt(DC1, DC3, DC2);
  fixture.copiesToDevices = true;
  fixture.cache.set(`${BOB}/gone`, DC2);
  fixture.router.accept(toBob({ type: "normal" }, `${BOB}/gone`));
  assert.deepEqual(sent(fixture), [DC2]);
});

Deno.test("Router sends carbons of what a person has sent to their other datacenters, in order", async () => {
  const fixture = new RouterFixture();
  fixture.table.set(BOB, DC1);
  fixture.spread.set(BOB, [DC1, DC2].map((host) => ({ host, resourcepart: host })));
  for (const id of ["1", "2"]) {
    fixture.router.carbon(stanza(BOB, BOB, { id }), parseJid(`${BOB}/dc1`));
  }
  assert.deepEqual(sent(fixture), []);
  await fixture.settled();
  fixture.router.carbon(stanza(BOB, BOB, { id: "3" }), parseJid(`${BOB}/dc1`));
  fixture.router.carbon(stanza(BOB, BOB, { id: "4", type: "error" }), parseJid(`${BOB}/dc1`));
  assert.deepEqual(fixture.sentTo(DC2), ["1", "2", "3", "4"]);
  assert.deepEqual(carbonHosts(fixture), [DC2, DC2, DC2, DC2]);
});

Deno.test("Router has a sent message bring its carbon, and sends carbons to the other datacenters", () => {
  const fixture = bobAt(DC1, DC2, DC3);
  const message = stanza(`${BOB}/dc1`, ALICE);
  const wrapped = () => stanza(BOB, BOB, { id: "carbon" });
  fixture.takesCarbons.add(DC3);
  fixture.router.carbonOfSent(message, 5, wrapped);
  assert.deepEqual(fixture.brought, [`5 of ${BOB}/dc1 to ${DC3}`]);
  assert.deepEqual(carbonHosts(fixture), [DC2]);
  assert.equal(fixture.sent[0]!.envelope.boundAs, `${BOB}/dc1`, "on the lane of the messages");
});

Deno.test("Router makes no carbon when the message brings it to all other nodes of its sender", () => {
  const fixture = bobAt(DC1, DC2);
  const message = stanza(`${BOB}/dc1`, ALICE);
  fixture.cache.set(ALICE, DC2);
  fixture.takesCarbons.add(DC2);
  const sequence = fixture.router.accept(message);
  assert.equal(sequence, fixture.sent[0]!.envelope.sequence);
  fixture.router.carbonOfSent(message, sequence, () => assert.fail("nobody needs it"));
  assert.equal(fixture.brought.length, 1);
  fixture.takesCarbons.clear();
  fixture.router.carbonOfSent(message, sequence, () => stanza(BOB, BOB));
  assert.deepEqual(carbonHosts(fixture), [DC2], "an older node is sent the carbon itself");
  fixture.router.carbonOfSent(message, sequence, () => undefined);
  assert.deepEqual(carbonHosts(fixture), [DC2], "there is none of this message");
});

Deno.test("Router has no message bring its carbon before carbons that wait for a lookup", async () => {
  const fixture = bobAt(DC1, DC2);
  fixture.cache.delete(BOB);
  fixture.table.set(BOB, DC1);
  fixture.takesCarbons.add(DC2);
  const message = stanza(`${BOB}/dc1`, ALICE);
  for (const id of ["1", "2"]) {
    fixture.router.carbonOfSent(message, 1, () => stanza(BOB, BOB, { id }));
  }
  assert.deepEqual(fixture.brought, []);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo(DC2), ["1", "2"]);
  fixture.router.carbonOfSent(message, 3, () => assert.fail("the message brings it"));
  assert.equal(fixture.brought.length, 1);
});
