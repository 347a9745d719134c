import assert from "node:assert/strict";
import fc from "fast-check";
import { balanceLine, findings, Ledger } from "./mod.ts";

/** A ledger whose clock the test sets, with one flow of `count` stanzas a millisecond apart. */
function setUp(count: number) {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  const flow = ledger.open("ann", "ben");
  for (let seq = 0; seq < count; seq++) {
    ledger.sending(flow);
    clock.nowMs++;
  }
  const arrives = (seq: number) => ledger.arrived("ben", { flow: 0, seq });
  const isAnswered = (seq: number) => ledger.answered("ann", { flow: 0, seq });
  const balance = (options = {}) => ledger.balance({ windows: [], ...options });
  return { clock, ledger, flow, arrives, isAnswered, balance };
}

const FREE = { answers: "some" } as const;
const STRICT = { answers: "none" } as const;

Deno.test("Ledger finds nothing where each stanza arrives once and in order", () => {
  const { arrives, balance, ledger } = setUp(3000);
  for (let seq = 0; seq < 3000; seq++) arrives(seq);
  assert.deepEqual(findings(balance(), STRICT), []);
  assert.equal(ledger.unsettled(), 0);
});

Deno.test("Ledger finds exactly the losses, doubles and swaps that were planted", () => {
  const count = 40;
  fc.assert(fc.property(
    fc.uniqueArray(fc.nat(count - 1), { maxLength: 8 }),
    fc.uniqueArray(fc.nat(count - 1), { maxLength: 8 }),
    fc.uniqueArray(fc.nat(count / 2 - 1), { maxLength: 8 }),
    (losses, doubles, swaps) => {
      const { arrives, balance } = setUp(count);
      const order = Array.from({ length: count }, (_, seq) => seq);
      for (const at of swaps) [order[2 * at], order[2 * at + 1]] = [2 * at + 1, 2 * at];
      const kept = order.filter((seq) => !losses.includes(seq));
      for (const seq of kept) arrives(seq);
      const doubled = doubles.filter((seq) => !losses.includes(seq));
      for (const seq of doubled) arrives(seq);
      const swapped = swaps.filter((at) =>
        !losses.includes(2 * at) && !losses.includes(2 * at + 1)
      );
      const { unknown, doubled: found, reordered, delivered } = balance();
      assert.equal(unknown.forbidden, losses.length);
      assert.equal(found.forbidden, doubled.length);
      assert.equal(reordered.forbidden, swapped.length);
      assert.equal(delivered, kept.length);
      assert.deepEqual([unknown.allowed, found.allowed, reordered.allowed], [0, 0, 0]);
      const isClean = losses.length + doubled.length + swapped.length === 0;
      assert.equal(findings(balance(), FREE).length === 0, isClean);
    },
  ));
});

Deno.test("Ledger wants no errors where none are allowed, and takes them for a fate elsewhere", () => {
  const { arrives, isAnswered, balance } = setUp(100);
  for (let seq = 0; seq < 99; seq++) arrives(seq);
  isAnswered(99);
  assert.deepEqual(findings(balance(), FREE), []);
  assert.deepEqual(findings(balance(), STRICT), ["1 answered by errors, which was not allowed"]);
  isAnswered(99);
  assert.deepEqual(findings(balance(), FREE), ["1 answered more than once"]);
});

Deno.test("Ledger allows what an unmanaged client's lost connection held to be unknown, and no more", () => {
  const { ledger, flow, arrives, balance } = setUp(10);
  arrives(0);
  ledger.connectionLost("ann", { isManaged: false, nodeDied: false });
  ledger.sending(flow); // on the next connection
  assert.deepEqual(balance().unknown, { allowed: 9, forbidden: 1 });
  assert.equal(ledger.unsettled(), 1);
});

Deno.test("Ledger allows a managed client no unknowns", () => {
  const { ledger, balance } = setUp(10);
  ledger.connectionLost("ann", { isManaged: true, nodeDied: true });
  ledger.connectionLost("ben", { isManaged: true, nodeDied: true });
  assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 10 });
});

Deno.test("Ledger leaves the stanzas of others alone when a connection is lost", () => {
  const { ledger, balance } = setUp(10);
  ledger.connectionLost("cid", { isManaged: false, nodeDied: true });
  assert.deepEqual(balance().unknown, { allowed: 0, forbidden: 10 });
});

Deno.test("Ledger allows to come twice what came just before its node was killed", () => {
  const { clock, ledger, flow, arrives, balance } = setUp(1);
  arrives(0);
  clock.nowMs += 60_000;
  ledger.sending(flow);
  arrives(1);
  clock.nowMs += 10;
  ledger.connectionLost("ben", { isManaged: true, nodeDied: true });
  arrives(0);
  arrives(1);
  assert.deepEqual(balance().doubled, { allowed: 1, forbidden: 1 });
});

Deno.test("Ledger allows no doubles where a connection was cut and the node lives", () => {
  const { ledger, arrives, balance } = setUp(1);
  arrives(0);
  ledger.connectionLost("ben", { isManaged: true, nodeDied: false });
  arrives(0);
  assert.deepEqual(balance().doubled, { allowed: 0, forbidden: 1 });
});

Deno.test("Ledger allows an error for what was delivered only after an expiry that was outlived", () => {
  const { clock, arrives, isAnswered, balance } = setUp(2);
  arrives(0);
  arrives(1);
  clock.nowMs = 2_000;
  isAnswered(0);
  clock.nowMs = 5_500;
  isAnswered(1);
  assert.deepEqual(balance().contradicted, { allowed: 0, forbidden: 2 });
  const outlived = balance({ outlivedExpiryMs: 5_000 });
  assert.deepEqual(outlived.contradicted, { allowed: 1, forbidden: 1 });
});

Deno.test("Ledger allows another order around a move to another datacenter only", () => {
  const { clock, ledger, arrives, balance } = setUp(6);
  arrives(1);
  arrives(0);
  clock.nowMs = 60_000;
  ledger.moved("ben");
  for (const seq of [3, 2]) arrives(seq);
  clock.nowMs = 120_000;
  for (const seq of [5, 4]) arrives(seq);
  assert.deepEqual(balance().reordered, { allowed: 1, forbidden: 2 });
  ledger.moved("ann");
  assert.deepEqual(balance().reordered, { allowed: 2, forbidden: 1 });
});

Deno.test("Ledger counts what nobody has sent, or not to the one it came to", () => {
  const { ledger, balance } = setUp(1);
  ledger.arrived("ben", { flow: 0, seq: 1 });
  ledger.arrived("ben", { flow: 7, seq: 0 });
  ledger.arrived("cid", { flow: 0, seq: 0 });
  ledger.answered("ben", { flow: 0, seq: 0 });
  ledger.stray();
  assert.equal(balance().strays, 5);
  assert.match(balanceLine(balance()), /1 sent, .* 5 strays/);
});

Deno.test("Ledger wants 95 % of what was due outside the windows, skipped ones included", () => {
  const { clock, ledger, isAnswered, arrives, balance } = setUp(100);
  for (let seq = 0; seq < 95; seq++) arrives(seq);
  for (let seq = 95; seq < 100; seq++) isAnswered(seq);
  assert.deepEqual(findings(balance(), FREE), []);
  clock.nowMs = 200;
  ledger.skipped();
  assert.equal(findings(balance(), FREE).length, 1);
  assert.deepEqual(findings(balance({ windows: [{ fromMs: 150, toMs: 300 }] }), FREE), []);
});
