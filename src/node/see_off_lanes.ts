import type { Clock } from "../base/mod.ts";
import type { HeldWatch } from "../distribution/links/mod.ts";

/** Milliseconds between looks. */
const CHECK_MS = 10;
/** Milliseconds after which what a peer that is linked has not received is stuck; no more than half the time. */
const STUCK_MS = 1000;

/** The links of one scope, as far as a stop looks at them. */
export interface SeenOff {
  watchHeld(): Pick<HeldWatch, "isSeenTo" | "hasGivenBack" | "giveUpStuck">;
}

/** How long a stop waits, and what comes between two rounds. */
export interface SeeOffOptions {
  readonly clock: Clock;
  readonly withinMs: number;
  /** Routes what lanes have given back, and what waits for a lookup. */
  drainRouter(withinMs: number): Promise<void>;
}

/**
 * Waits until what the lanes hold now has been settled, or received by peers that live, which is theirs to
 * see to. What a lane has given back may be on its way to another one: then once more. Destinations where
 * it is stuck after `withinMs` are given up.
 *
 * @returns false when any were, and what they gave back is to be routed
 */
export async function seeOffLanes(
  layers: readonly SeenOff[],
  { clock, withinMs, drainRouter }: SeeOffOptions,
): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + withinMs;
  const stuckMs = Math.min(STUCK_MS, withinMs / 2);
  // From before the router is drained, which may take all the time.
  const rounds = [layers.map((layer) => layer.watchHeld())];
  for (;;) {
    await drainRouter(Math.max(0, deadlineMs - clock.monotonicMs()));
    const round = layers.map((layer) => layer.watchHeld());
    rounds.push(round);
    // Each looks each time: they note since when all of theirs has been received.
    while (!round.map((watch) => watch.isSeenTo).every((isSeenTo) => isSeenTo)) {
      if (clock.monotonicMs() >= deadlineMs) {
        for (const watch of rounds.flat()) watch.giveUpStuck(stuckMs);
        return false;
      }
      await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
    }
    if (!round.some((watch) => watch.hasGivenBack)) return true;
  }
}
