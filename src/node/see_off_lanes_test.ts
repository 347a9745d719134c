import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { HeldWatch } from "../distribution/links/mod.ts";
import { seeOffLanes } from "./see_off_lanes.ts";

/** Links whose answers the test scripts, one row for each round. */
class Layer {
  readonly given: number[] = [];
  rounds = 0;
  readonly #isSeenTo: (round: number) => boolean;
  readonly #hasGivenBack: (round: number) => boolean;

  constructor(isSeenTo: (round: number) => boolean, hasGivenBack: (round: number) => boolean) {
    this.#isSeenTo = isSeenTo;
    this.#hasGivenBack = hasGivenBack;
  }

  watchHeld() {
    const round = ++this.rounds;
    const [isSeenTo, hasGivenBack] = [this.#isSeenTo, this.#hasGivenBack];
    return {
      get isSeenTo() {
        return isSeenTo(round);
      },
      get hasGivenBack() {
        return hasGivenBack(round);
      },
      giveUpStuck: () => void this.given.push(round),
    };
  }
}

async function seeOff(...layers: readonly Layer[]) {
  const clock = new ManualClock();
  let drained = 0;
  let outcome: boolean | undefined;
  const done = seeOffLanes(layers, {
    clock,
    withinMs: 1000,
    drainRouter: () => Promise.resolve(void drained++),
  }).then((isDone) => outcome = isDone);
  for (let turn = 0; turn < 200 && outcome === undefined; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (outcome === undefined) clock.advance(10);
  }
  await done;
  return { outcome, drained, tookMs: clock.monotonicMs() };
}

const yes = () => true;
const no = () => false;

Deno.test("seeOffLanes() ends at once when the lanes hold nothing", async () => {
  const layers = [new Layer(yes, no), new Layer(yes, no)];
  const { outcome, drained } = await seeOff(...layers);
  assert.deepEqual([outcome, drained, layers.map(({ rounds }) => rounds)], [true, 1, [2, 2]]);
});

Deno.test("seeOffLanes() starts another round when lanes returned stanzas, which other lanes may hold now", async () => {
  const mesh = new Layer(yes, (round) => round < 4);
  const cluster = new Layer(yes, no);
  const { outcome, drained } = await seeOff(mesh, cluster);
  assert.deepEqual([outcome, drained, mesh.rounds, cluster.rounds], [true, 3, 4, 4]);
  assert.deepEqual(mesh.given, []);
});

Deno.test("seeOffLanes() makes lanes return the stuck stanzas of every round when its time is over", async () => {
  const mesh = new Layer(yes, (round) => round === 2);
  const cluster = new Layer((round) => round < 3, no);
  const { outcome, tookMs } = await seeOff(mesh, cluster);
  assert.equal(outcome, false);
  assert.ok(tookMs >= 1000);
  assert.deepEqual([mesh.given, cluster.given], [[1, 2, 3], [1, 2, 3]]);
});

Deno.test("seeOffLanes() waits for stanzas that the router puts into a lane before the first check", async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  const layer = {
    watchHeld() {
      seen.push("watched");
      return { isSeenTo: true, hasGivenBack: false, giveUpStuck: () => {} };
    },
  };
  const drainRouter = () => Promise.resolve(void seen.push("drained"));
  assert.equal(await seeOffLanes([layer], { clock, withinMs: 1000, drainRouter }), true);
  assert.deepEqual(seen, ["watched", "drained", "watched"]);
});

Deno.test("seeOffLanes() makes stuck lanes return their stanzas even if the router took all the time", async () => {
  for (const withinMs of [400, 2000]) {
    const clock = new ManualClock();
    const host = { openLinks: 1, isGivenUp: false };
    const watched = {
      ...host,
      watchHeld: () => () => "open" as const,
      giveUp: () => void (host.isGivenUp = true),
    };
    const layer = { watchHeld: () => new HeldWatch([watched], clock, () => 0) };
    const drainRouter = (ms: number) => Promise.resolve(clock.advance(ms));
    assert.equal(await seeOffLanes([layer], { clock, withinMs, drainRouter }), false);
    assert.equal(host.isGivenUp, true, `${withinMs} ms`);
  }
});
