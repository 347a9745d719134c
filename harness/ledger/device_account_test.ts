import assert from "node:assert/strict";
import fc from "fast-check";
import { findings, Ledger } from "./mod.ts";
import { deviceFindings } from "./side_verdict.ts";

const ANN = "ann@a/main";
const BEN = "ben@a/main";
const BENS_PHONE = "ben@a/phone";
const FREE = { answers: "some" } as const;

/** ben has a phone beside his main client; ann sends `count` messages a millisecond apart. */
function setUp(count: number, to = BEN) {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  ledger.addDevice(BENS_PHONE, BEN);
  ledger.everyoneIsKnown();
  clock.nowMs = 100_000;
  const flow = ledger.open(ANN, BEN, to);
  for (let seq = 0; seq < count; seq++) {
    ledger.sending(flow);
    clock.nowMs++;
  }
  const arrives = (seq: number) => ledger.arrived(BEN, { flow: 0, seq });
  const carbon = (seq: number) => ledger.carbonArrived(BENS_PHONE, "received", { flow: 0, seq });
  const copy = (seq: number) => ledger.arrived(BENS_PHONE, { flow: 0, seq });
  const ways = (options = {}) => ledger.balance({ windows: [], ...options }).devices.ways;
  const found = () => deviceFindings(ledger.balance({ windows: [] }).devices);
  return { clock, ledger, flow, arrives, carbon, copy, ways, found };
}

function elsewhere(atMs: number) {
  return { fromMs: atMs, toMs: atMs, isOtherNode: true, isOtherDatacenter: true } as const;
}

Deno.test("Ledger finds exactly the planted losses, duplicates and swaps of carbons", () => {
  const count = 40;
  const some = (max: number) => fc.uniqueArray(fc.nat(max - 1), { maxLength: 8 });
  fc.assert(fc.property(some(count), some(count), some(count / 2), (losses, doubles, swaps) => {
    const { ledger, arrives, carbon, ways, found } = setUp(count);
    const order = Array.from({ length: count }, (_, seq) => seq);
    for (const seq of order) arrives(seq);
    for (const at of swaps) [order[2 * at], order[2 * at + 1]] = [2 * at + 1, 2 * at];
    for (const seq of order) if (!losses.includes(seq)) carbon(seq);
    const doubled = doubles.filter((seq) => !losses.includes(seq));
    for (const seq of doubled) carbon(seq);
    const swapped = swaps.filter((at) => [0, 1].every((part) => !losses.includes(2 * at + part)));
    assert.deepEqual(ways().received, {
      due: count,
      came: count - losses.length,
      lost: { allowed: 0, forbidden: losses.length },
      doubled: { allowed: 0, forbidden: doubled.length },
      reordered: { allowed: 0, forbidden: swapped.length },
    });
    assert.deepEqual(findings(ledger.balance({ windows: [] }), FREE), found());
    assert.equal(found().length === 0, losses.length + doubled.length + swapped.length === 0);
  }));
});

Deno.test("Ledger expects a sent carbon of what the main device sends, whatever becomes of it", () => {
  const { ledger, found, ways } = setUp(0);
  const flow = ledger.open(BEN, ANN);
  for (let seq = 0; seq < 3; seq++) ledger.sending(flow);
  const mark = (seq: number) => ({ flow: flow.number, seq });
  ledger.arrived(ANN, mark(0));
  ledger.answered(BEN, mark(1));
  ledger.answered(BEN, mark(2));
  ledger.carbonArrived(BENS_PHONE, "sent", mark(0));
  ledger.carbonArrived(BENS_PHONE, "sent", mark(1));
  assert.deepEqual(found(), ["1 carbons of sent messages lost"]);
  ledger.carbonArrived(BENS_PHONE, "sent", mark(2));
  assert.deepEqual(found(), []);
  assert.equal(ways().sent.due, 3);
});

Deno.test("Ledger expects no carbon of what the main device did not get, nor of requests and presence", () => {
  const { ledger, flow, found, ways } = setUp(1);
  for (const kind of ["iq", "presence"] as const) {
    ledger.arrived(BEN, { flow: 0, seq: ledger.sending(flow, kind) });
  }
  ledger.answered(ANN, { flow: 0, seq: 0 });
  assert.deepEqual([found(), ways().received.due], [[], 0]);
});

Deno.test("Ledger expects a message to the bare JID at both devices", () => {
  const { arrives, copy, found, ways } = setUp(3, "ben@a");
  for (const seq of [0, 1]) arrives(seq);
  for (const seq of [0, 2]) copy(seq);
  assert.deepEqual(ways().bare.lost, { allowed: 0, forbidden: 2 });
  assert.deepEqual([ways().bare.due, ways().bare.came], [5, 3], "each is due once it came once");
  assert.deepEqual(found(), ["2 messages to several devices lost"]);
});

Deno.test("Ledger counts a message that only the other device got as delivered there", () => {
  const { ledger, copy } = setUp(1, "ben@a");
  assert.equal(ledger.unsettled(), 1);
  copy(0);
  assert.equal(ledger.unsettled(), 0);
  const { unknown, elsewhere, delivered } = ledger.balance({ windows: [] });
  assert.deepEqual([unknown.forbidden, elsewhere, delivered], [0, 1, 0]);
});

