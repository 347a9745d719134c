import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { HeldWatch } from "./held_watch.ts";
import type { HeldState } from "./host_links.ts";

/** A destination whose state the test sets. */
class Host {
  state: HeldState = "open";
  openLinks = 1;
  isGivenUp = false;

  beginAnew = () => {};

  watchHeld(anew: () => void) {
    this.beginAnew = anew;
    return () => this.state;
  }

  giveUp(): void {
    this.isGivenUp = true;
  }
}

function watched(...hosts: readonly Host[]) {
  const clock = new ManualClock();
  let givenBack = 7;
  const watch = new HeldWatch(hosts, clock, () => givenBack);
  return { clock, watch, giveBack: () => givenBack++ };
}

Deno.test("HeldWatch.isSeenTo is true once all is gone, or peers have had the rest for a second", () => {
  const [one, other] = [new Host(), new Host()];
  const { clock, watch } = watched(one, other);
  one.state = "received";
  assert.equal(watch.isSeenTo, false);
  other.state = "gone";
  assert.equal(watch.isSeenTo, false);
  clock.advance(999);
  assert.equal(watch.isSeenTo, false);
  one.state = "open"; // its link was cut
  assert.deepEqual([watch.isSeenTo, watch.isOpen], [false, true]);
  one.state = "received";
  clock.advance(1000);
  assert.equal(watch.isSeenTo, false);
  clock.advance(1000);
  assert.deepEqual([watch.isSeenTo, watch.isGone, watch.isOpen], [true, false, false]);
  one.state = "gone";
  assert.deepEqual([watch.isSeenTo, watch.isGone], [true, true]);
  assert.deepEqual([watched().watch.isSeenTo, watched().watch.isGone], [true, true]);
});

Deno.test("HeldWatch.hasGivenBack is true once lanes have given back a stanza since it began", () => {
  const { watch, giveBack } = watched(new Host());
  assert.equal(watch.hasGivenBack, false);
  giveBack();
  assert.equal(watch.hasGivenBack, true);
});

Deno.test("HeldWatch.giveUpStuck() spares a linked destination that has just been sent a stanza", () => {
  const [busy, cut, done, received] = [new Host(), new Host(), new Host(), new Host()];
  cut.openLinks = 0;
  done.state = "gone";
  received.state = "received";
  const all = [busy, cut, done, received];
  const { clock, watch } = watched(...all);
  clock.advance(999);
  watch.giveUpStuck(1000);
  assert.deepEqual(all.map(({ isGivenUp }) => isGivenUp), [false, true, false, false]);
  clock.advance(1);
  watch.giveUpStuck(1000);
  assert.deepEqual(all.map(({ isGivenUp }) => isGivenUp), [true, true, false, false]);
});

Deno.test("HeldWatch.giveUpStuck() gives stanzas that have changed lanes their full time again", () => {
  const host = new Host();
  const { clock, watch } = watched(host);
  clock.advance(5000);
  host.beginAnew();
  clock.advance(999);
  watch.giveUpStuck(1000);
  assert.equal(host.isGivenUp, false);
  clock.advance(1);
  watch.giveUpStuck(1000);
  assert.equal(host.isGivenUp, true);
});
