import assert from "node:assert/strict";
import fc from "fast-check";
import { FairShares } from "../../base/mod.ts";
import { BareJid, FullJid } from "../jid/jid.ts";
import { parseJid } from "../jid/jid_parser.ts";
import { toHandled } from "./counter.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";
import { UNACKED_OVERHEAD_BYTES, UnackedQueue } from "./unacked_queue.ts";

const JID = new BareJid("a", "example.com");
const LIMITS = { maxItems: 3, maxBytes: 1_000_000, maxUnsettled: 1_000, maxOwedBytes: 0 };

class Numbered extends OwnDelivery {
  readonly number: number;
  settled = 0;
  released = 0;
  detached = 0;

  constructor(number: number, byteLength = 10, type: "chat" | "error" = "chat") {
    const bytes = new Uint8Array(byteLength);
    super({ kind: "message", type, from: JID, to: JID, bytes });
    this.number = number;
  }

  override acknowledged(): void {
    this.settled++;
  }

  override release(): boolean {
    return ++this.released === 1;
  }

  override detach(): void {
    this.detached++;
  }
}

const settle = (delivery: { acknowledged(): void }) => delivery.acknowledged();

function writeAll(queue: UnackedQueue): number[] {
  const written: number[] = [];
  for (let next = queue.nextToWrite; next !== undefined; next = queue.nextToWrite) {
    written.push((next as Numbered).number); // only those are pushed here
    queue.wrote();
  }
  return written;
}

Deno.test("UnackedQueue.isOver is true at one item or byte past its bounds", () => {
  const cost = 10 + UNACKED_OVERHEAD_BYTES;
  for (const limits of [LIMITS, { ...LIMITS, maxItems: 9, maxBytes: 3 * cost }]) {
    const queue = new UnackedQueue(limits);
    for (let n = 1; n <= 3; n++) queue.push(new Numbered(n));
    assert.ok(!queue.isOver);
    queue.push(new Numbered(4, 0));
    assert.ok(queue.isOver);
  }
});

Deno.test("UnackedQueue has separate room, in bytes, for owed errors", () => {
  const cost = 10 + UNACKED_OVERHEAD_BYTES;
  const queue = new UnackedQueue({
    ...LIMITS,
    maxItems: 1,
    maxBytes: cost,
    maxOwedBytes: 5 * cost,
  });
  const push = (n: number, type: "chat" | "error") => queue.push(new Numbered(n, 10, type));
  push(1, "chat");
  assert.ok(
    queue.isFullFor(10, false) && !queue.isFullFor(5 * cost - UNACKED_OVERHEAD_BYTES, true),
  );
  assert.ok(queue.isFullFor(5 * cost - UNACKED_OVERHEAD_BYTES + 1, true));
  for (let n = 2; n <= 6; n++) push(n, "error");
  assert.ok(queue.isFullFor(0, true) && !queue.isOver);
  writeAll(queue);
  queue.acknowledge(1, settle);
  assert.ok(!queue.isFullFor(10, false), "owed errors take no room from the rest");
  push(7, "chat");
  assert.ok(!queue.isOver);
  push(8, "error");
  assert.ok(queue.isOver);
  writeAll(queue);
  queue.acknowledge(2, settle);
  assert.ok(!queue.isOver && queue.isFullFor(10, false));
  assert.equal(queue.bytes, 6 * cost);
  queue.takeAll();
  assert.ok(!queue.isFullFor(10, false) && !queue.isFullFor(4 * cost, true));
});

Deno.test("UnackedQueue refuses an acknowledgement of unwritten stanzas, or one that goes back", () => {
  const queue = new UnackedQueue(LIMITS);
  for (let n = 1; n <= 3; n++) queue.push(new Numbered(n));
  assert.ok(!queue.acknowledge(1, settle));
  queue.wrote();
  queue.wrote();
  assert.ok(!queue.acknowledge(3, settle));
  assert.ok(queue.acknowledge(2, settle));
  assert.ok(!queue.acknowledge(1, settle));
  assert.equal(queue.items, 1);
});

