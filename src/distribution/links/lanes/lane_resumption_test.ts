import assert from "node:assert/strict";
import fc from "fast-check";
import { testEnvelope, TestSettler } from "../testing/kit.ts";
import { InboundLane } from "./inbound_lane.ts";
import type { Sent } from "./testing/lanes.ts";
import { ack, bindingOf, flush, newLane, PEER } from "./testing/lanes.ts";

Deno.test("Lane.acknowledge() settles up to a number and in ranges, each stanza once", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  for (let i = 1; i <= 9; i++) lane.append(testEnvelope(i, { settler }), binding);
  flush(lane);
  assert.ok(lane.acknowledge(ack(7, 2, [[4, 2]])));
  assert.deepEqual(settler.settled, [1, 2, 4, 5]);
  assert.ok(lane.acknowledge(ack(7, 2, [[4, 2]])));
  assert.ok(lane.acknowledge(ack(9, 9)));
  assert.deepEqual(settler.settled, [1, 2, 4, 5, 3, 6, 7, 8, 9]);
  assert.equal(lane.items, 0);
  assert.equal(binding.held, 0);
});

Deno.test("Lane.acknowledge() refuses numbers that were not sent on this connection", () => {
  const lane = newLane();
  lane.resume(PEER, 0);
  lane.append(testEnvelope(1), bindingOf(lane));
  assert.equal(lane.acknowledge(ack(1, 0)), false);
  flush(lane);
  assert.equal(lane.acknowledge(ack(1, 0)), true);
  assert.equal(lane.acknowledge(ack(2, 0)), false);
});

Deno.test("Lane.acknowledge() ignores replayed and outdated ACKs", () => {
  const lane = newLane();
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  for (let i = 1; i <= 6; i++) lane.append(testEnvelope(i, { settler }), binding);
  flush(lane);
  const latest = ack(5, 2, [[4, 1]]);
  for (let i = 0; i < 3; i++) {
    assert.ok(lane.acknowledge(latest));
    for (const outdated of [ack(0, 0), ack(1, 0), ack(2, 1), ack(4, 0, [[2, 1], [4, 1]])]) {
      assert.ok(lane.acknowledge(outdated));
    }
    assert.deepEqual(settler.settled, [1, 2, 4]);
    assert.deepEqual([lane.items, lane.received, flush(lane)], [3, 5, []]);
  }
  for (const early of [ack(7, 0), ack(7, 7), ack(Number.MAX_SAFE_INTEGER, 2)]) {
    assert.equal(lane.acknowledge(early), false);
    assert.deepEqual(settler.settled, [1, 2, 4]);
  }
  assert.ok(lane.acknowledge(ack(6, 6)));
  assert.deepEqual(settler.settled, [1, 2, 4, 3, 5, 6]);
});

Deno.test("Lane.acknowledge() does not go through numbers again that were settled long ago", () => {
  const lane = newLane({ laneMaxItems: 200_000, laneMaxBytes: 1 << 28 });
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  for (let i = 1; i <= 100_000; i++) lane.append(testEnvelope(1), binding);
  flush(lane);
  assert.ok(lane.acknowledge(ack(100_000, 100_000)));
  const looks = countLooks(() => assert.ok(lane.acknowledge(ack(100_000, 0, [[2, 99_999]]))));
  assert.ok(looks < 10, `${looks} entries were looked for`);
});

Deno.test("Lane.acknowledge() does not go through numbers again behind one that stays open", () => {
  const lane = newLane({ laneMaxItems: 200_000, laneMaxBytes: 1 << 28 });
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  for (let i = 1; i <= 100_000; i++) lane.append(testEnvelope(i, { settler }), binding);
  flush(lane);
  assert.ok(lane.acknowledge(ack(99_999, 0, [[2, 99_998]])));
  assert.deepEqual([lane.items, settler.settled.length], [2, 99_998]);
  const again = ack(99_999, 0, [[2, 10], [20, 99_980]]);
  for (const next of [again, ack(100_000, 99_999), ack(100_000, 0, [[100_000, 1]])]) {
    const looks = countLooks(() => assert.ok(lane.acknowledge(next)));
    assert.ok(looks < 10, `${looks} entries were looked for`);
  }
  assert.deepEqual(settler.settled.slice(99_998), [1, 100_000]);
  assert.equal(lane.items, 0);
});

