import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { runs } from "../../base/testing/random_runs.ts";
import type { MeshStep } from "./testing/mesh_simulation.ts";
import { MeshSimulation } from "./testing/mesh_simulation.ts";
import { HybridClock } from "./claims/hybrid_clock.ts";

/** Epochs without meaning: how claims behave when their order is not known. */
class NoEpochs extends HybridClock {
  override next(): number {
    return 1;
  }
}

function steps(actions: readonly MeshStep["action"][], maxPauseMs: number) {
  const step: fc.Arbitrary<MeshStep> = fc.record({
    pauseMs: fc.integer({ min: 2, max: maxPauseMs }),
    datacenter: fc.nat(4),
    action: fc.constantFrom(...actions),
    user: fc.nat(1),
    resource: fc.nat(1),
  });
  return fc.array(step, { minLength: 1, maxLength: 14 });
}

function interleavings(actions: readonly MeshStep["action"][], maxPauseMs: number) {
  return fc.record({
    seed: fc.nat(),
    datacenters: fc.integer({ min: 2, max: 5 }),
    steps: steps(actions, maxPauseMs),
  });
}

async function explore(
  drawn: ReturnType<typeof interleavings>,
  options: { readonly numRuns: number; readonly seed?: number; epochs?: () => HybridClock },
): Promise<void> {
  const { epochs, ...parameters } = options;
  const property = fc.asyncProperty(drawn, async (run) => {
    const faults = await MeshSimulation.run({
      ...run,
      ...(epochs === undefined ? {} : { epochs }),
    });
    assert.deepEqual(faults, []);
  });
  await fc.assert(property, parameters);
}

Deno.test("builtin replication: all tables name the newest login after logins and logouts", async () => {
  await explore(interleavings(["login", "login", "logout"], 400), { numRuns: runs(60) });
});

Deno.test("builtin replication: all tables name the newest login after splits, cuts and heals", async () => {
  const actions = ["login", "login", "logout", "split", "heal", "cut"] as const;
  await explore(interleavings(actions, 1_500), { numRuns: runs(40) });
});

Deno.test("builtin replication: all tables name the newest login after crashes, restarts and lost Redises", async () => {
  const actions = [
    ...["login", "login", "login", "logout", "split", "heal", "cut"] as const,
    ...["flush", "crash", "leave", "redis-down", "redis-up"] as const,
  ];
  await explore(interleavings(actions, 1_500), { numRuns: runs(60) });
});

Deno.test("builtin replication: without epochs the tables do not name the newest login", async () => {
  await assert.rejects(
    explore(interleavings(["login", "login", "logout"], 400), {
      numRuns: 100,
      seed: 1,
      epochs: () => new NoEpochs(new ManualClock()),
    }),
  );
});
