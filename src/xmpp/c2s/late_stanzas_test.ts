import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import type { FairBounds } from "../../base/mod.ts";
import type { FullJid } from "../jid/jid.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Delivery } from "../sm/delivery.ts";
import { resolveStreamManagement } from "../sm/sm_options.ts";
import type { StreamManagementOptions } from "../sm/sm_options.ts";
import { UNACKED_OVERHEAD_BYTES } from "../sm/unacked_queue.ts";
import type { StreamLimitName } from "../stream/stream_metrics.ts";
import { LateStanzas } from "./late_stanzas.ts";
import { TestDelivery } from "./testing/delivery.ts";

const HOME = parseJid("alice@example.com/home") as FullJid;
/** Bytes of one message in the tests, without its overhead. */
const MESSAGE_BYTES = 1_000;

/** Stanzas kept for one session that has ended, and those that are routed again. */
class Fixture {
  readonly budget: FairShares;
  readonly late: LateStanzas;
  readonly limits: StreamLimitName[] = [];
  /** Numbers of the messages that were routed again. */
  readonly given: number[] = [];
  readonly #numbers = new Map<Delivery, number>();

  constructor(options: StreamManagementOptions = {}, bounds: FairBounds = {}) {
    this.budget = new FairShares(bounds);
    this.late = new LateStanzas(HOME, {
      management: {
        options: resolveStreamManagement(options),
        budget: this.budget,
        isUserHost: undefined,
        giveBack: (deliveries) => {
          for (const each of deliveries) this.given.push(this.#numbers.get(each)!);
        },
      },
      metrics: { limitHit: (limit) => this.limits.push(limit) },
    });
  }

  keep(number: number): void {
    const delivery = new TestDelivery({
      kind: "message",
      type: "chat",
      from: parseJid("bob@example.com/x"),
      to: HOME,
      bytes: new Uint8Array(MESSAGE_BYTES),
    });
    this.#numbers.set(delivery, number);
    this.late.keep(delivery);
  }
}

Deno.test("LateStanzas keeps stanzas and their cost until they are given back", () => {
  const { late, budget, given, limits } = withMessages(new Fixture(), 3);
  assert.deepEqual(given, []);
  assert.equal(budget.bytes, 3 * (MESSAGE_BYTES + UNACKED_OVERHEAD_BYTES));
  late.giveBack();
  assert.deepEqual(given, [1, 2, 3]);
  assert.equal(budget.bytes, 0);
  assert.equal(budget.holders, 0);
  assert.deepEqual(limits, []);
});

Deno.test("LateStanzas.keep() gives everything back in order at the limit on items", () => {
  const fixture = withMessages(new Fixture({ maxItems: 3 }), 3);
  assert.deepEqual(fixture.given, []);
  fixture.keep(4);
  assert.deepEqual(fixture.given, [1, 2, 3, 4]);
  assert.deepEqual(fixture.limits, ["unacknowledged-stanzas"]);
  assert.equal(fixture.budget.bytes, 0);
  fixture.keep(5);
  assert.deepEqual(fixture.given, [1, 2, 3, 4]);
});

Deno.test("LateStanzas.keep() gives everything back in order at the limit on bytes", () => {
  const maxBytes = 10 * (MESSAGE_BYTES + UNACKED_OVERHEAD_BYTES);
  const fixture = withMessages(new Fixture({ maxBytes }), 10);
  assert.deepEqual(fixture.given, []);
  fixture.keep(11);
  assert.deepEqual(fixture.given, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  assert.deepEqual(fixture.limits, ["unacknowledged-stanzas"]);
});

Deno.test("LateStanzas.keep() gives everything back in order when the node's budget has no room", () => {
  const maxBytes = 10 * (MESSAGE_BYTES + UNACKED_OVERHEAD_BYTES);
  const fixture = new Fixture({}, { maxBytes });
  fixture.keep(1);
  fixture.budget.grow(maxBytes - fixture.budget.bytes);
  fixture.keep(2);
  assert.deepEqual(fixture.given, [1, 2]);
  assert.deepEqual(fixture.limits, ["waiting-bytes"]);
});

function withMessages(fixture: Fixture, count: number): Fixture {
  for (let number = 1; number <= count; number++) fixture.keep(number);
  return fixture;
}
