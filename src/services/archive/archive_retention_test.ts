import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchiveStore } from "../../storage/mod.ts";
import { ArchiveRetention } from "./archive_retention.ts";

const DAY_MS = 86_400_000;

/** Archives with old messages, by host. */
function open(old: Record<string, number>, maxAgeMs: ReadonlyMap<string, number>) {
  const clock = new ManualClock();
  const calls: [host: string, ageMs: number, limit: number][] = [];
  const state = { removed: 0, isDown: false, databaseAheadMs: 0, events: [] as unknown[][] };
  const retention = new ArchiveRetention({
    maxAgeMs,
    storeOf: () => ({
      removeBefore: ({ host, sentBeforeMs }, limit) => {
        calls.push([host!, clock.wallMs() - sentBeforeMs, limit]);
        if (state.isDown) return Promise.reject(new Error("away"));
        const count = Math.min(old[host!]!, limit);
        old[host!]! -= count;
        return Promise.resolve(count);
      },
      clockMs: () => Promise.resolve(clock.wallMs() + state.databaseAheadMs),
    } as Pick<ArchiveStore, "removeBefore" | "clockMs"> as ArchiveStore),
    removed: { inc: (by = 1) => state.removed += by },
    clock,
    logger: {
      ...SILENT_LOGGER,
      warn: (event, fields) => void state.events.push([event, fields]),
    },
  });
  const advance = async (byMs: number) => {
    clock.advance(byMs);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { retention, calls, state, advance };
}

Deno.test("ArchiveRetention removes what is older than its host keeps it, step by step", async () => {
  const ages = new Map([["example.com", 30 * DAY_MS], ["example.org", DAY_MS]]);
  const old = { "example.com": 2_500, "example.org": 7 };
  const { retention, calls, state, advance } = open(old, ages);
  retention.start();
  await advance(59_999);
  strictEqual(calls.length, 0);
  await advance(1);
  deepStrictEqual(calls, [["example.com", 30 * DAY_MS, 1_000]]);
  for (let i = 0; i < 4; i++) await advance(100);
  deepStrictEqual(calls.map(([host]) => host), [
    ...["example.com", "example.com", "example.com", "example.com"],
    ...["example.org", "example.org"],
  ]);
  deepStrictEqual(calls[4], ["example.org", DAY_MS, 1_000]);
  strictEqual(state.removed, 2_507);
  await advance(600_000);
  strictEqual(calls.length, 8);
  await retention.stop();
});

Deno.test("ArchiveRetention tries again after a failure, and stops between two steps", async () => {
  const { retention, calls, state, advance } = open(
    { "example.com": 5_000 },
    new Map([["example.com", DAY_MS]]),
  );
  state.isDown = true;
  retention.start();
  await advance(60_000);
  strictEqual(calls.length, 1);
  state.isDown = false;
  await advance(600_000);
  strictEqual(calls.length, 2);
  await retention.stop();
  await advance(1_200_000);
  deepStrictEqual([calls.length, state.removed], [2, 1_000]);
});

Deno.test("ArchiveRetention removes nothing while its clock and the database's differ", async () => {
  const { retention, calls, state, advance } = open(
    { "example.com": 5_000 },
    new Map([["example.com", DAY_MS]]),
  );
  retention.start();
  state.databaseAheadMs = -300_001;
  await advance(60_000);
  state.databaseAheadMs = 300_001;
  await advance(600_000);
  strictEqual(calls.length, 0);
  deepStrictEqual(state.events, [
    ["archive.clock-off", { host: "example.com", aheadMs: 300_001 }],
    ["archive.clock-off", { host: "example.com", aheadMs: -300_001 }],
  ]);
  state.databaseAheadMs = -299_999;
  await advance(600_000);
  deepStrictEqual([calls.length, state.events.length], [1, 2]);
  await retention.stop();
});

Deno.test("ArchiveRetention leaves archives alone whose hosts keep everything", async () => {
  const { retention, calls, advance } = open({}, new Map());
  retention.start();
  await advance(1_200_000);
  strictEqual(calls.length, 0);
  await retention.stop();
});