/** Counts lookups in maps while `run` runs: the work of a lane for each stanza. */
function countLooks(run: () => void): number {
  const { get } = Map.prototype;
  let looks = 0;
  Map.prototype.get = function (key: unknown) {
    looks++;
    return get.call(this, key);
  };
  try {
    run();
  } finally {
    Map.prototype.get = get;
  }
  return looks;
}

Deno.test("Lane.resume() sends again what the peer has not received, under the same numbers", () => {
  const lane = newLane();
  lane.resume(PEER, 0);
  for (let i = 1; i <= 6; i++) lane.append(testEnvelope(i), bindingOf(lane));
  flush(lane);
  lane.acknowledge(ack(4, 1, [[3, 1]]));
  assert.equal(lane.resume(PEER, 4), "resumed");
  assert.equal(lane.lastGone, 1);
  assert.deepEqual(flush(lane).map((frame) => frame.number), [5, 6]);
});

Deno.test("Lane.resume() gives all back in order when the peer's process is a new one", () => {
  const lane = newLane();
  lane.resume(PEER, 0);
  for (let i = 1; i <= 6; i++) lane.append(testEnvelope(i), bindingOf(lane));
  flush(lane);
  lane.acknowledge(ack(4, 2));
  lane.append(testEnvelope(7), bindingOf(lane));
  assert.equal(lane.resume(PEER + 1, 2), "restarted");
  const taken = lane.takeForRestart();
  assert.deepEqual(
    taken.map(({ entry, wasSent }) => [entry.toEnvelope(wasSent).sequence, wasSent]),
    [[3, true], [4, true], [5, true], [6, true], [7, false]],
  );
  assert.equal(lane.items, 0);
  lane.append(testEnvelope(8), bindingOf(lane));
  assert.deepEqual(
    flush(lane).map((frame) => frame.number),
    [3],
    "the number that the new peer expects",
  );
});

Deno.test("Lane.resume() detects a process that has lost its memory", () => {
  const lane = newLane();
  lane.resume(PEER, 0);
  for (let i = 1; i <= 4; i++) lane.append(testEnvelope(i), bindingOf(lane));
  flush(lane);
  lane.acknowledge(ack(4, 0));
  assert.equal(lane.resume(PEER, 0), "restarted");
});

Deno.test("Lane.resume() refuses a peer that claims a number that was never sent", () => {
  const lane = newLane();
  lane.append(testEnvelope(1), bindingOf(lane));
  assert.equal(lane.resume(PEER, 1), "impossible");
});

Deno.test("Lane.takeAll() never uses a number twice", () => {
  const lane = newLane();
  lane.resume(PEER, 0);
  for (let i = 1; i <= 3; i++) lane.append(testEnvelope(i), bindingOf(lane));
  flush(lane);
  assert.equal(lane.takeAll().length, 3);
  assert.equal(lane.lastGone, 3);
  lane.append(testEnvelope(4), bindingOf(lane));
  assert.equal(lane.resume(PEER, 3), "resumed");
  assert.deepEqual(flush(lane).map((frame) => frame.number), [4]);
});

Deno.test("Lane.adopt() renumbers, marks possible repeats and retires the old lane", () => {
  const from = newLane({}, 1);
  const to = newLane({}, 2);
  const settler = new TestSettler();
  from.resume(PEER, 0);
  to.resume(PEER, 0);
  to.append(testEnvelope(1), bindingOf(to));
  from.append(testEnvelope(2, { settler }), bindingOf(from));
  flush(from);
  from.append(testEnvelope(3, { settler }), bindingOf(from));
  const taken = from.takeAll();
  to.noteRetired(1);
  for (const { entry, wasSent } of taken) to.adopt(entry, wasSent);
  assert.deepEqual(to.retired.takeUntold(), [1]);
  assert.deepEqual(to.retired.takeUntold(), []);
  assert.deepEqual(flush(to), [
    { number: 1, sequence: 1, mayBeRepeat: false },
    { number: 2, sequence: 2, mayBeRepeat: true },
    { number: 3, sequence: 3, mayBeRepeat: false },
  ]);
  to.resume(PEER, 1);
  assert.deepEqual(to.retired.takeUntold(), [1], "told again until the peer has the moved stanzas");
  flush(to);
  to.acknowledge(ack(3, 3));
  to.resume(PEER, 3);
  assert.deepEqual(to.retired.takeUntold(), []);
  assert.deepEqual(settler.settled, [2, 3]);
});

