import type { PeerAddress } from "../../base/mod.ts";
import { addressKey } from "../../base/mod.ts";

/** Bounds on connections from outside, over all listeners that share an admission. */
export interface AdmissionLimits {
  /**
   * Connections that have not authenticated, at once; one more ends the oldest of them. 1 to
   * 1 000 000. @default 1000
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
 * Decides who may open a stream at all. Where there are too many strangers the oldest goes, not the
 * newest: whoever means it logs in within a second, and whoever only sits there keeps nobody out. Those
 * who have not even said a header go first: they may come faster than anybody can log in.
 *
 * Strangers that were told to go and stay count apart, up to the same bound, past which they are cut.
 */
export class StreamAdmission {
  readonly #maxUnauthenticated: number;
  readonly #maxPerAddress: number;
  readonly #byAddress = new Map<string, number>();
  /** Those who have said nothing whole yet, oldest first. */
  readonly #silent = new Set<AdmissionExit>();
  /** Those who have said a stream header, in the order in which they did. */
  readonly #greeted = new Set<AdmissionExit>();
  /** Told to go, and not gone yet; oldest first. */
  readonly #leaving = new Set<AdmissionExit>();

  constructor(limits: AdmissionLimits = {}) {
    this.#maxUnauthenticated = limits.maxUnauthenticated ?? DEFAULT_MAX;
    this.#maxPerAddress = limits.maxPerAddress ?? DEFAULT_MAX;
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
    if (this.unauthenticatedCount >= this.#maxUnauthenticated) this.#evictOldest();
    this.#silent.add(exit);
    let hasLeft = false;
    return {
      greeted: () => {
        if (this.#silent.delete(exit)) this.#greeted.add(exit);
      },
      authenticated: () => this.#forget(exit),
      left: () => {
        this.#forget(exit);
        this.#leaving.delete(exit);
        if (hasLeft) return;
        hasLeft = true;
        if (address !== undefined) this.#leave(address);
      },
    };
  }

  #evictOldest(): void {
    if (this.#leaving.size >= this.#maxUnauthenticated) {
      const [slowest] = this.#leaving;
      this.#leaving.delete(slowest!); // there is one, as the bound is at least 1
      slowest!.cut();
    }
    const [oldest] = this.#silent.size > 0 ? this.#silent : this.#greeted;
    this.#forget(oldest!);
    this.#leaving.add(oldest!);
    oldest!.evict();
  }

  #forget(exit: AdmissionExit): void {
    this.#silent.delete(exit);
    this.#greeted.delete(exit);
  }

  #leave(address: string): void {
    const count = this.#byAddress.get(address)! - 1; // counted when it was let in
    if (count === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, count);
  }
}
