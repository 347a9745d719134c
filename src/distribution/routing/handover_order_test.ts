import assert from "node:assert/strict";
import fc from "fast-check";
import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, stanza } from "./testing/router_fixture.ts";
import { HandoverOrder } from "./handover_order.ts";
import type { HandoverOrderOptions } from "./handover_order.ts";

const BOB = "bob@example.com";
const HOSTS = { globalHost: "example.com", hosts: new Set(["example.com"]) };

class Order {
  /** Nodes that bob is at. */
  readonly at = new Set(["n1"]);
  readonly link = new FakeLink();
  /** Stanzas that went on, with the reason. */
  readonly resumed: string[] = [];
  readonly order: HandoverOrder;

  constructor(options?: HandoverOrderOptions, budget?: FairShares) {
    this.order = new HandoverOrder(
      HOSTS,
      ({ sequence }, reason) => void this.resumed.push(`${reason} ${sequence}`),
      options,
      budget,
    );
  }

  envelope(sequence: number, { from = "alice@example.com/a", to = BOB } = {}): Envelope {
    return new Envelope(fromLink(stanza(from, to), { sequence }), this.link, sequence);
  }

  handed(sequence: number, node = "n1"): Envelope {
    const envelope = this.envelope(sequence);
    this.order.handed(envelope, node);
    return envelope;
  }

  keep(envelope: Envelope) {
    return this.order.keepBehind(envelope, (node) => this.at.has(node));
  }

