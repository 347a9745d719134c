import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../metrics_registry.ts";
import type { BatchOutcome } from "./otlp_queue.ts";
import { OtlpQueue } from "./otlp_queue.ts";

/** A queue of numbers to a collector that answers as the test says. */
class Setup {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly sent = this.metrics.counter({ name: "sent_total", help: "sent" });
  readonly dropped = this.metrics.counter({ name: "dropped_total", help: "dropped" });
  readonly batches: (readonly number[])[] = [];
  outcome: BatchOutcome = { kind: "taken", rejected: 0 };
  readonly queue: OtlpQueue<number>;

  constructor(maxItems = 1_000) {
    this.queue = new OtlpQueue<number>({
      maxItems,
      intervalMs: 5_000,
      clock: this.clock,
      sent: this.sent,
      dropped: this.dropped,
      send: (batch) => {
        this.batches.push(batch);
        return Promise.resolve(this.outcome);
      },
    });
  }

  add(count: number): void {
    for (let item = 1; item <= count; item++) this.queue.add(item);
  }

  /** Sizes of the batches since the last call. */
  async sizes(afterMs: number): Promise<number[]> {
    await this.clock.advanceAsync(afterMs, 500);
    for (let turn = 0; turn < 100; turn++) await Promise.resolve(); // one batch after the other
    return this.batches.splice(0).map(({ length }) => length);
  }

  get counts(): readonly number[] {
    return [this.sent.value, this.dropped.value, this.queue.size];
  }

  [Symbol.dispose](): void {
    this.metrics.close();
  }
}

Deno.test("OtlpQueue sends items together after an interval, and at once when there are many", async () => {
  using setup = new Setup();
  setup.add(3);
  assert.deepEqual(await setup.sizes(4_500), []);
  setup.add(2);
  assert.deepEqual(await setup.sizes(500), [5]);
  assert.deepEqual(await setup.sizes(60_000), [], "nothing is left");
  setup.add(600);
  assert.deepEqual(await setup.sizes(0), [512, 88]);
  assert.deepEqual(setup.counts, [605, 0, 0]);
  await setup.queue.close();
});

Deno.test("OtlpQueue keeps what waits while the collector is away, drops what is over its bound, and goes on", async () => {
  using setup = new Setup(10);
  setup.outcome = { kind: "away" };
  setup.add(8);
  assert.deepEqual(await setup.sizes(5_000), [8]);
  setup.add(5);
  assert.deepEqual(setup.counts, [0, 3, 10], "the bound is 10");
  const later = await setup.sizes(60_000);
  assert.ok(later.length >= 4 && later.length <= 7, `${later.length} attempts in a minute`);
  assert.ok(later.every((size) => size === 10));
  setup.outcome = { kind: "taken", rejected: 2 };
  assert.deepEqual(await setup.sizes(35_000), [10]);
  assert.deepEqual(setup.counts, [8, 5, 0], "the collector did not want 2");
  await setup.queue.close();
});

Deno.test("OtlpQueue drops a batch that the collector refuses", async () => {
  using setup = new Setup();
  setup.outcome = { kind: "refused" };
  setup.add(4);
  assert.deepEqual(await setup.sizes(5_000), [4]);
  assert.deepEqual(setup.counts, [0, 4, 0]);
  await setup.queue.close();
});

Deno.test("OtlpQueue.close() makes one more attempt and counts the rest as dropped", async () => {
  using setup = new Setup();
  setup.add(2);
  await setup.queue.close();
  assert.deepEqual(setup.counts, [2, 0, 0]);
  using other = new Setup();
  other.outcome = { kind: "away" };
  other.add(2);
  await other.queue.close();
  other.add(1);
  assert.deepEqual(other.counts, [0, 3, 0]);
  assert.deepEqual(await other.sizes(60_000), [2]);
});
