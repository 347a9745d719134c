import type { Claim } from "./claims.ts";
import type { RedisCommand } from "./redis_commands.ts";

/** A session of this node. */
export interface OwnSession {
  readonly id: string;
  /** Number of the session in its process; the id ends with it. */
  readonly number: number;
  readonly resourcepart: string;
  /** Epoch drawn when it opened; its claim's own is higher if the account knew a higher one. */
  readonly openedUs: number;
  /** Epoch of its claim; 0 until it is settled, which wants a look at the claims that are known. */
  epoch: number;
  /** False until the keys have once been given this login's host. */
  isAnnounced: boolean;
  /** How often its claim was written. */
  renewal: number;
  /** Priority while it is available. */
  priority: number | undefined;
}

/** A session of this node that has closed and whose keys are still being seen to. */
export interface ClosedSession {
  readonly id: string;
  readonly resourcepart: string;
  /** Monotonic milliseconds when it closed. */
  readonly closedMs: number;
  /** True when its claim was removed and its keys were given back once. */
  isWithdrawn: boolean;
}

const NOTHING: ReadonlySet<string> = new Set();

interface Seen {
  readonly renewal: number;
  readonly sinceMs: number;
}

/**
 * What this node holds of one account (bare JID) or of one component's domain: the unit that is
 * written, read back and renewed.
 */
export class Account {
  /** Bare JID or domain: the name of its key. */
  readonly name: string;
  readonly sessions: OwnSession[] = [];
  readonly closed: ClosedSession[] = [];
  /** Bucket of the wheel that renews it. */
  slot = -1;
  /** True while its commands are on their way; at most one batch works on an account. */
  isBusy = false;
  // a million quiet accounts need none of these maps
  #touched: Set<string> | undefined;
  #incoming: RedisCommand[] | undefined;
  #handedTo: Map<string, string> | undefined;
  #suspects: Map<string, string> | undefined;
  #seen: Map<string, Seen> | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** True when nothing of it is ours any more. */
  get isEmpty(): boolean {
    return this.sessions.length === 0 && this.closed.length === 0 && !this.isTouched;
  }

  /** True when another datacenter's change waits to be written, or keys wait to be looked at. */
  get isTouched(): boolean {
    return this.#touched !== undefined;
  }

  /** Wants the keys of the account and of `resourcepart` to be looked at by the next pass. */
  touch(resourcepart: string): void {
    (this.#touched ??= new Set()).add(resourcepart);
  }

  /** Has `command` carried out by the next pass, before it reads. */
  bring(command: RedisCommand): void {
    (this.#incoming ??= []).push(command);
  }

  /** Resources that the pass which begins now has to see to besides those of our sessions. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched ?? NOTHING;
    this.#touched = undefined;
    return touched;
  }

  /** Commands that the pass which begins now has to carry out first. */
  takeIncoming(): readonly RedisCommand[] {
    const incoming = this.#incoming ?? [];
    this.#incoming = undefined;
    return incoming;
  }

  /** True when a key names a host without a claim. */
  get isDoubtful(): boolean {
    return this.#suspects !== undefined && this.#suspects.size > 0;
  }

  /** Host to which we gave the key on behalf of its owner. */
  handedTo(key: string): string | undefined {
    return this.#handedTo?.get(key);
  }

  noteHandedTo(key: string, host: string | undefined): void {
    if (host !== undefined) (this.#handedTo ??= new Map()).set(key, host);
    else this.#handedTo?.delete(key);
  }

  /** Host that the key named without any claim to show for it, at the last look. */
  suspect(key: string): string | undefined {
    return this.#suspects?.get(key);
  }

  noteSuspect(key: string, host: string | undefined): void {
    if (host !== undefined) (this.#suspects ??= new Map()).set(key, host);
    else this.#suspects?.delete(key);
  }

  /** Since when (monotonic milliseconds) another's claim has stood at the same renewal. */
  unchangedSinceMs(claim: Claim): number | undefined {
    return this.#seen?.get(claim.id)?.sinceMs;
  }

  /** Forgets how long others' claims have stood still: for a while we could not look. */
  restartRenewals(): void {
    this.#seen = undefined;
  }

  /** Remembers how others' claims stand, and forgets those that are gone. */
  noteRenewals(foreign: readonly Claim[], nowMs: number): void {
    if (foreign.length === 0) {
      this.#seen = undefined;
      return;
    }
    const before = this.#seen;
    this.#seen = new Map(foreign.map(({ id, renewal }) => {
      const seen = before?.get(id);
      return [id, seen?.renewal === renewal ? seen : { renewal, sinceMs: nowMs }];
    }));
  }
}