Deno.test("Lane retires no lane that a new process never had, nor one that is up again", () => {
  const lane = newLane({}, 3);
  lane.resume(PEER, 0);
  for (const retired of [1, 2]) lane.noteRetired(retired);
  lane.retired.forget(1);
  assert.deepEqual(lane.retired.takeUntold(), [2]);
  assert.equal(lane.resume(PEER, 0), "resumed");
  assert.equal(lane.resume(PEER + 1, 0), "restarted");
  lane.takeForRestart();
  assert.deepEqual(lane.retired.takeUntold(), []);
});

type Move =
  | { readonly kind: "send" }
  | { readonly kind: "flush"; readonly credit: number }
  | { readonly kind: "arrive"; readonly count: number }
  | { readonly kind: "settle"; readonly pick: number }
  | { readonly kind: "ack" }
  | { readonly kind: "cut" };

const MOVE: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ kind: "send" as const }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("flush" as const), credit: fc.nat(3000) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("arrive" as const), count: fc.nat(6) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("settle" as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.constant({ kind: "ack" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "cut" as const }) },
);

Deno.test("Lane and InboundLane lose nothing, double nothing and keep order over cuts", () => {
  fc.assert(
    fc.property(fc.array(MOVE, { maxLength: 200 }), (moves) => {
      const lane = newLane({ laneMaxItems: 50 });
      const binding = bindingOf(lane);
      const settler = new TestSettler();
      const inbound = new InboundLane(77, 1, { host: "dc1", lastGone: 0, maxUnsettled: 10_000 });
      const wire: Sent[] = [];
      const arrived: number[] = [];
      const open = new Map<number, number>(); // number → sequence, not settled by the peer
      const settledThere: number[] = [];
      let sequence = 0;
      const connect = () => {
        wire.length = 0;
        inbound.attach(lane.lastGone, () => {});
        assert.equal(lane.resume(PEER, inbound.received), "resumed");
        tell();
      };
      const tell = () => {
        for (const frame of inbound.takeAcks(0)) assert.ok(lane.acknowledge(frame));
      };
      const arrive = (count: number) => {
        for (const frame of wire.splice(0, count)) {
          assert.equal(inbound.receive(frame.number), "new");
          arrived.push(frame.sequence);
          open.set(frame.number, frame.sequence);
        }
      };
      const settle = (pick: number) => {
        const number = [...open.keys()][pick % open.size];
        if (number === undefined) return;
        settledThere.push(open.get(number)!);
        open.delete(number);
        inbound.settle(number);
      };
      connect();
      for (const move of moves) {
        if (move.kind === "send") {
          if (lane.append(testEnvelope(sequence + 1, { settler }), binding)) sequence++;
        } else if (move.kind === "flush") wire.push(...flush(lane, move.credit));
        else if (move.kind === "arrive") arrive(move.count);
        else if (move.kind === "settle") settle(move.pick);
        else if (move.kind === "ack") tell();
        else connect();
        assert.ok(lane.items <= 50);
        assert.equal(binding.held, lane.items);
      }
      connect();
      wire.push(...flush(lane));
      arrive(Infinity);
      while (open.size > 0) settle(0);
      tell();
      const all = Array.from({ length: sequence }, (_, i) => i + 1);
      assert.deepEqual(arrived, all);
      assert.deepEqual([...settledThere].sort((a, b) => a - b), all);
      assert.deepEqual([...settler.settled].sort((a, b) => a - b), all);
      assert.equal(lane.items, 0);
    }),
    { numRuns: 300 },
  );
});

Deno.test("Lane.markLate() marks only stanzas that the node before may have given to another node", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  const link = { settle() {}, leftOpen() {} };
  const takenBack = testEnvelope(4, { settler: link });
  takenBack.arrived("taken-back");
  lane.append(testEnvelope(1, { settler: link }), binding);
  lane.append(testEnvelope(2, { settler: link }), binding);
  lane.append(testEnvelope(3, { settler: new TestSettler() }), binding);
  lane.append(takenBack, binding);
  lane.resume(PEER, 0);
  flush(lane);
  lane.resume(PEER, 1);
  lane.markLate();
  assert.deepEqual(flush(lane).map(({ sequence, mayBeRepeat }) => [sequence, mayBeRepeat]), [
    [2, true],
    [3, false],
    [4, false],
  ]);
});
