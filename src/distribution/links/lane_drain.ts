import type { Clock } from "../../base/mod.ts";
import { waitUntil } from "./wait_until.ts";
import type { HeldState } from "./lanes/held_marks.ts";
import type { HostLinks } from "./pools/host_links.ts";

/**
 * Milliseconds within which a peer settles most stanzas that it has received and does not have to
 * keep.
 */
const RECEIVED_MS = 1000;
/**
 * Milliseconds after which a stanza that a linked peer has not received counts as stuck. At most
 * half of the time of the drain.
 */
const STUCK_MS = 1000;

/** The links to one destination, as a drain sees them. */
export type DrainedDestination = Pick<HostLinks, "watchHeld" | "openLinks" | "giveUp">;

/** The links of one scope, as a drain sees them. */
export interface DrainedLinks {
  readonly destinations: Iterable<DrainedDestination>;
  /** Stanzas that the lanes have given back so far. */
  readonly givenBack: number;
}

/** The parts that a drain works with. */
export interface LaneDrainDeps {
  readonly clock: Clock;
  readonly links: readonly DrainedLinks[];
  /**
   * Routes stanzas that lanes have given back, perhaps into other lanes. Resolves within
   * `withinMs`.
   */
  route(withinMs: number): Promise<void>;
  /**
   * True once the stanzas that peers had sent when the drain began are settled. Present for links
   * that end behind the drain. Those links take no new stanzas from peers, so the drain then also
   * waits until peers have received what the lanes were given meanwhile.
   */
  isInboundSettled?(): boolean;
}

/**
 * End of a drain: the stanzas are all `settled`; live peers have received the rest and have `kept`
 * it, as for a client that sleeps; or time was over and it is `late`.
 */
export type DrainOutcome = "settled" | "kept" | "late";

/**
 * Empties lanes at a stop: waits until the stanzas that they hold are settled, or received by live
 * peers, which own them then.
 *
 * It works in rounds. A round routes what lanes have given back, and watches what the lanes hold by
 * then. Later stanzas do not count: peers that have not heard yet that this node leaves may send
 * them all the time. When lanes have given back stanzas meanwhile, which other lanes may hold now,
 * another round follows.
 */
export class LaneDrain {
  readonly #deps: LaneDrainDeps;
  readonly #rounds: Round[] = [];
  #stuckMs = STUCK_MS;

  constructor(deps: LaneDrainDeps) {
    this.#deps = deps;
  }

  /** Drains within `withinMs`. Called once. */
  async run(withinMs: number): Promise<DrainOutcome> {
    const { clock, links, route } = this.#deps;
    const deadlineMs = clock.monotonicMs() + withinMs;
    this.#stuckMs = Math.min(STUCK_MS, withinMs / 2);
    // Start watching before the router is busy: routing may take all the time.
    this.#rounds.push(new Round(links, clock));
    for (;;) {
      await route(Math.max(0, deadlineMs - clock.monotonicMs()));
      const round = new Round(links, clock);
      this.#rounds.push(round);
      let outcome: DrainOutcome | undefined;
      await waitUntil(clock, () => {
        outcome = this.#outcome(round);
        return outcome !== undefined || clock.monotonicMs() >= deadlineMs;
      });
      if (outcome === undefined) return "late";
      if (!round.hasGivenBack) return outcome;
    }
  }

  /**
   * Gives up the destinations that have not received their stanzas of any round. Their lanes give
   * these back to be routed. Other links stay, and so do the links that such a destination has to
   * this node: stanzas received over them can still be settled.
   */
  giveUpStuck(): void {
    for (const round of this.#rounds) round.giveUpStuck(this.#stuckMs);
  }

  /** Looks at a round; undefined while it goes on. */
  #outcome(round: Round): DrainOutcome | undefined {
    const { isInboundSettled } = this.#deps;
    const state = round.look();
    switch (state) {
      case "open":
      case "received":
        return undefined;
      case "kept":
        return isInboundSettled !== undefined && this.#isAnyOpen() ? undefined : "kept";
      case "gone":
        return isInboundSettled === undefined || isInboundSettled() ? "settled" : undefined;
      default:
        return state satisfies never;
    }
  }

  /** True when lanes hold any stanza now that was not reported as received. */
  #isAnyOpen(): boolean {
    for (const { destinations } of this.#deps.links) {
      for (const destination of destinations) if (destination.watchHeld()() === "open") return true;
    }
    return false;
  }
}

/** Stanzas that the lanes to one destination held at one moment. */
class Watched {
  readonly #destination: DrainedDestination;
  readonly #clock: Clock;
  readonly #look: () => HeldState;
  /** Monotonic milliseconds since when they have been in their lanes. */
  #heldSinceMs: number;
  /** Monotonic milliseconds since when live peers have had all of them; undefined otherwise. */
  #receivedSinceMs: number | undefined;

  constructor(destination: DrainedDestination, clock: Clock) {
    this.#destination = destination;
    this.#clock = clock;
    this.#heldSinceMs = clock.monotonicMs();
    this.#look = destination.watchHeld(() => this.#heldSinceMs = clock.monotonicMs());
  }

  /** Returns their state; `kept` once live peers have had them for `RECEIVED_MS`. */
  look(): HeldState | "kept" {
    const state = this.#look();
    if (state !== "received") {
      this.#receivedSinceMs = undefined;
      return state;
    }
    const nowMs = this.#clock.monotonicMs();
    this.#receivedSinceMs ??= nowMs;
    return nowMs - this.#receivedSinceMs >= RECEIVED_MS ? "kept" : "received";
  }

  /** @param afterMs milliseconds that a linked destination gets to receive them */
  giveUpIfStuck(afterMs: number): void {
    if (this.look() !== "open") return;
    const hadTime = this.#clock.monotonicMs() - this.#heldSinceMs >= afterMs;
    if (hadTime || this.#destination.openLinks === 0) this.#destination.giveUp();
  }
}

/** Stanzas that all lanes held at one moment. */
class Round {
  readonly #links: readonly DrainedLinks[];
  readonly #givenBackBefore: number;
  readonly #watched: readonly Watched[];

  constructor(links: readonly DrainedLinks[], clock: Clock) {
    this.#links = links;
    this.#givenBackBefore = this.#givenBack;
    this.#watched = links.flatMap(({ destinations }) =>
      Array.from(destinations, (destination) => new Watched(destination, clock))
    );
  }

  /** Returns their state all together: that of the destination that has come least far. */
  look(): HeldState | "kept" {
    // Look at all of them each time: each notes the moment when its stanzas were received.
    const states = this.#watched.map((watched) => watched.look());
    return STATES.find((state) => states.includes(state)) ?? "gone";
  }

  /** True when lanes have given back any stanza since: another lane may get it. */
  get hasGivenBack(): boolean {
    return this.#givenBack !== this.#givenBackBefore;
  }

  get #givenBack(): number {
    return this.#links.reduce((sum, { givenBack }) => sum + givenBack, 0);
  }

  giveUpStuck(afterMs: number): void {
    for (const watched of this.#watched) watched.giveUpIfStuck(afterMs);
  }
}

/** States of watched stanzas, in the order of their progress. */
const STATES = ["open", "received", "kept"] as const;
