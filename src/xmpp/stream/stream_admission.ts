/** Bounds on connections from outside, over all listeners that share an admission. */
export interface AdmissionLimits {
  /**
   * Connections that have not authenticated, at once; one more ends the oldest of them. 1 to
   * 1 000 000. @default 1000
   */
  readonly maxUnauthenticated?: number;
  /** Connections from one IP address, at once, loopback not counted; 1 to 1 000 000. @default 1000 */
  readonly maxPerAddress?: number;
}

/** A connection that was let in. */
export interface AdmissionTicket {
  /** The peer has authenticated. */
  authenticated(): void;
  /** The connection is over. */
  left(): void;
}

/** What an admission needs to know of a connection. */
export interface AdmissionCandidate {
  /** With the port, `192.0.2.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress: string;
  readonly isLoopback: boolean;
}

const DEFAULT_MAX = 1_000;
const MAX = 1_000_000;

/** A stranger: how to make it go. */
interface Stranger {
  readonly evict: () => void;
}

/**
 * Decides who may open a stream at all. Where there are too many strangers the oldest goes, not the
 * newest: whoever means it logs in within a second, and whoever only sits there keeps nobody out.
 */
export class StreamAdmission {
  readonly #maxUnauthenticated: number;
  readonly #maxPerAddress: number;
  readonly #byAddress = new Map<string, number>();
  /** Oldest first. */
  readonly #strangers = new Set<Stranger>();

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
    return this.#strangers.size;
  }

  /**
   * A ticket; undefined when the candidate's address has its share already.
   * @param evict ends the candidate's connection when it has to make room for another
   */
  admit(candidate: AdmissionCandidate, evict: () => void): AdmissionTicket | undefined {
    const address = candidate.isLoopback ? undefined : withoutPort(candidate.remoteAddress);
    if (address !== undefined) {
      const count = this.#byAddress.get(address) ?? 0;
      if (count >= this.#maxPerAddress) return undefined;
      this.#byAddress.set(address, count + 1);
    }
    if (this.#strangers.size >= this.#maxUnauthenticated) {
      const [oldest] = this.#strangers;
      this.#strangers.delete(oldest!); // there is one, as the bound is at least 1
      oldest!.evict();
    }
    const stranger = { evict };
    this.#strangers.add(stranger);
    let hasLeft = false;
    return {
      authenticated: () => {
        this.#strangers.delete(stranger);
      },
      left: () => {
        this.#strangers.delete(stranger);
        if (hasLeft) return;
        hasLeft = true;
        if (address !== undefined) this.#leave(address);
      },
    };
  }

  #leave(address: string): void {
    const count = this.#byAddress.get(address)! - 1; // counted when it was let in
    if (count === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, count);
  }
}

function withoutPort(remoteAddress: string): string {
  return remoteAddress.slice(0, remoteAddress.lastIndexOf(":"));
}
