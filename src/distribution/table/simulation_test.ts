import assert from "node:assert/strict";
import fc from "fast-check";
import { runs } from "../../base/testing/random_runs.ts";
import type { SimulationStep } from "./testing/simulation.ts";
import { Simulation } from "./testing/simulation.ts";
import type { KeyRule } from "./claims/key_rule.ts";
import { decideKey } from "./claims/key_rule.ts";

/** Rule without claims: every refresh writes this node's own belief. */
const blindRule: KeyRule = ({ isLogout, isOurs, localHost, newest, current }) => {
  if (isOurs || newest !== undefined) return { kind: "set", host: localHost };
  return isLogout && current !== null ? { kind: "delete" } : { kind: "leave" };
};

function steps(actions: readonly SimulationStep["action"][], maxPauseMs: number) {
  const step: fc.Arbitrary<SimulationStep> = fc.record({
    pauseMs: fc.integer({ min: 2, max: maxPauseMs }),
    datacenter: fc.nat(2),
    action: fc.constantFrom(...actions),
    user: fc.nat(1),
    resource: fc.nat(1),
  });
  return fc.array(step, { minLength: 1, maxLength: 12 });
}

const INTERLEAVINGS = fc.record({
  seed: fc.nat(),
  datacenters: fc.integer({ min: 2, max: 3 }),
  steps: steps(["login", "login", "logout"], 400),
});

async function explore(
  interleavings: fc.Arbitrary<{ seed: number; datacenters: number; steps: SimulationStep[] }>,
  options: {
    readonly rule: KeyRule;
    readonly numRuns: number;
    readonly refreshes: number;
    readonly isLossy?: boolean;
    readonly seed?: number;
  },
): Promise<void> {
  const property = fc.asyncProperty(interleavings, async (run) => {
    const { rule, refreshes, isLossy = false } = options;
    assert.deepEqual(await Simulation.run({ ...run, rule, refreshes, isLossy }), []);
  });
  const seed = options.seed === undefined ? {} : { seed: options.seed };
  await fc.assert(property, { numRuns: options.numRuns, ...seed });
}

Deno.test("all tables name the newest login within one refresh of the last change", async () => {
  await explore(INTERLEAVINGS, {
    rule: decideKey,
    refreshes: 1,
    numRuns: runs(150),
  });
});

Deno.test("blind rewriting instead of claims does not bring the tables together", async () => {
  await assert.rejects(
    explore(INTERLEAVINGS, { rule: blindRule, refreshes: 3, numRuns: 100, seed: 1 }),
  );
});

Deno.test("all tables name the newest login again after splits and flushes that lost writes", async () => {
  const splits = fc.record({
    seed: fc.nat(),
    datacenters: fc.integer({ min: 2, max: 3 }),
    steps: steps(["login", "login", "logout", "split", "heal", "flush"], 1_500),
  });
  await explore(splits, {
    rule: decideKey,
    refreshes: 2,
    isLossy: true,
    numRuns: runs(60),
  });
});

Deno.test("logins agree within two refreshes of a healed split or a flush that lost writes", async () => {
  const splits = fc.record({
    seed: fc.nat(),
    datacenters: fc.integer({ min: 2, max: 3 }),
    steps: steps(["login", "login", "split", "heal", "flush"], 1_500),
  });
  await explore(splits, { rule: decideKey, refreshes: 2, numRuns: runs(60) });
});