Deno.test("UnackedQueue.dropFirst() removes a stanza that its client never counts", () => {
  const budget = new FairShares({ maxBytes: 1e9 });
  const queue = new UnackedQueue(LIMITS, { budget, jid: ALICE });
  for (const number of [1, 2, 3]) queue.push(new Numbered(number));
  assert.deepEqual(writeAll(queue), [1, 2, 3]);
  queue.detach();
  assert.ok(queue.acknowledge(1, settle));
  assert.equal((queue.first as Numbered).number, 2);
  queue.dropFirst();
  queue.rewind();
  assert.deepEqual([queue.items, queue.acknowledgedCount], [1, 1]);
  assert.equal(queue.bytes, 10 + UNACKED_OVERHEAD_BYTES);
  assert.equal(budget.bytes, queue.bytes);
  assert.deepEqual(writeAll(queue), [3]);
  assert.equal(queue.sentCount, 2);
  assert.ok(queue.acknowledge(2, settle));
  assert.deepEqual([queue.items, queue.bytes, queue.first], [0, 0, undefined]);
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

Deno.test("UnackedQueue detaches each stanza once", () => {
  const queue = new UnackedQueue(LIMITS);
  const all = [1, 2, 3].map((n) => new Numbered(n));
  queue.push(all[0]!);
  queue.detach();
  writeAll(queue);
  queue.acknowledge(1, settle);
  queue.push(all[1]!);
  queue.push(all[2]!);
  queue.detach();
  queue.detach();
  assert.deepEqual(all.map(({ detached }) => detached), [1, 1, 1]);
});

Deno.test("UnackedQueue keeps a stanza as the client gets it beside the one that others have", () => {
  const budget = new FairShares({ maxBytes: 1e9 });
  const queue = new UnackedQueue(LIMITS, { budget, jid: ALICE });
  const [plain, stamped] = [new Numbered(1), new Numbered(2)];
  const slab = new Uint8Array(100);
  const told = { ...stamped.stanza, bytes: slab.subarray(0, 25) };
  queue.push(plain);
  queue.push(stamped, told);
  assert.equal(queue.bytes, 2 * (10 + UNACKED_OVERHEAD_BYTES) + 25);
  assert.equal(queue.toldOf(plain), plain.stanza);
  assert.equal(queue.toldOf(stamped), told);
  queue.detach();
  assert.equal(queue.toldOf(stamped).bytes.buffer.byteLength, 25);
  writeAll(queue);
  assert.ok(queue.acknowledge(2, settle));
  assert.deepEqual([queue.bytes, budget.bytes], [0, 0]);
  assert.equal(queue.toldOf(stamped), stamped.stanza, "nothing is left");
  queue.push(stamped, told);
  assert.deepEqual(queue.takeAllTold(), [[stamped, told]]);
  assert.deepEqual([queue.bytes, budget.bytes], [0, 0]);
});

Deno.test("UnackedQueue releases the oldest stanzas beyond maxUnsettled", () => {
  const queue = new UnackedQueue({ ...LIMITS, maxUnsettled: 2 });
  const all = Array.from({ length: 6 }, (_, n) => new Numbered(n));
  for (const each of all.slice(0, 3)) queue.push(each);
  writeAll(queue);
  queue.acknowledge(3, settle);
  assert.deepEqual(all.slice(3).map((each) => queue.push(each)), [false, false, true]);
  assert.deepEqual(all.map(({ released }) => released), [1, 0, 0, 1, 0, 0]);
});

type Step =
  | { readonly kind: "push" | "write" | "cut" }
  /** The client handles `count` of the stanzas on their way, and acknowledges them or not. */
  | { readonly kind: "read"; readonly count: number; readonly acknowledges: boolean };

const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ kind: "push" }) },
  { weight: 3, arbitrary: fc.constant<Step>({ kind: "write" }) },
  fc.constant<Step>({ kind: "cut" }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("read" as const),
      count: fc.nat(5),
      acknowledges: fc.boolean(),
    }),
  },
);

