import type { Clock } from "../base/mod.ts";
import type { HeldWatch } from "../distribution/links/mod.ts";

/** Milliseconds between two checks of the lanes. */
const CHECK_MS = 10;
/**
 * Milliseconds after which a stanza that a linked peer has not received counts as stuck. At most
 * half of `withinMs`.
 */
const STUCK_MS = 1000;

/** The links of one scope, as a stop sees them. */
export interface SeenOff {
  watchHeld(): Pick<HeldWatch, "isSeenTo" | "hasGivenBack" | "giveUpStuck">;
}

/** Time limit of the wait, and the work between two rounds. */
export interface SeeOffOptions {
  readonly clock: Clock;
  readonly withinMs: number;
  /** Routes stanzas that lanes have returned, and stanzas that wait for a lookup. */
  drainRouter(withinMs: number): Promise<void>;
}

/**
 * Waits until each stanza in the lanes is settled, or received by a live peer (that peer owns it
 * then). A returned stanza may be on its way to another lane, so the wait then starts another
 * round. After `withinMs` the lanes return the stanzas of destinations that are stuck.
 *
 * @returns false when any destination was stuck: route what its lane returned
 */
export async function seeOffLanes(
  layers: readonly SeenOff[],
  { clock, withinMs, drainRouter }: SeeOffOptions,
): Promise<boolean> {
  const deadlineMs = clock.monotonicMs() + withinMs;
  const stuckMs = Math.min(STUCK_MS, withinMs / 2);
  // Start watching before the router drains: draining may take all the time.
  const rounds = [layers.map((layer) => layer.watchHeld())];
  for (;;) {
    await drainRouter(Math.max(0, deadlineMs - clock.monotonicMs()));
    const round = layers.map((layer) => layer.watchHeld());
    rounds.push(round);
    // Ask every watch each time: a watch notes the moment when all its stanzas were received.
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
