import type { Clock, PeerAddress } from "../../base/mod.ts";
import { addressKey, SystemClock } from "../../base/mod.ts";

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

/** A connection that was let in. */
export interface AdmissionTicket {
  /** The peer has said a whole stream header. */
  greeted(): void;
  /** The peer has authenticated. */
  authenticated(): void;
  /** The connection is over. */
  left(): void;
}

/** How a connection that was let in is made to go. */
export interface AdmissionExit {
  /** It has to make room for another: tells the peer, who has a moment to hang up. */
  evict(): void;
  /** It has been told, and there is no room even for those who were: ends it at once. */
  cut(): void;
}

const DEFAULT_MAX = 1_000;
const MAX = 1_000_000;

/**
 * Time to say a header, and then to log in, that a stranger has before those who came later. Over a
 * slow mobile network all that takes 2 to 3 s.
 */
export const GRACE_MS = 5_000;
/** An address that holds more than the places divided by this has to make room first. */
const ADDRESS_SHARE = 4;

/** A connection that has not authenticated. */
interface Stranger {
  readonly exit: AdmissionExit;
  /** Absent for loopback: whoever is behind a proxy there has nothing to do with the others. */
  readonly address: string | undefined;
  /** When it was let in, or said its header. */
  sinceMs: number;
}

/**
 * Decides who may open a stream at all. Where there are too many strangers one of them goes, not the
 * newest: whoever means it logs in within a second or so, and whoever only sits there keeps nobody
 * out. It is the oldest
 *
 * 1. of an address that holds more than a quarter of all places;
 * 2. of those who have said no header for `GRACE_MS`;
 * 3. of those who have not logged in for `GRACE_MS` after their header;
 * 4. of the silent or of those who said a header, whichever are more: so that neither, however fast
 *    they come, can take more than half of the places from the others.
 *
 * It goes by streams, whatever they run over: one shared by all ports counts those over TCP, TLS (from
 * the end of the handshake) and WebSocket (from the end of the upgrade) alike.
 *
 * Strangers that were told to go and stay count apart, up to the same bound, past which they are cut.
 */
export class StreamAdmission {
  readonly #maxUnauthenticated: number;
  readonly #maxPerAddress: number;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #byAddress = new Map<string, number>();
  /** Those who have said nothing whole yet, oldest first. */
  readonly #silent = new Set<Stranger>();
  /** Those who have said a stream header, in the order in which they did. */
  readonly #greeted = new Set<Stranger>();
  /** All of one address, in the order in which they came; loopback is not among them. */
  readonly #strangers = new Map<string, Set<Stranger>>();
  /** Of those, the ones with more than their share; hence few. */
  readonly #crowds = new Set<Set<Stranger>>();
  /** Told to go, and not gone yet; oldest first. */
  readonly #leaving = new Set<Stranger>();

  /** @param clock tells how long strangers have been there */
  constructor(
    limits: AdmissionLimits = {},
    clock: Pick<Clock, "monotonicMs"> = new SystemClock(),
  ) {
    this.#maxUnauthenticated = limits.maxUnauthenticated ?? DEFAULT_MAX;
    this.#maxPerAddress = limits.maxPerAddress ?? DEFAULT_MAX;
    this.#clock = clock;
    for (
      const [name, value] of [
        ["maxUnauthenticated", this.#maxUnauthenticated],
        ["maxPerAddress", this.#maxPerAddress],
      ] as const
    ) {
      if (Number.isInteger(value) && value >= 1 && value <= MAX) continue;
      throw new RangeError(
        `Cannot set ${name} to ${value}: it must be an integer from 1 to ${MAX}`,
      );
    }
  }

  /** Connections that have not authenticated. */
  get unauthenticatedCount(): number {
    return this.#silent.size + this.#greeted.size;
  }

  /**
   * A ticket; undefined when the candidate's address has its share already.
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
      this.#leaving.delete(slowest!); // there is one, as the bound is at least 1
      slowest!.exit.cut();
    }
    const leaver = this.#whoGoes();
    this.#forget(leaver);
    this.#leaving.add(leaver);
    leaver.exit.evict();
  }

  /** There is somebody, as the bound is at least 1. */
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

  /** Counts it among the strangers no more. */
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