Deno.test("UnackedQueue loses and repeats nothing for a counting client, over any cuts", () => {
  fc.assert(fc.property(
    fc.array(STEP, { maxLength: 200 }),
    fc.constantFrom(0, 2 ** 32 - 5, 2 ** 32 - 1, 7 * 2 ** 32 - 20),
    (steps, start) => {
      const queue = new UnackedQueue({ ...LIMITS, maxItems: 1_000 }, { acknowledged: start });
      const pushed: Numbered[] = [];
      const seen: number[] = [];
      let wire: number[] = [];
      const ack = () => assert.ok(queue.acknowledge(toHandled(start + seen.length), settle));
      for (const step of steps) {
        switch (step.kind) {
          case "push":
            pushed.push(new Numbered(pushed.length));
            queue.push(pushed.at(-1)!);
            break;
          case "write": {
            const next = queue.nextToWrite as Numbered | undefined; // only those are pushed
            if (next === undefined) break;
            wire.push(next.number);
            queue.wrote();
            break;
          }
          case "read":
            seen.push(...wire.splice(0, step.count));
            if (step.acknowledges) ack();
            break;
          case "cut":
            wire = [];
            ack(); // the `h` of <resume/>
            queue.rewind();
            break;
          default:
            step satisfies never;
        }
        assert.equal(queue.sentCount, toHandled(start + seen.length + wire.length));
        const unsettled = pushed.filter(({ settled }) => settled === 0);
        assert.equal(queue.items, unsettled.length);
        assert.equal(queue.bytes, unsettled.length * (10 + UNACKED_OVERHEAD_BYTES));
      }
      wire.push(...writeAll(queue));
      seen.push(...wire);
      assert.deepEqual(seen, pushed.map(({ number }) => number));
      ack();
      assert.deepEqual(pushed.map(({ settled }) => settled), pushed.map(() => 1));
      assert.deepEqual(queue.takeAll(), []);
    },
  ));
});

Deno.test("UnackedQueue.takeAll() returns the unacknowledged stanzas in order", () => {
  const queue = new UnackedQueue({ ...LIMITS, maxItems: 5_000 });
  for (let n = 0; n < 1_000; n++) queue.push(new Numbered(n));
  writeAll(queue);
  queue.acknowledge(600, settle);
  assert.deepEqual(
    queue.takeAll().map((each) => (each as Numbered).number), // only those are pushed here
    Array.from({ length: 400 }, (_, n) => 600 + n),
  );
  assert.deepEqual([queue.items, queue.bytes], [0, 0]);
});

Deno.test("OwnDelivery.detach() copies the stanza into bytes of its own", () => {
  const bytes = new Uint8Array(100).subarray(10, 20);
  const own = new OwnDelivery({ kind: "message", type: "chat", from: JID, to: JID, bytes });
  own.detach();
  assert.equal(own.stanza.bytes.buffer.byteLength, 10);
  assert.ok(own.abandoned());
});

/** Gives as many stanzas as possible to another node. */
function relayAll(queue: UnackedQueue): number[] {
  const relayed: number[] = [];
  for (let next = queue.nextToRelay; next !== undefined; next = queue.nextToRelay) {
    relayed.push((next as Numbered).number);
    queue.relayedNext();
  }
  return relayed;
}

