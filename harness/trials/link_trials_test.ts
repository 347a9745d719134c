import assert from "node:assert/strict";
import type { Direction } from "../faults/mod.ts";
import { BLACK_HOLE } from "./link_trials.ts";
import type { TrialStage } from "./trial_stage.ts";

/** A proxy whose links are never idle; what is in `leaks` passes its black holes. */
class BusyProxy {
  readonly name = "dc1→dc2-node1";
  readonly counts = { forwardBytes: 0, backwardBytes: 0 };
  readonly connections: number;
  readonly #leaks: readonly Direction[];
  readonly #holes = new Set<Direction>();

  constructor({ connections = 1, leaks = [] }: {
    readonly connections?: number;
    readonly leaks?: readonly Direction[];
  } = {}) {
    this.connections = connections;
    this.#leaks = leaks;
  }

  blackHole(direction: Direction): void {
    if (!this.#leaks.includes(direction)) this.#holes.add(direction);
  }

  heal(): void {
    this.#holes.clear();
  }

  carry(): void {
    if (this.connections === 0) return;
    if (!this.#holes.has("forward")) this.counts.forwardBytes++;
    if (!this.#holes.has("backward")) this.counts.backwardBytes++;
  }
}

/** Plays the trial with proxies that stand before nobody: those that dc1 dials, and those that dc2 does. */
async function play(
  { dc1, dc2 }: { readonly dc1: readonly BusyProxy[]; readonly dc2: readonly BusyProxy[] },
): Promise<Readonly<Record<string, number>>> {
  const proofs: Record<string, number> = {};
  const stage = {
    faultMs: 0,
    cluster: {
      links: (from: string) => from === "dc1" ? dc1 : dc2,
      until: (probe: () => boolean) => Promise.resolve(assert.ok(probe())),
    },
    prove: (what: string, times: number) => proofs[what] = (proofs[what] ?? 0) + times,
    pass: () => {
      for (const proxy of [...dc1, ...dc2]) proxy.carry();
      return Promise.resolve();
    },
  };
  // a real one has a whole cluster and its load
  await BLACK_HOLE.run(stage as unknown as TrialStage);
  return proofs;
}

Deno.test("black-hole counts the holes of either direction that have a link to swallow", async () => {
  const dc1 = [new BusyProxy(), new BusyProxy({ connections: 0 })];
  const proofs = await play({ dc1, dc2: [new BusyProxy(), new BusyProxy()] });
  assert.deepEqual(proofs, { "black holes from dc1 to dc2": 3, "black holes from dc2 to dc1": 3 });
});

for (const leak of ["forward", "backward"] as const) {
  for (const dialler of ["dc1", "dc2"] as const) {
    Deno.test(`black-hole fails when one hole of ${dialler}'s lets bytes go ${leak}`, async () => {
      const proxies = { dc1: [new BusyProxy()], dc2: [new BusyProxy()] };
      proxies[dialler].push(new BusyProxy({ leaks: [leak] }));
      await assert.rejects(play(proxies), /1 bytes came through the black hole dc1→dc2-node1/);
    });
  }
}
