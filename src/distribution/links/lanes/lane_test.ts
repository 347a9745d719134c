import assert from "node:assert/strict";
import fc from "fast-check";
import { FairShares, ShareTab } from "../../../base/mod.ts";
import { carbonEnvelope, Envelope } from "../../mod.ts";
import {
  contextFrame,
  decodeContext,
  decodeStanza,
  FRAME_TYPE,
  FrameDecoder,
  helloFrame,
  readNumber,
} from "../../wire/mod.ts";
import { testEnvelope, TestSettler } from "../testing/kit.ts";
import { FRAME_SLAB_BYTES } from "./frame_slabs.ts";
import { InboundLane } from "./inbound_lane.ts";
import type { LaneOptions } from "./lane.ts";
import { Lane } from "./lane.ts";
import type { SenderBinding } from "./lane_entry.ts";

const LIMITS: LaneOptions = {
  laneMaxBytes: 1 << 20,
  laneMaxItems: 1000,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  maxFrameBytes: 1 << 20,
};
const PEER = 9;
const NO_EVENTS = { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} };

function newLane(limits: Partial<LaneOptions> = {}, id = 1): Lane {
  return new Lane(id, { ...LIMITS, ...limits }, { events: NO_EVENTS });
}

function bindingOf(lane: Lane, budget = new FairShares(), sender = "alice"): SenderBinding {
  const tab = new ShareTab(budget, { singles: [sender], crowds: [] });
  return { sender, lane, held: 0, tab, usedTick: 0, isPressured: false };
}

interface Sent {
  readonly number: number;
  readonly sequence: number;
  readonly mayBeRepeat: boolean;
}

/** Makes a carbon with the number of its message, for an account at the far end. */
const carbonOf = (message: Envelope) =>
  carbonEnvelope(message, { ...message.stanza, to: message.stanza.from.bare });

function laneWithCarbons(id = 1): Lane {
  return new Lane(id, LIMITS, { events: NO_EVENTS, carbonOf });
}

/** Frames that a lane writes: number in the lane, and marks of carbons. */
function written(lane: Lane): string[] {
  const seen: string[] = [];
  lane.flush(Infinity, (bytes) => {
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
      const { sequence, bringsCarbon, isCarbon, mayBeRepeat } = decodeStanza(bytes, at, end);
      const marks = `${bringsCarbon ? "+" : ""}${isCarbon ? "c" : ""}${mayBeRepeat ? "?" : ""}`;
      seen.push(`${readNumber(bytes, at)}: ${sequence}${marks}`);
      at = end;
    }
  });
  return seen;
}

/** Writes the frames that the lane may send and reads them back as the peer would. */
function flush(lane: Lane, creditBytes = Infinity): Sent[] {
  const sent: Sent[] = [];
  lane.flush(creditBytes, (bytes) => {
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
      assert.equal(bytes[at + 4], FRAME_TYPE.stanza);
      const { sequence, mayBeRepeat } = decodeStanza(bytes, at, end);
      sent.push({ number: readNumber(bytes, at), sequence, mayBeRepeat });
      at = end;
    }
  });
  return sent;
}

function ack(received: number, settled: number, ranges: [number, number][] = []) {
  return {
    received,
    settled,
    creditBytes: 0,
    ranges: ranges.map(([first, count]) => ({ first, count })),
  };
}

Deno.test("Lane.append() refuses a stanza whose frame the peer would not take, and goes on", () => {
  const maxFrameBytes = 20_000;
  const lane = newLane({ maxFrameBytes, laneMaxBytes: 1 << 23 });
  const binding = bindingOf(lane);
  lane.resume(PEER, 0);
  assert.equal(lane.append(testEnvelope(1, { padding: maxFrameBytes }), binding), false);
  // At both ends of the room that a frame takes besides its stanza.
  for (let padding = maxFrameBytes - 1000; padding < maxFrameBytes; padding += 10) {
    lane.append(testEnvelope(2, { padding }), binding);
  }
  const frames: number[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes }, {
    frame: (type) => void frames.push(type),
  });
  decoder.push(HELLO);
  lane.flush(Infinity, (bytes) => decoder.push(bytes.slice()));
  assert.ok(frames.length > 10);
  assert.equal(frames.length - 1, lane.items);
  assert.ok(lane.append(testEnvelope(3), binding));
});