Deno.test("UnackedQueue keeps a stanza in the place of its copy, unless another node has that", () => {
  const budget = new FairShares();
  const queue = new UnackedQueue(LIMITS, { budget, jid: ALICE });
  const copy = Object.assign(new Numbered(2), {
    isCopyOf: (other: Delivery) => other === original,
  });
  const original = new Numbered(2);
  queue.push(new Numbered(1));
  queue.push(copy);
  queue.detach();
  const { bytes } = queue;
  const told = { ...original.stanza, bytes: original.stanza.bytes.slice() };
  assert.equal(queue.replaceCopy(original, told), copy);
  assert.equal(queue.replaceCopy(original, told), undefined, "the copy is there no more");
  assert.equal(queue.bytes, bytes + told.bytes.length);
  assert.equal(queue.toldOf(original), told);
  assert.deepEqual(queue.takeAll().map((each) => (each as Numbered).number), [1, 2]);
  assert.deepEqual([queue.bytes, budget.bytes], [0, 0]);
  queue.push(copy);
  relayAll(queue);
  assert.equal(queue.replaceCopy(original, original.stanza), "relayed");
  queue.rewindRelay(0);
  assert.equal(queue.replaceCopy(original, original.stanza), copy);
});

Deno.test("UnackedQueue gives kept stanzas to another node, which settles them in order", () => {
  const queue = new UnackedQueue({ ...LIMITS, maxItems: 100 });
  const all = Array.from({ length: 5 }, (_, at) => new Numbered(at));
  for (const each of all.slice(0, 3)) queue.push(each);
  writeAll(queue);
  queue.rewindRelay(0);
  assert.deepEqual(relayAll(queue), [0, 1, 2]);
  queue.push(all[3]!);
  assert.deepEqual(relayAll(queue), [3]);
  queue.settle(2, settle);
  assert.deepEqual(all.map(({ settled }) => settled), [1, 1, 0, 0, 0]);
  assert.deepEqual([queue.items, queue.relayed, queue.acknowledgedCount], [2, 2, 2]);
  // The other node has not received the last one.
  queue.rewindRelay(1);
  queue.push(all[4]!);
  assert.deepEqual(relayAll(queue), [3, 4]);
  queue.settle(100, settle); // never more than the node received
  assert.deepEqual([queue.items, queue.bytes], [0, 0]);
  assert.deepEqual(all.map(({ settled }) => settled), [1, 1, 1, 1, 1]);
});

Deno.test("UnackedQueue still accepts its client's acknowledgement after relaying to another node", () => {
  const queue = new UnackedQueue({ ...LIMITS, maxItems: 100 });
  for (let at = 0; at < 4; at++) queue.push(new Numbered(at));
  writeAll(queue);
  queue.rewindRelay(0);
  queue.relayedNext();
  assert.equal(queue.acknowledge(4, settle), true);
  assert.deepEqual([queue.items, queue.relayed], [0, 0]);
});

const ALICE = parseJid("alice@example.com/phone") as FullJid; // it has a resourcepart

/** Builds a delivery of `stanzaBytes` bytes from `sender`. */
function from(sender: string, stanzaBytes: number, isOwed = false): OwnDelivery {
  return new OwnDelivery({
    kind: "message",
    type: isOwed ? "error" : "chat",
    from: parseJid(sender),
    to: ALICE,
    bytes: new Uint8Array(stanzaBytes),
  });
}

Deno.test("UnackedQueue counts kept stanzas for its account and detached ones for their senders, and uncounts all of them", () => {
  const kinds = fc.constantFrom(
    "push",
    "write",
    "acknowledge",
    "detach",
    "relay",
    "settle",
    "take",
  );
  const steps = fc.array(fc.record({ kind: kinds, n: fc.integer({ min: 0, max: 20 }) }));
  fc.assert(fc.property(steps, (todo) => {
    const budget = new FairShares({ maxBytes: 1e9 });
    const queue = new UnackedQueue({ ...LIMITS, maxItems: 1e6 }, { budget, jid: ALICE });
    for (const { kind, n } of todo) {
      if (kind === "push") {
        queue.push(from(n % 3 === 0 ? "bob@example.com/x" : "rooms.x/y", 5_000 * n, n % 5 === 0));
      } else if (kind === "write") {
        for (let left = n; left > 0 && queue.nextToWrite !== undefined; left--) queue.wrote();
      } else if (kind === "acknowledge") {
        queue.acknowledge(toHandled(queue.acknowledgedCount + n), settle);
      } else if (kind === "detach") queue.detach();
      else if (kind === "relay") {
        for (let left = n; left > 0 && queue.nextToRelay !== undefined; left--) queue.relayedNext();
      } else if (kind === "settle") queue.settle(n, settle);
      else queue.takeAll();
      assert.equal(budget.bytes, queue.bytes);
    }
    queue.takeAll();
    assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
  }));
});

