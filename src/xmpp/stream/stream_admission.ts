import type { Clock, PeerAddress } from "../../base/mod.ts";
import { addressKey, resolveIntegers, SystemClock } from "../../base/mod.ts";

/** Bounds on connections from outside, over all listeners that share an admission. */
export interface AdmissionLimits {
  /**
   * Connections that have not authenticated, at once; one more ends another (see
   * `StreamAdmission`). 1 to 1 000 000. @default 1000
   */
  readonly maxUnauthenticated?: number;
  /** Connections from one IP address (IPv6: /64), at once, loopback not counted; 1 to 1 000 000. @default 1000 */
  readonly maxPerAddress?: number;
}

/** A connection that was admitted. */
export interface AdmissionTicket {
  /** The peer has sent a whole stream header. */
  greeted(): void;
  /** The peer has authenticated. */
  authenticated(): void;
  /** The connection is over. */
  left(): void;
}

/** Ways to end an admitted connection. */
export interface AdmissionExit {
  /** Ends the connection to make room for another; the peer learns why and has a moment to hang up. */
  evict(): void;
  /** Ends an evicted connection at once, because evicted ones have no room either. */
  cut(): void;
}

const RANGES = {
  maxUnauthenticated: { byDefault: 1_000, min: 1, max: 1_000_000 },
  maxPerAddress: { byDefault: 1_000, min: 1, max: 1_000_000 },
};

/**
 * Time to send a header, and again to log in, in which a stranger has priority over later ones. Over a
 * slow mobile network all of it takes 2 to 3 s.
 */
export const GRACE_MS = 5_000;
/** An address with more than this fraction (1/4) of all places must make room first. */
const ADDRESS_SHARE = 4;

/** A connection that has not authenticated. */
interface Stranger {
  readonly exit: AdmissionExit;
  /** Absent for loopback, because the peers behind a local proxy have nothing to do with each other. */
  readonly address: string | undefined;
  /** Time at which it was admitted, or sent its header. */
  sinceMs: number;
}

/**
 * Decides which connections may open a stream. When there are too many strangers one of them must go,
 * but not the newest. An honest client logs in within a second or so, and an idle one must keep nobody
 * out. The oldest stranger goes of the first group that has any:
 *
 * 1. strangers of an address that holds more than a quarter of all places;
 * 2. strangers that have sent no header for `GRACE_MS`;
 * 3. strangers that have not logged in for `GRACE_MS` after their header;
 * 4. strangers without a header or those with one, whichever are more. So neither kind, however fast it
 *    comes, can take more than half of the places from the other.
 *
 * Streams count alike on every carrier: one admission, shared by all ports, counts those over TCP, TLS
 * (from the end of the handshake) and WebSocket (from the end of the upgrade).
 *
 * Evicted strangers that stay count apart, up to the same bound. Past it they are cut.
 */
export class StreamAdmission {
  #maxUnauthenticated = 0;
  #maxPerAddress = 0;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #byAddress = new Map<string, number>();
  /** Strangers without a whole header, oldest first. */
  readonly #silent = new Set<Stranger>();
  /** Strangers that have sent a stream header, in the order in which they did. */
  readonly #greeted = new Set<Stranger>();
  /** All strangers of one address, in the order in which they came; loopback is not among them. */
  readonly #strangers = new Map<string, Set<Stranger>>();
  /** Groups of `#strangers` with more than their share; hence few. */
  readonly #crowds = new Set<Set<Stranger>>();
  /** Evicted strangers that are still connected, oldest first. */
  readonly #leaving = new Set<Stranger>();

  /** @param clock measures how long strangers have been there */
  constructor(
    limits: AdmissionLimits = {},
    clock: Pick<Clock, "monotonicMs"> = new SystemClock(),
  ) {
    this.#clock = clock;
    this.change(limits);
  }

