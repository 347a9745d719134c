import type { Clock } from "../../base/mod.ts";
import type { HeldState, HostLinks } from "./host_links.ts";

/** Milliseconds in which a stanza that a peer has received is mostly settled, unless it is kept there. */
const RECEIVED_MS = 1000;

/** A destination, as far as it is watched. */
type WatchedHost = Pick<HostLinks, "watchHeld" | "openLinks" | "giveUp">;

interface Watched {
  readonly host: WatchedHost;
  readonly look: () => HeldState;
  /** Monotonic milliseconds since when what is looked at has been there. */
  sinceMs: number;
}

/**
 * What the lanes of a `LinkLayer` held at one moment, and what has become of it. New stanzas may come all
 * the time, from peers that have not heard yet that this node leaves: nobody waits for those.
 */
export class HeldWatch {
  readonly #clock: Clock;
  readonly #givenBack: () => number;
  readonly #givenBackBefore: number;
  readonly #hosts: readonly Watched[];
  #receivedSinceMs: number | undefined;

  /** @param givenBack how many stanzas lanes have given back so far */
  constructor(hosts: Iterable<WatchedHost>, clock: Clock, givenBack: () => number) {
    this.#clock = clock;
    this.#givenBack = givenBack;
    this.#givenBackBefore = givenBack();
    this.#hosts = Array.from(hosts, (host) => {
      const watched: Watched = { host, look: () => look(), sinceMs: clock.monotonicMs() };
      const look = host.watchHeld(() => watched.sinceMs = clock.monotonicMs());
      return watched;
    });
  }

  /** True when none of it is in a lane any more. */
  get isGone(): boolean {
    return this.#hosts.every(({ look }) => look() === "gone");
  }

  /** True when nobody has said to have received some of it. */
  get isOpen(): boolean {
    return this.#hosts.some(({ look }) => look() === "open");
  }

  /**
   * True when it is gone, or since `RECEIVED_MS` with peers that live: that is theirs to see to, as for a
   * client that sleeps, and may stay so for long. Right only for somebody who asks again and again.
   */
  get isSeenTo(): boolean {
    const states = this.#hosts.map(({ look }) => look());
    if (states.includes("open")) {
      this.#receivedSinceMs = undefined;
      return false;
    }
    const nowMs = this.#clock.monotonicMs();
    this.#receivedSinceMs ??= nowMs;
    return !states.includes("received") || nowMs - this.#receivedSinceMs >= RECEIVED_MS;
  }

  /** True when lanes have given back anything since: it may be on its way to another one. */
  get hasGivenBack(): boolean {
    return this.#givenBack() !== this.#givenBackBefore;
  }

  /**
   * Gives up the destinations that have not received it. The links that they have to us stay, as do those
   * to all others: what was received here can be settled yet.
   *
   * @param afterMs for so long a destination that is linked may have had it
   */
  giveUpStuck(afterMs: number): void {
    for (const watched of this.#hosts) {
      if (watched.look() !== "open") continue;
      const hadTime = this.#clock.monotonicMs() - watched.sinceMs >= afterMs;
      if (hadTime || watched.host.openLinks === 0) watched.host.giveUp();
    }
  }
}