Deno.test("UnackedQueue counts detached stanzas for their senders, except owed errors", () => {
  const budget = new FairShares({ maxBytes: 1e9 });
  const queue = new UnackedQueue(LIMITS, { budget, jid: ALICE });
  queue.push(from("bob@example.com/x", 20_000));
  queue.push(from("bob@example.com/y", 30_000));
  queue.push(from("carol@example.com/z", 40_000, true));
  assert.ok(budget.bytesOf("to alice@example.com") > 60_000);
  assert.equal(budget.bytesOf("bob@example.com"), 0, "a client is about to acknowledge them");
  queue.detach();
  assert.equal(budget.bytesOf("bob@example.com"), 50_000 + 2 * UNACKED_OVERHEAD_BYTES);
  assert.equal(budget.bytesOf("carol@example.com"), 0);
});

Deno.test("UnackedQueue counts each user of every host that users log in to separately", () => {
  const budget = new FairShares({ maxBytes: 1e9 });
  const hosts = new Set(["example.com", "dc1.example.com"]);
  const isUserHost = (domain: string) => hosts.has(domain);
  for (const text of ["alice@example.com/x", "carol@dc1.example.com/y"]) {
    const queue = new UnackedQueue(LIMITS, { budget, jid: parseJid(text) as FullJid, isUserHost });
    for (const host of [...hosts, "rooms.example.com"]) queue.push(from(`eve@${host}/z`, 10));
    queue.detach();
  }
  const cost = 2 * (10 + UNACKED_OVERHEAD_BYTES);
  for (const holder of ["eve@example.com", "eve@dc1.example.com", "rooms.example.com"]) {
    assert.equal(budget.bytesOf(holder), cost, holder);
  }
  for (const host of hosts) assert.equal(budget.bytesOf(host), 0, host);
});

Deno.test("UnackedQueue.hasBudgetFor() checks room, the account's share, and for long waits the sender's share", () => {
  const budget = new FairShares({ maxBytes: 4_000_000 });
  const queue = new UnackedQueue(LIMITS, { budget, jid: ALICE });
  const has = (sender: string, isForLong: boolean, isOwed = false) =>
    queue.hasBudgetFor(from(sender, 1000).stanza, { isOwed, isForLong });
  budget.grow(800_000);
  budget.owe({ singles: ["eve@example.com"], crowds: [] }, 800_000);
  assert.equal(has("eve@example.com/x", true), false, "800 000 is all that a sender may have");
  assert.equal(has("eve@example.com/x", false), true);
  assert.equal(has("eve@example.com/x", true, true), true);
  assert.equal(has("bob@example.com/x", true), true);
  budget.owe({ singles: ["to alice@example.com"], crowds: [] }, 800_000);
  assert.equal(
    has("bob@example.com/x", true),
    true,
    "the share is not checked while this queue holds little",
  );
  queue.push(from("bob@example.com/x", 84_000));
  budget.grow(2_800_000);
  assert.equal(has("bob@example.com/x", true), true);
  queue.push(from("bob@example.com/x", 44_500));
  assert.equal(has("bob@example.com/x", true), false, "another step on the tab is past the share");
  const other = new UnackedQueue(LIMITS, { budget });
  budget.grow(262_000);
  assert.equal(
    other.hasBudgetFor(from("a@b", 9_000).stanza, { isOwed: true, isForLong: true }),
    false,
  );
});
