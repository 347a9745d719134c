import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { HeldState } from "./lanes/held_marks.ts";
import type { LaneDrainDeps } from "./lane_drain.ts";
import { LaneDrain } from "./lane_drain.ts";

/** A destination whose state the test sets, or scripts by the number of the watch. */
class Destination {
  openLinks = 1;
  isGivenUp = false;
  watches = 0;
  state: (watch: number) => HeldState;

  constructor(state: HeldState | ((watch: number) => HeldState) = "open") {
    this.state = typeof state === "string" ? () => state : state;
  }

  beginAnew = () => {};

  watchHeld(anew: () => void = () => {}) {
    this.beginAnew = anew;
    const watch = ++this.watches;
    return () => this.state(watch);
  }

  giveUp(): void {
    this.isGivenUp = true;
  }
}

/** A drain on a clock that the test moves. */
class World {
  readonly clock = new ManualClock();
  readonly links: { readonly destinations: readonly Destination[]; givenBack: number };
  /** Time that was left for the router, for each time that it was drained. */
  readonly routedWithinMs: number[] = [];
  readonly drain: LaneDrain;
  outcome: string | undefined;

  constructor(destinations: readonly Destination[], deps: Partial<LaneDrainDeps> = {}) {
    this.links = { destinations, givenBack: 7 };
    const { clock, links } = this;
    this.drain = new LaneDrain({
      clock,
      links: [links],
      route: (withinMs) => Promise.resolve(void this.routedWithinMs.push(withinMs)),
      ...deps,
    });
  }

  /** Begins to drain. */
  async run(withinMs = 10_000): Promise<void> {
    this.drain.run(withinMs).then((outcome) => this.outcome = outcome, () => {});
    await this.pass(0);
  }