  settled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

Deno.test("HandoverOrder makes no stanza wait while the recipient stays, or after all are settled", () => {
  const test = new Order();
  const first = test.handed(1);
  assert.equal(test.keep(test.envelope(2)), undefined);
  first.settle();
  assert.deepEqual(test.link.settled, [1]);
  test.at.clear();
  assert.equal(test.keep(test.envelope(3)), undefined, "no stanza is open");
});

Deno.test("HandoverOrder holds back later stanzas until the last open one is settled", async () => {
  const test = new Order();
  const open = [test.handed(1), test.handed(2)];
  test.at.clear();
  const kept = test.keep(test.envelope(3));
  assert.ok(typeof kept === "object" && kept.node === "n1");
  test.at.add("n1"); // even then 4 must not overtake 3
  assert.ok(test.keep(test.envelope(4)));
  open[1]!.settle();
  await test.settled();
  assert.deepEqual(test.resumed, []);
  open[0]!.settle();
  await test.settled();
  assert.deepEqual(test.resumed, ["waited 3", "waited 4"]);
  assert.equal(test.order.waiting, 0);
  assert.equal(test.keep(test.envelope(5)), undefined);
});

Deno.test("HandoverOrder resumes stanzas that a node gave back before those that waited", async () => {
  const test = new Order();
  const open = [test.handed(1), test.handed(2), test.handed(3)];
  test.at.clear();
  test.keep(test.envelope(4));
  assert.equal(test.order.takeBack(open[0]!, true), true);
  assert.equal(test.order.takeBack(open[1]!, false), false, "the caller answers it");
  assert.equal(test.order.takeBack(open[2]!, true), true);
  test.keep(test.envelope(5));
  await test.settled();
  assert.deepEqual(test.resumed, ["node-gone 1", "node-gone 3", "waited 4", "waited 5"]);
  open[0]!.settle();
  assert.deepEqual(test.link.settled, [1], "the duty is the same as before the handover");
  assert.equal(test.order.takeBack(test.envelope(9), true), false, "it was never handed");
});

Deno.test("HandoverOrder resumes by age a stanza that comes to wait after younger ones", async () => {
  const test = new Order();
  const open = test.handed(1);
  test.at.clear();
  for (const sequence of [3, 4, 2, 5]) assert.ok(test.keep(test.envelope(sequence)));
  open.settle();
  await test.settled();
  assert.deepEqual(test.resumed, ["waited 2", "waited 3", "waited 4", "waited 5"]);
});

Deno.test("HandoverOrder lets a stanza pass that others wait for when it comes again", () => {
  const test = new Order();
  test.handed(1);
  test.handed(2);
  test.at.clear();
  test.keep(test.envelope(3));
  assert.equal(test.keep(test.envelope(2)), undefined);
  const again = test.envelope(2);
  test.order.handed(again, "n2");
  assert.equal(again.fate, test.link, "it is counted once");
  assert.ok(test.keep(test.envelope(4)), "others still wait");
});

Deno.test("HandoverOrder keeps each pair of sender and recipient, and each process, apart", () => {
  const test = new Order();
  test.handed(1);
  test.at.clear();
  for (
    const other of [
      test.envelope(2, { from: "carol@example.com/c" }),
      test.envelope(2, { to: `${BOB}/phone` }),
      new Envelope({ ...test.envelope(2), process: 77 }),
    ]
  ) assert.equal(test.keep(other), undefined);
});

Deno.test("HandoverOrder passes `held` and `leftOpen` on to the settler before it", () => {
  const held: number[] = [];
  const test = new Order();
  const own = new Envelope(test.envelope(1), { settle() {}, held: (n) => void held.push(n) }, 7);
  test.order.handed(own, "n1");
  assert.deepEqual([own.wantsHeld, own.isHeldBefore], [true, false]);
  own.held();
  assert.deepEqual(held, [7]);
  const carried = test.handed(2);
  assert.deepEqual([carried.wantsHeld, carried.isHeldBefore], [false, true]);
  carried.leaveOpen();
  assert.deepEqual(test.link.left, [2]);
});

Deno.test("HandoverOrder holds one sender's stanzas up to its share of the bounds, a fifth", () => {
  const bytes = new Order().envelope(1).stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
  for (const options of [{ maxWaiting: 10 }, { maxWaitingBytes: 10 * bytes }]) {
    const test = new Order(options);
    test.handed(1);
    test.at.clear();
    assert.ok(typeof test.keep(test.envelope(2)) === "object");
    assert.ok(typeof test.keep(test.envelope(3)) === "object");
    assert.equal(test.keep(test.envelope(4)), "full");
    assert.deepEqual([test.order.waiting, test.order.waitingBytes], [2, 2 * bytes]);
    const [first, second] = [1, 2].map((sequence) =>
      fromLink(stanza("carol@example.com/c", BOB), { sequence })
    );
    test.order.handed(first!, "n1");
    assert.ok(typeof test.keep(second!) === "object", "another sender finds room");
  }
});

Deno.test("HandoverOrder.drain() returns the given-back and the waiting stanzas, in order", async () => {
  const test = new Order();
  const open = [test.handed(1), test.handed(2)];
  test.at.clear();
  test.keep(test.envelope(3));
  test.order.takeBack(open[0]!, true);
  assert.deepEqual(test.order.drain().map(({ sequence }) => sequence), [1, 3]);
  open[1]!.settle();
  await test.settled();
  assert.deepEqual([test.resumed, test.order.waiting], [[], 0]);
});

Deno.test("HandoverOrder leaves a stanza that comes back after drain() to its caller, alone", async () => {
  const budget = new FairShares();
  const test = new Order({}, budget);
  const open = [test.handed(1), test.handed(2)];
  test.at.clear();
  test.keep(test.envelope(3));
  assert.equal(test.order.drain().length, 1);
  assert.deepEqual(open.map((each) => test.order.takeBack(each, true)), [false, false]);
  await test.settled();
  assert.deepEqual(test.resumed, []);
  assert.deepEqual([budget.items, budget.bytes, test.order.waiting], [0, 0, 0]);
});

Deno.test("HandoverOrder delivers in order whatever happens to open stanzas", async () => {
  const steps = fc.array(
    fc.record({
      kind: fc.constantFrom("send", "move", "settle", "return"),
      pick: fc.nat(7),
    }),
    { maxLength: 60 },
  );
  await fc.assert(fc.asyncProperty(steps, async (all) => {
    const arrived: number[] = [];
    /** Stanzas by node that it has neither delivered nor given back, in order. */
    const open: { readonly envelope: Envelope; readonly node: string }[] = [];
    let place = "n1";
    let sequence = 0;
    const route = (envelope: Envelope) => {
      if (order.keepBehind(envelope, (node) => node === place)) return;
      order.handed(envelope, place);
      open.push({ envelope, node: place });
    };
    const order: HandoverOrder = new HandoverOrder(HOSTS, route);
    const link = new FakeLink();
    const settleFirst = () => {
      const { envelope } = open.shift()!;
      arrived.push(envelope.sequence);
      envelope.settle();
    };
    for (const { kind, pick } of all) {
      if (kind === "send") {
        sequence++;
        const fields = fromLink(stanza("alice@example.com/a", BOB), { sequence });
        route(new Envelope(fields, link, sequence));
      } else if (kind === "move") place = `n${pick % 3}`;
      else if (kind === "settle" && open.length > 0) settleFirst();
      else if (kind === "return" && open.length > 0) {
        // A node that ends gives back all its open stanzas. Those that it delivered are settled.
        const { node } = open[pick % open.length]!;
        const back = open.filter((each) => each.node === node);
        for (const each of back) open.splice(open.indexOf(each), 1);
        for (const { envelope } of back) order.takeBack(envelope, true);
      }
      await Promise.resolve();
    }
    while (open.length > 0 || order.waiting > 0) {
      if (open.length > 0) settleFirst();
      await Promise.resolve();
    }
    assert.deepEqual(arrived, Array.from({ length: sequence }, (_, i) => i + 1));
    assert.equal(link.settled.length, sequence);
  }));
});

Deno.test("HandoverOrder keeps a component's stanzas for one occupant behind those for another", () => {
  const order = new Order();
  const say = (nick: string, sequence: number) =>
    order.envelope(sequence, { from: `room@muc.example.com/${nick}` });
  order.order.handed(say("a", 1), "n1");
  order.at.clear();
  assert.ok(order.keep(say("a", 2)));
  assert.ok(order.keep(say("b", 3)), "it would overtake the other two");
  assert.equal(order.order.waiting, 2);
});