Deno.test("Lane.flush() writes each numbered frame once, as far as the credit allows", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  assert.equal(lane.resume(PEER, 0), "resumed");
  for (let i = 1; i <= 5; i++) assert.ok(lane.append(testEnvelope(i), binding));
  assert.deepEqual(flush(lane, 1).map((frame) => frame.number), [1], "begun below the credit");
  assert.deepEqual(flush(lane, 0), []);
  assert.deepEqual(flush(lane).map((frame) => frame.sequence), [2, 3, 4, 5]);
  assert.deepEqual(flush(lane), []);
  assert.equal(lane.items, 5);
  assert.equal(binding.held, 5);
});

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

Deno.test("Lane.append() refuses at its bound of items, and goes on when some are settled", () => {
  const lane = newLane({ laneMaxItems: 3 });
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  const append = (i: number) => lane.append(testEnvelope(i, { settler }), bindingOf(lane));
  assert.deepEqual([1, 2, 3, 4].map(append), [true, true, true, false]);
  flush(lane);
  lane.acknowledge(ack(3, 1));
  assert.deepEqual([5, 6].map(append), [true, false]);
  assert.deepEqual(settler.settled, [1], "a refused stanza was not taken");
});

Deno.test("Lane.append() keeps an eighth of its items for errors that answer, and no more", () => {
  const lane = newLane({ laneMaxItems: 17 });
  const binding = bindingOf(lane);
  const append = (isOwed: boolean) => lane.append(testEnvelope(1, { isOwed }), binding);
  const count = (isOwed: boolean) => {
    let taken = 0;
    while (append(isOwed)) taken++;
    return taken;
  };
  lane.resume(PEER, 0);
  assert.deepEqual([count(false), count(true), count(false)], [15, 2, 0]);
  flush(lane);
  lane.acknowledge(ack(17, 2));
  assert.deepEqual([append(false), append(true), append(true), append(true)], [
    false,
    true,
    true,
    false,
  ], "all stanzas count, errors too");
});