  /** Moves the clock, with a check of the drain at the end. */
  async pass(ms: number): Promise<void> {
    for (const stepMs of [Math.max(0, ms - 10), Math.min(10, ms)]) {
      this.clock.advance(stepMs);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Lets the drain end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.pass(60_000);
    assert.notEqual(this.outcome, undefined);
  }
}

Deno.test("LaneDrain.run() ends at once when the lanes hold nothing", async () => {
  for (const destinations of [[], [new Destination("gone"), new Destination("gone")]]) {
    await using world = new World(destinations);
    await world.run();
    assert.deepEqual([world.outcome, world.routedWithinMs], ["settled", [10_000]]);
  }
});

Deno.test("LaneDrain.run() waits until all is settled, or live peers have had the rest for a second", async () => {
  const [one, other] = [new Destination("received"), new Destination("open")];
  await using world = new World([one, other]);
  await world.run();
  await world.pass(1500);
  assert.equal(world.outcome, undefined, "no peer has received the other's");
  other.state = () => "gone";
  await world.pass(10);
  assert.equal(world.outcome, "kept", "one has had its stanzas for long");

  const [cut, gone] = [new Destination("received"), new Destination("gone")];
  await using again = new World([cut, gone]);
  await again.run();
  await again.pass(990);
  assert.equal(again.outcome, undefined);
  cut.state = () => "open"; // its link was cut
  await again.pass(500);
  cut.state = () => "received";
  await again.pass(10);
  await again.pass(990);
  assert.equal(again.outcome, undefined, "its time begins anew");
  await again.pass(10);
  assert.equal(again.outcome, "kept");
});

Deno.test("LaneDrain.run() begins another round when lanes gave stanzas back, which other lanes may hold now", async () => {
  const destination = new Destination((watch) => watch < 4 ? "open" : "gone");
  await using world = new World([destination]);
  await world.run();
  for (const round of [2, 3]) {
    assert.deepEqual([world.outcome, destination.watches], [undefined, round]);
    world.links.givenBack++;
    destination.state = (watch) => watch <= round ? "gone" : "open";
    await world.pass(10);
  }
  assert.deepEqual([world.outcome, destination.watches], [undefined, 4]);
  destination.state = () => "gone";
  await world.pass(10);
  assert.deepEqual([world.outcome, world.routedWithinMs], ["settled", [10_000, 9990, 9980]]);
  assert.equal(destination.isGivenUp, false);
});

Deno.test("LaneDrain.run() waits for stanzas that the router puts into a lane before the first check", async () => {
  let isRouted = false;
  const destination = new Destination((watch) => watch === 1 || !isRouted ? "gone" : "open");
  await using world = new World([destination], {
    route: () => Promise.resolve(void (isRouted = true)),
  });
  await world.run();
  assert.equal(world.outcome, undefined);
});

Deno.test("LaneDrain.run() is late when time is over, and then gives up those stuck since any round", async () => {
  const first = new Destination((watch) => watch === 1 ? "open" : "received");
  const second = new Destination((watch) => watch === 3 ? "gone" : "received");
  const third = new Destination((watch) => watch === 3 ? "open" : "gone");
  await using world = new World([first, second, third]);
  await world.run(1000);
  world.links.givenBack++;
  first.state = (watch) => watch === 1 ? "open" : "gone";
  second.state = () => "gone";
  await world.pass(10);
  await world.pass(980);
  assert.equal(world.outcome, undefined);
  await world.pass(10);
  assert.equal(world.outcome, "late");
  world.drain.giveUpStuck();
  const all = [first, second, third];
  assert.deepEqual(all.map(({ isGivenUp }) => isGivenUp), [true, false, true]);
});

Deno.test("LaneDrain.giveUpStuck() spares a linked destination that has just been sent a stanza", async () => {
  const [busy, cut, done, received] = [
    new Destination("open"),
    new Destination("open"),
    new Destination("gone"),
    new Destination("received"),
  ];
  cut.openLinks = 0;
  const all = [busy, cut, done, received];
  await using world = new World(all);
  await world.run();
  await world.pass(999);
  world.drain.giveUpStuck();
  assert.deepEqual(all.map(({ isGivenUp }) => isGivenUp), [false, true, false, false]);
  await world.pass(1);
  world.drain.giveUpStuck();
  assert.deepEqual(all.map(({ isGivenUp }) => isGivenUp), [true, true, false, false]);
});

Deno.test("LaneDrain.giveUpStuck() gives stanzas that have changed lanes their full time again", async () => {
  const destination = new Destination();
  let begins: (() => void)[] = [];
  destination.watchHeld = (anew = () => {}) => {
    begins.push(anew);
    return () => "open";
  };
  await using world = new World([destination]);
  await world.run();
  await world.pass(5000);
  for (const begin of begins) begin();
  begins = [];
  await world.pass(999);
  world.drain.giveUpStuck();
  assert.equal(destination.isGivenUp, false);
  await world.pass(1);
  world.drain.giveUpStuck();
  assert.equal(destination.isGivenUp, true);
});

Deno.test("LaneDrain.giveUpStuck() notices stanzas that change lanes at that very moment", async () => {
  const destination = new Destination();
  destination.watchHeld = (anew = () => {}) => () => {
    anew();
    return "open";
  };
  await using world = new World([destination]);
  await world.run();
  await world.pass(5000);
  world.drain.giveUpStuck();
  assert.equal(destination.isGivenUp, false);
});

Deno.test("LaneDrain.giveUpStuck() gives up stuck destinations even if the router took all the time", async () => {
  for (const withinMs of [400, 2000]) {
    const destination = new Destination();
    const clock = new ManualClock();
    const route = (leftMs: number) => Promise.resolve(clock.advance(leftMs));
    const drain = new LaneDrain({
      clock,
      links: [{ destinations: [destination], givenBack: 0 }],
      route,
    });
    assert.equal(await drain.run(withinMs), "late");
    drain.giveUpStuck();
    assert.equal(destination.isGivenUp, true, `${withinMs} ms`);
  }
});

Deno.test("LaneDrain.run() of links that end waits for stanzas of peers, and for what came meanwhile", async () => {
  const destination = new Destination("gone");
  let isInboundSettled = false;
  await using settling = new World([destination], { isInboundSettled: () => isInboundSettled });
  await settling.run();
  await settling.pass(5000);
  assert.equal(settling.outcome, undefined, "a stanza of a peer is not settled");
  isInboundSettled = true;
  await settling.pass(10);
  assert.equal(settling.outcome, "settled");

  // What a live peer keeps may be what another peer has sent, so nothing of that is waited for.
  destination.watches = 0;
  destination.state = (watch) => watch < 3 ? "received" : "open";
  await using kept = new World([destination], { isInboundSettled: () => false });
  await kept.run();
  await kept.pass(5000);
  assert.equal(kept.outcome, undefined, "a later stanza is not received");
  destination.state = () => "received";
  await kept.pass(10);
  assert.equal(kept.outcome, "kept");
});
