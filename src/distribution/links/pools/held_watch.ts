import type { Clock } from "../../../base/mod.ts";
import type { HeldState, HostLinks } from "./host_links.ts";

/**
 * Milliseconds within which a peer settles most stanzas that it has received and does not have to
 * keep.
 */
const RECEIVED_MS = 1000;

/** The part of a destination's links that is watched. */
type WatchedHost = Pick<HostLinks, "watchHeld" | "openLinks" | "giveUp">;

interface Watched {
  readonly host: WatchedHost;
  readonly look: () => HeldState;
  /** Monotonic milliseconds since when the watched stanzas have been in their lanes. */
  sinceMs: number;
}

/**
 * Watches the stanzas that the lanes of a `LinkLayer` held at one moment. Later stanzas do not
 * count: peers that have not heard yet that this node leaves may send them all the time.
 */
export class HeldWatch {
  readonly #clock: Clock;
  readonly #givenBack: () => number;
  readonly #givenBackBefore: number;
  readonly #hosts: readonly Watched[];
  #receivedSinceMs: number | undefined;

  /** @param givenBack returns how many stanzas lanes have given back so far */
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

  /** True when no lane holds any of the watched stanzas. */
  get isGone(): boolean {
    return this.#hosts.every(({ look }) => look() === "gone");
  }

  /** True when some of the watched stanzas were not reported as received. */
  get isOpen(): boolean {
    return this.#hosts.some(({ look }) => look() === "open");
  }

  /**
   * True when all are gone, or live peers have had the rest for `RECEIVED_MS`. Those peers own
   * them, and may keep them for long, as for a client that sleeps. Only right if it is called again
   * and again.
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

  /** True when lanes have given back any stanza since: another lane may get it. */
  get hasGivenBack(): boolean {
    return this.#givenBack() !== this.#givenBackBefore;
  }

  /**
   * Gives up the destinations that have not received their stanzas. Other links stay, and so do the
   * links that such a destination has to this node: stanzas received over them can still be
   * settled.
   *
   * @param afterMs milliseconds that a linked destination gets to receive them
   */
  giveUpStuck(afterMs: number): void {
    for (const watched of this.#hosts) {
      if (watched.look() !== "open") continue;
      const hadTime = this.#clock.monotonicMs() - watched.sinceMs >= afterMs;
      if (hadTime || watched.host.openLinks === 0) watched.host.giveUp();
    }
  }
}