Deno.test("Lane.append() keeps an eighth of its bytes for errors that answer, and no more", () => {
  for (const padding of [10, 5000, 30_000]) {
    const lane = newLane({ laneMaxBytes: 32 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
    const binding = bindingOf(lane);
    while (lane.append(testEnvelope(1, { padding }), binding));
    assert.ok(lane.allocatedBytes <= 28 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes > 27 * FRAME_SLAB_BYTES - 65_536, "the rest is used");
    while (lane.append(testEnvelope(1, { isOwed: true }), binding));
    assert.ok(lane.allocatedBytes <= 32 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes > 31 * FRAME_SLAB_BYTES - 65_536);
    assert.ok(!lane.append(testEnvelope(1, { padding }), binding));
  }
});

Deno.test("Lane.append() takes anything that fits into an empty lane", () => {
  const laneMaxBytes = 131_072;
  const large = () => {
    const { stanza, ...rest } = testEnvelope(1, { padding: 120_000 });
    return new Envelope({ ...rest, stanza });
  };
  const lane = newLane({ laneMaxBytes });
  assert.ok(lane.append(large(), bindingOf(lane)));
  assert.ok(!lane.append(large(), bindingOf(lane)));
});

Deno.test("Lane.append() refuses at its bound of allocated bytes, with small and with large frames", () => {
  for (const padding of [10, 5000, 30_000]) {
    const lane = newLane({ laneMaxBytes: 4 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
    const binding = bindingOf(lane);
    let taken = 0;
    while (lane.append(testEnvelope(taken + 1, { padding }), binding)) taken++;
    assert.ok(taken > 2, `${taken} of ${padding}`);
    assert.ok(lane.allocatedBytes <= 4 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes >= 2 * FRAME_SLAB_BYTES, "the bound is used");
    lane.resume(PEER, 0);
    flush(lane);
    lane.acknowledge(ack(taken, taken));
    assert.ok(lane.allocatedBytes <= FRAME_SLAB_BYTES);
    assert.ok(lane.append(testEnvelope(1, { padding }), binding));
  }
});

Deno.test("Lane keeps within its bound when a few stanzas stay long among many that are settled", () => {
  const lane = newLane({ laneMaxBytes: 64 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
  const binding = bindingOf(lane);
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  let number = 0;
  // Each round leaves one stanza behind; slabs kept for those alone would use up the bound.
  for (let round = 0; round < 200; round++) {
    const first = number + 1;
    for (let i = 0; i < 300; i++) {
      assert.ok(lane.append(testEnvelope(++number, { padding: 200, settler }), binding));
    }
    flush(lane);
    assert.ok(lane.acknowledge(ack(number, 0, [[first + 1, 299]])));
  }
  assert.equal(lane.items, 200);
  assert.ok(lane.allocatedBytes < 12 * FRAME_SLAB_BYTES, `${lane.allocatedBytes}`);
  const kept = lane.takeAll().map(({ entry }) => entry.toEnvelope(true).sequence);
  assert.deepEqual(kept, Array.from({ length: 200 }, (_, round) => round * 300 + 1));
});

Deno.test("Lane.isOver rises above the high-water mark and falls below the low one", () => {
  const changes: boolean[] = [];
  const lane = new Lane(1, { ...LIMITS, laneMaxItems: 100 }, {
    events: { ...NO_EVENTS, laneLevelChanged: (changed) => changes.push(changed.isOver) },
  });
  lane.resume(PEER, 0);
  for (let i = 1; i <= 50; i++) lane.append(testEnvelope(i), bindingOf(lane));
  assert.equal(lane.isOver, false);
  lane.append(testEnvelope(51), bindingOf(lane));
  assert.equal(lane.isOver, true);
  flush(lane);
  lane.acknowledge(ack(51, 25));
  assert.equal(lane.isOver, true);
  lane.acknowledge(ack(51, 26));
  assert.equal(lane.isOver, false);
  assert.deepEqual(changes, [true, false]);
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

Deno.test("Lane.flush() gives pieces that the frame decoder reads whole", () => {
  const lane = newLane({ laneMaxItems: 2000 });
  lane.resume(PEER, 0);
  for (let i = 1; i <= 700; i++) lane.append(testEnvelope(i, { padding: 100 }), bindingOf(lane));
  const pieces: Uint8Array[] = [];
  lane.flush(Infinity, (bytes) => pieces.push(bytes));
  assert.ok(pieces.length <= 4, `${pieces.length} writes for 700 frames`);
  let frames = 0;
  const decoder = new FrameDecoder({ maxFrameBytes: 1 << 20 }, { frame: () => frames++ });
  decoder.push(HELLO);
  for (const piece of pieces) decoder.push(piece);
  assert.equal(frames, 701);
});

const HELLO = helloFrame({
  lowestVersion: 1,
  highestVersion: 1,
  minorVersion: 0,
  process: 1,
  lane: 1,
  lastNumber: 0,
  datacenterId: "a",
  localHost: "dc1.example.com",
  nodeName: "n",
});

Deno.test("Lane reports once that the peer has received a stanza with a waiting settler", () => {
  const lane = newLane();
  const binding = bindingOf(lane);
  const told: string[] = [];
  const settler = {
    settle: (number: number) => void told.push(`settled ${number}`),
    held: (number: number) => void told.push(`held ${number}`),
  };
  lane.resume(PEER, 0);
  lane.append(testEnvelope(1), binding); // this settler does not wait for `held`
  for (const number of [2, 3, 4]) {
    lane.append(new Envelope(testEnvelope(number), settler, number), binding);
  }
  flush(lane);
  assert.ok(lane.acknowledge(ack(3, 1)));
  assert.deepEqual(told, ["held 2", "held 3"]);
  assert.ok(lane.acknowledge(ack(3, 2)));
  // On a new connection the peer says that it has the rest too.
  assert.equal(lane.resume(PEER, 4), "resumed");
  assert.deepEqual(told, ["held 2", "held 3", "settled 2", "held 4"]);
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

Deno.test("Lane counts its stanzas for the budget, and none once it is empty", () => {
  const steps = fc.array(fc.constantFrom("append", "ack", "restart", "take", "adopt"), {
    maxLength: 200,
  });
  fc.assert(fc.property(steps, (kinds) => {
    const budget = new FairShares({ maxBytes: 100_000_000 });
    const deps = { events: NO_EVENTS, budget };
    const lanes = [1, 2].map((id) => new Lane(id, LIMITS, deps)) as [Lane, Lane];
    const bindings = lanes.map((lane) => bindingOf(lane, budget));
    let [peer, sequence] = [PEER, 0];
    for (const lane of lanes) lane.resume(peer, 0);
    for (const kind of kinds) {
      const lane = lanes[sequence % 2]!;
      if (kind === "append") {
        sequence++;
        lane.append(testEnvelope(sequence), bindings[lane.id - 1]!);
      } else if (kind === "ack") {
        flush(lane);
        lane.acknowledge(ack(lane.sent, lane.sent - 1));
      } else if (kind === "restart") {
        if (lane.resume(++peer, lane.lastGone) === "restarted") lane.takeForRestart();
      } else if (kind === "take") lane.takeAll();
      else {
        for (const { entry, wasSent } of lanes[0].takeAll()) lanes[1].adopt(entry, wasSent);
      }
      const held = lanes.filter(({ items }) => items > 0);
      const heldBytes = held.reduce((sum, each) => sum + each.allocatedBytes, 0);
      assert.ok(Math.abs(budget.bytes - heldBytes) < 65_536 * held.length + 1);
    }
    for (const each of lanes) each.takeAll();
    assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
    assert.deepEqual(bindings.map(({ tab }) => tab.bytes), [0, 0]);
  }));
});

Deno.test("Lane.append() refuses past a sender's share of the budget, except for errors that answer", () => {
  const budget = new FairShares({ maxBytes: 5_000_000 });
  const limits = { ...LIMITS, laneMaxBytes: 1 << 30, laneMaxItems: 1_000_000 };
  const lane = new Lane(1, limits, { events: NO_EVENTS, budget });
  const eve = bindingOf(lane, budget, "eve@example.com");
  let taken = 0;
  while (lane.append(testEnvelope(++taken), eve));
  assert.ok(budget.bytes > 900_000 && budget.bytes < 1_200_000, `${budget.bytes}`);
  assert.ok(lane.append(new Envelope({ ...testEnvelope(taken), entry: "owed" }), eve));
  const alice = bindingOf(lane, budget, "alice@example.com");
  for (let n = 0; n < 100; n++) assert.ok(lane.append(testEnvelope(n), alice));
  lane.takeAll();
  assert.ok(lane.append(testEnvelope(1), eve));
});

Deno.test("Lane notes when a followed stanza is written, received, moved and settled", () => {
  const lane = newLane({}, 3);
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  const steps: string[] = [];
  const followed = (sequence: number) => {
    const envelope = testEnvelope(sequence);
    envelope.trace = {
      note: (step, { lane, number } = {}) => steps.push(`${step} ${sequence}: ${lane}/${number}`),
      settled: () => steps.push(`settled ${sequence}`),
    };
    return envelope;
  };
  lane.append(testEnvelope(1), binding);
  lane.append(followed(2), binding);
  lane.append(testEnvelope(3), binding);
  lane.append(followed(4), binding);
  flush(lane, 1); // one frame
  assert.deepEqual(steps, []);
  flush(lane);
  assert.deepEqual(steps.splice(0), ["written 2: 3/2", "written 4: 3/4"]);
  lane.acknowledge(ack(3, 2));
  assert.deepEqual(steps.splice(0), ["received 2: 3/2", "settled 2"]);

  const heir = newLane({}, 5);
  heir.resume(PEER + 1, 0);
  for (const { entry, wasSent } of lane.takeAll()) heir.adopt(entry, wasSent);
  flush(heir);
  assert.deepEqual(steps.splice(0), ["moved 4: 5/2", "written 4: 5/2"]);
  const [, back] = heir.takeAll();
  back!.entry.toEnvelope(true).settle();
  assert.deepEqual(steps, ["settled 4"]);
});

Deno.test("Lane.bringCarbon() marks the last stanza while it has not been sent, and no other", () => {
  const lane = laneWithCarbons();
  const binding = bindingOf(lane);
  const { process } = testEnvelope(1);
  lane.resume(PEER, 0, true);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false, "nothing is there");
  lane.append(testEnvelope(1), binding);
  lane.append(testEnvelope(2), binding);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  assert.equal(lane.bringCarbon({ process, sequence: 2 }), true);
  assert.deepEqual(written(lane), ["1: 1", "2: 2+"]);
  lane.append(testEnvelope(3), binding);
  assert.deepEqual(written(lane), ["3: 3"]);
  assert.equal(lane.bringCarbon({ process, sequence: 3 }), false, "it was sent");
  lane.resume(PEER, 1, true);
  assert.equal(lane.bringCarbon({ process, sequence: 3 }), false, "the peer may have it");
  assert.deepEqual(written(lane), ["2: 2+", "3: 3"]);
});

Deno.test("Lane.bringCarbon() marks nothing for a peer that makes no carbons, or is not known yet", () => {
  const lane = laneWithCarbons();
  const { process } = testEnvelope(1);
  lane.append(testEnvelope(1), bindingOf(lane));
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  lane.resume(PEER, 0, false);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  assert.deepEqual(written(lane), ["1: 1"]);
});

Deno.test("Lane.adopt() lets a carbon follow its message to a peer that may not make it", () => {
  const lane = laneWithCarbons();
  const budget = new FairShares();
  const binding = bindingOf(lane, budget);
  const settler = new TestSettler();
  lane.resume(PEER, 0, true);
  for (const sequence of [1, 2]) {
    const envelope = testEnvelope(sequence, { settler });
    lane.append(envelope, binding);
    assert.ok(lane.bringCarbon(envelope));
    if (sequence === 1) written(lane);
  }
  const [newer, older] = [laneWithCarbons(2), laneWithCarbons(3)];
  newer.resume(PEER + 1, 0, true);
  for (const { entry, wasSent } of lane.takeAll()) newer.adopt(entry, wasSent);
  assert.deepEqual(written(newer), ["1: 1+?", "2: 2+"]);
  older.resume(PEER + 2, 0, false);
  for (const { entry, wasSent } of newer.takeAll()) older.adopt(entry, wasSent);
  assert.deepEqual(written(older), ["1: 1?", "2: 1c?", "3: 2?", "4: 2c?"]);
  assert.equal(binding.held, 4);
  older.acknowledge(ack(4, 4));
  assert.deepEqual([binding.held, binding.tab.bytes], [0, 0]);
});

Deno.test("Lane.flush() writes the context of each traced stanza before the stanza, each time", () => {
  const lane = newLane();
  lane.takesContexts = true;
  lane.resume(PEER, 0);
  const binding = bindingOf(lane);
  const traced = (sequence: number) => {
    const envelope = testEnvelope(sequence);
    envelope.trace = { carried: contextOf(sequence), note() {}, settled() {} };
    return envelope;
  };
  for (const envelope of [testEnvelope(1), traced(2), testEnvelope(3), traced(4)]) {
    lane.append(envelope, binding);
  }
  assert.deepEqual(framesOf(lane, 1), ["stanza"], "no context before its stanza has credit");
  assert.deepEqual(framesOf(lane, 1), ["context 2", "stanza"]);
  assert.deepEqual(framesOf(lane), ["context 4", "stanza", "stanza"]);
  lane.append(testEnvelope(5), binding);
  assert.deepEqual(framesOf(lane), ["stanza"]);
  assert.equal(lane.resume(PEER, 2), "resumed");
  assert.deepEqual(framesOf(lane), ["context 4", "stanza", "stanza", "stanza"]);
  lane.takesContexts = false;
  assert.equal(lane.resume(PEER, 2), "resumed");
  assert.deepEqual(framesOf(lane), ["stanza", "stanza", "stanza"], "a peer of an older version");
});

function contextOf(sequence: number): Uint8Array {
  const [traceId, spanId] = ["ab".repeat(16), "cd".repeat(8)];
  return contextFrame({ process: 77, sequence, isSampled: true, traceId, spanId });
}

/** Returns the frames that a flush writes: stanzas, and contexts with the stanza's sequence. */
function framesOf(lane: Lane, creditBytes = Infinity): string[] {
  const frames: string[] = [];
  const decoder = new FrameDecoder({ maxFrameBytes: 20_000 }, {
    frame: (type, buffer, start, end) => {
      if (type === FRAME_TYPE.stanza) frames.push("stanza");
      if (type === FRAME_TYPE.context) {
        frames.push(`context ${decodeContext(buffer, start, end).sequence}`);
      }
    },
  });
  decoder.push(HELLO);
  lane.flush(creditBytes, (bytes) => decoder.push(bytes.slice()));
  return frames;
}