  /** Takes other limits for connections that come from now on. Those that are here stay. */
  change(limits: AdmissionLimits): void {
    const { maxUnauthenticated, maxPerAddress } = resolveIntegers(RANGES, limits);
    this.#maxUnauthenticated = maxUnauthenticated;
    this.#maxPerAddress = maxPerAddress;
    this.#crowds.clear();
    for (const strangers of this.#strangers.values()) {
      if (this.#isCrowd(strangers)) this.#crowds.add(strangers);
    }
  }

  /** Connections that have not authenticated. */
  get unauthenticatedCount(): number {
    return this.#silent.size + this.#greeted.size;
  }

  /**
   * Returns a ticket; undefined when the candidate's address has used up its share.
   * @param exit ends the candidate's connection when it has to make room for another
   */
  admit(candidate: PeerAddress, exit: AdmissionExit): AdmissionTicket | undefined {
    const address = candidate.isLoopback ? undefined : addressKey(candidate);
    if (address !== undefined) {
      const count = this.#byAddress.get(address) ?? 0;
      if (count >= this.#maxPerAddress) return undefined;
      this.#byAddress.set(address, count + 1);
    }
    if (this.unauthenticatedCount >= this.#maxUnauthenticated) this.#makeRoom();
    const stranger: Stranger = { exit, address, sinceMs: this.#clock.monotonicMs() };
    this.#silent.add(stranger);
    if (address !== undefined) this.#join(address, stranger);
    let hasLeft = false;
    return {
      greeted: () => {
        if (!this.#silent.delete(stranger)) return;
        stranger.sinceMs = this.#clock.monotonicMs();
        this.#greeted.add(stranger);
      },
      authenticated: () => this.#forget(stranger),
      left: () => {
        this.#forget(stranger);
        this.#leaving.delete(stranger);
        if (hasLeft) return;
        hasLeft = true;
        if (address !== undefined) this.#leave(address);
      },
    };
  }

  #makeRoom(): void {
    if (this.#leaving.size >= this.#maxUnauthenticated) {
      const [slowest] = this.#leaving;
      this.#leaving.delete(slowest!); // never empty, as the bound is at least 1
      slowest!.exit.cut();
    }
    const leaver = this.#whoGoes();
    this.#forget(leaver);
    this.#leaving.add(leaver);
    leaver.exit.evict();
  }

  /** Returns the stranger that must go. There is one, as the bound is at least 1. */
  #whoGoes(): Stranger {
    const [crowd] = this.#crowds;
    if (crowd !== undefined) return firstOf(crowd)!;
    const latestMs = this.#clock.monotonicMs() - GRACE_MS;
    const silent = firstOf(this.#silent);
    if (silent !== undefined && silent.sinceMs <= latestMs) return silent;
    const greeted = firstOf(this.#greeted);
    if (greeted !== undefined && greeted.sinceMs <= latestMs) return greeted;
    return this.#silent.size >= this.#greeted.size ? silent! : greeted!;
  }

  #join(address: string, stranger: Stranger): void {
    let strangers = this.#strangers.get(address);
    if (strangers === undefined) this.#strangers.set(address, strangers = new Set());
    strangers.add(stranger);
    if (this.#isCrowd(strangers)) this.#crowds.add(strangers);
  }

  #isCrowd(strangers: Set<Stranger>): boolean {
    return strangers.size > Math.max(1, this.#maxUnauthenticated / ADDRESS_SHARE);
  }

  /** Removes it from the strangers. */
  #forget(stranger: Stranger): void {
    this.#silent.delete(stranger);
    this.#greeted.delete(stranger);
    const { address } = stranger;
    const strangers = address === undefined ? undefined : this.#strangers.get(address);
    if (strangers === undefined) return;
    strangers.delete(stranger);
    if (!this.#isCrowd(strangers)) this.#crowds.delete(strangers);
    if (strangers.size === 0) this.#strangers.delete(address!);
  }

  #leave(address: string): void {
    const count = this.#byAddress.get(address)! - 1; // counted when it was let in
    if (count === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, count);
  }
}

function firstOf(strangers: ReadonlySet<Stranger>): Stranger | undefined {
  const [first] = strangers;
  return first;
}
