/** Bounds on connections from outside, over all listeners that share an admission. */
export interface AdmissionLimits {
  /** Connections that have not authenticated, at once; 1 to 1 000 000. @default 1000 */
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

/** Decides who may open a stream at all, so that nobody takes the room of everybody. */
export class StreamAdmission {
  readonly #maxUnauthenticated: number;
  readonly #maxPerAddress: number;
  readonly #byAddress = new Map<string, number>();
  #unauthenticated = 0;

  constructor(limits: AdmissionLimits = {}) {
    this.#maxUnauthenticated = limits.maxUnauthenticated ?? DEFAULT_MAX;
    this.#maxPerAddress = limits.maxPerAddress ?? DEFAULT_MAX;
    for (const [name, value] of Object.entries(limits)) {
      if (!Number.isInteger(value) || value < 1 || value > MAX) {
        throw new RangeError(
          `Cannot set ${name} to ${value}: it must be an integer from 1 to ${MAX}`,
        );
      }
    }
  }

  /** Connections that have not authenticated. */
  get unauthenticatedCount(): number {
    return this.#unauthenticated;
  }

  /** A ticket, or the limit that keeps the candidate out. */
  admit(
    candidate: AdmissionCandidate,
  ): AdmissionTicket | "unauthenticated-streams" | "streams-per-address" {
    if (this.#unauthenticated >= this.#maxUnauthenticated) return "unauthenticated-streams";
    const address = candidate.isLoopback ? undefined : withoutPort(candidate.remoteAddress);
    if (address !== undefined) {
      const count = this.#byAddress.get(address) ?? 0;
      if (count >= this.#maxPerAddress) return "streams-per-address";
      this.#byAddress.set(address, count + 1);
    }
    this.#unauthenticated++;
    return this.#ticket(address);
  }

  #ticket(address: string | undefined): AdmissionTicket {
    let isAuthenticated = false;
    let hasLeft = false;
    const authenticated = () => {
      if (isAuthenticated || hasLeft) return;
      isAuthenticated = true;
      this.#unauthenticated--;
    };
    return {
      authenticated,
      left: () => {
        authenticated();
        if (hasLeft) return;
        hasLeft = true;
        if (address === undefined) return;
        const count = this.#byAddress.get(address)! - 1; // counted when it was let in
        if (count === 0) this.#byAddress.delete(address);
        else this.#byAddress.set(address, count);
      },
    };
  }
}

function withoutPort(remoteAddress: string): string {
  return remoteAddress.slice(0, remoteAddress.lastIndexOf(":"));
}
