import assert from "node:assert/strict";
import type { ChildExit } from "../process/mod.ts";
import { ENDPOINTS_MOVED, ROLLING_RESTART } from "./node_trials.ts";
import type { Trial } from "./trial.ts";
import type { TrialStage } from "./trial_stage.ts";

const IN_ORDER: ChildExit = { code: 0, signal: null };
const KILLED: ChildExit = { code: 137, signal: "SIGKILL" };

/** Plays `trial` with nodes that are not there: each end and port is the next of those given. */
async function play(
  trial: Trial,
  { exits = [], ports = [] }: {
    readonly exits?: readonly ChildExit[];
    readonly ports?: readonly number[];
  },
): Promise<ReadonlyMap<string, number>> {
  const ends = exits.values();
  const restPorts = [...ports];
  const node = (name: string) => {
    let port = restPorts.shift() ?? 1;
    return {
      name,
      get ready() {
        return { links: [{ host: "127.0.0.1", port }] };
      },
      start: () => port = restPorts.shift() ?? port + 1,
    };
  };
  const proofs = new Map<string, number>();
  const stage = {
    faultMs: 0,
    nodes: () => ["one", "other"].map((name) => ({ node: node(name) })),
    node,
    prove: (what: string, times = 1) => proofs.set(what, (proofs.get(what) ?? 0) + times),
    stop: () => Promise.resolve(ends.next().value ?? IN_ORDER),
    during: (body: () => Promise<void>) => body(),
    start: (each: ReturnType<typeof node>) => Promise.resolve(each.start()),
    untilEveryoneIsOnline: () => Promise.resolve(),
    pass: () => Promise.resolve(),
  };
  // a real one has a whole cluster and its load
  await trial.run(stage as unknown as TrialStage);
  return proofs;
}

for (const trial of [ROLLING_RESTART, ENDPOINTS_MOVED]) {
  Deno.test(`${trial.name} takes it that every node ends by itself`, async () => {
    const proofs = await play(trial, {});
    assert.equal(proofs.get("nodes that drained and ended by themselves"), 2);
  });

  for (const exit of [KILLED, { code: 1, signal: null }]) {
    const how = exit.signal ?? `exit code ${exit.code}`;
    Deno.test(`${trial.name} fails when one of its nodes ends by ${how}`, async () => {
      const exits = [IN_ORDER, exit];
      await assert.rejects(play(trial, { exits }), new RegExp(`did not end by itself: ${how}`));
    });
  }
}

Deno.test("endpoints-moved fails when one of its endpoints is where it was", async () => {
  const proofs = await play(ENDPOINTS_MOVED, { ports: [1, 2, 3, 4] });
  assert.equal(proofs.get("moved endpoints"), 2);
  await assert.rejects(play(ENDPOINTS_MOVED, { ports: [1, 2, 3, 3] }), /at the same port: 3/);
});