Deno.test("Ledger counts what a device gets in the wrong way as strays", () => {
  const full = setUp(1);
  full.copy(0); // a message to the full JID of the main device
  full.ledger.carbonArrived(BENS_PHONE, "sent", { flow: 0, seq: 0 });
  full.ledger.carbonArrived(BENS_PHONE, "received", { flow: 0, seq: 1 });
  full.ledger.carbonArrived(BEN, "received", { flow: 0, seq: 0 }); // has carbons off
  const bare = setUp(1, "ben@a");
  bare.carbon(0); // both get it as it is
  assert.equal(full.ledger.balance({ windows: [] }).strays, 4);
  assert.equal(bare.ledger.balance({ windows: [] }).strays, 1);
});

for (const isResumed of [false, true]) {
  Deno.test(`Ledger allows a device to miss ${isResumed ? "nothing" : "carbons"} around a session that ${isResumed ? "is resumed" : "ends"}`, () => {
    const { clock, ledger, flow, arrives, ways } = setUp(0);
    const sendAt = (nowMs: number) => {
      clock.nowMs = nowMs;
      arrives(ledger.sending(flow));
    };
    for (const nowMs of [194_999, 195_000]) sendAt(nowMs);
    clock.nowMs = 200_000;
    ledger.connectionLost(BENS_PHONE, { isManaged: true });
    sendAt(201_000);
    ledger.loggedIn(BENS_PHONE, { ...elsewhere(202_000), isResumed });
    for (const nowMs of [207_000, 207_001]) sendAt(nowMs);
    const allowed = isResumed ? 0 : 3;
    assert.deepEqual(ways().received.lost, { allowed, forbidden: 5 - allowed });
  });
}

Deno.test("Ledger allows a device to miss carbons before all nodes know its first login, and after its last", () => {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  ledger.addDevice(BENS_PHONE, BEN);
  const flow = ledger.open(ANN, BEN);
  for (const nowMs of [5_000, 5_001, 20_000, 25_000]) {
    clock.nowMs = nowMs;
    ledger.arrived(BEN, { flow: 0, seq: ledger.sending(flow) });
    if (nowMs === 5_000) ledger.everyoneIsKnown();
  }
  ledger.left(BENS_PHONE);
  const { received } = ledger.balance({ windows: [] }).devices.ways;
  assert.deepEqual(received.lost, { allowed: 3, forbidden: 1 });
});

Deno.test("Ledger.missingAtDevices() counts what has not come to a device since then", () => {
  const { clock, ledger, arrives, carbon } = setUp(2);
  const bare = ledger.open(ANN, BEN, "ben@a");
  const mark = { flow: bare.number, seq: ledger.sending(bare) };
  const missing = () =>
    [100_000, 100_001, clock.nowMs + 1].map((at) => ledger.missingAtDevices(at));
  assert.deepEqual(missing(), [4, 3, 0]);
  for (const seq of [0, 1]) arrives(seq);
  carbon(1);
  ledger.arrived(BEN, mark);
  assert.deepEqual(missing(), [2, 1, 0]);
  ledger.arrived(BENS_PHONE, mark);
  carbon(0);
  assert.deepEqual(missing(), [0, 0, 0]);
});

Deno.test("Ledger allows lost and reordered carbons within the fault's windows, and no doubled ones", () => {
  const { arrives, carbon, ways } = setUp(4);
  for (const seq of [0, 1, 2, 3]) arrives(seq);
  for (const seq of [1, 0, 3, 3]) carbon(seq);
  const windows = [{ fromMs: 100_000, toMs: 100_003 }];
  const { lost, reordered, doubled } = ways({ windows }).received;
  assert.deepEqual([lost, reordered, doubled], [
    { allowed: 1, forbidden: 0 },
    { allowed: 1, forbidden: 0 },
    { allowed: 0, forbidden: 1 },
  ]);
});

Deno.test("Ledger allows carbons twice only of messages that were on their way when a node was killed", () => {
  const { clock, ledger, flow, arrives, carbon, ways } = setUp(1);
  for (let more = 0; more < 2; more++) {
    arrives(more);
    carbon(more);
    clock.nowMs += 1_000;
    if (more === 0) ledger.nodeKilled();
    clock.nowMs += 1_000;
    carbon(more);
    if (more === 0) ledger.sending(flow);
  }
  assert.deepEqual(ways().received.doubled, { allowed: 1, forbidden: 1 });
});

for (const client of [ANN, BEN, BENS_PHONE]) {
  Deno.test(`Ledger allows another order of carbons while ${client} changes nodes`, () => {
    const { clock, ledger, arrives, carbon, ways } = setUp(2);
    for (const seq of [0, 1]) arrives(seq);
    ledger.loggedIn(client, { ...elsewhere(clock.nowMs), isResumed: true });
    for (const seq of [1, 0]) carbon(seq);
    assert.deepEqual(ways().received.reordered, { allowed: 1, forbidden: 0 });
  });
}

Deno.test("Ledger.addDevice() refuses a second further device", () => {
  const { ledger } = setUp(0);
  assert.throws(() => ledger.addDevice("ben@a/tablet", BEN), RangeError);
});
