import type { SessionOrigin } from "../../../xmpp/mod.ts";
import type { Claim } from "./claims.ts";
import type { RedisCommand } from "../redis/redis_commands.ts";

/** A session of this node. */
export interface OwnSession {
  readonly id: string;
  /** Number of the session in its process; the id ends with it. */
  readonly number: number;
  readonly resourcepart: string;
  /** Set for a session that has come from another node. */
  readonly origin: SessionOrigin | undefined;
  /**
   * Epoch drawn when it opened, or of when another node was asked for it. Its claim's epoch is higher
   * if the account had a higher one.
   */
  readonly openedUs: number;
  /** Epoch of its claim; 0 until it is drawn, which needs the account's other claims. */
  epoch: number;
  /** False until its keys have been written with this login's host once. */
  isAnnounced: boolean;
  /** Number of times that its claim was written, or was to be. */
  renewal: number;
  /** Priority while it is available. */
  priority: number | undefined;
}

/** A closed session of this node whose keys are still looked after. */
export interface ClosedSession {
  readonly id: string;
  readonly resourcepart: string;
  /** Monotonic milliseconds when it closed. */
  readonly closedMs: number;
  /** True when Redis may have a claim of it. */
  readonly wasClaimed: boolean;
  /** True when its claim was removed and its keys were given back once. */
  isWithdrawn: boolean;
}

const NOTHING: ReadonlySet<string> = new Set();

interface Seen {
  readonly renewal: number;
  readonly sinceMs: number;
}

/**
 * State of one account (bare JID) or one component's domain on this node: the unit that is written,
 * read back and renewed.
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
  /** Resources that only other nodes have, as the last pass has found them. */
  elsewhere = 0;
  // a million quiet accounts need none of these maps
  #touched: Set<string> | undefined;
  #incoming: RedisCommand[] | undefined;
  #handedTo: Map<string, string> | undefined;
  #suspects: Map<string, string> | undefined;
  #seen: Map<string, Seen> | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** True when this node has nothing left to do for it. */
  get isEmpty(): boolean {
    return this.sessions.length === 0 && this.closed.length === 0 && !this.isTouched;
  }

  /** True when another datacenter's change waits to be written, or keys wait to be checked. */
  get isTouched(): boolean {
    return this.#touched !== undefined;
  }

  /** Makes the next pass check the keys of the account and of `resourcepart`. */
  touch(resourcepart: string): void {
    (this.#touched ??= new Set()).add(resourcepart);
  }

  /** Makes the next pass run `command`, before it reads. */
  bring(command: RedisCommand): void {
    (this.#incoming ??= []).push(command);
  }

  /** Takes the resources that a pass has to check besides those of our sessions. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched ?? NOTHING;
    this.#touched = undefined;
    return touched;
  }

  /** Takes the commands that a pass has to run first. */
  takeIncoming(): readonly RedisCommand[] {
    const incoming = this.#incoming ?? [];
    this.#incoming = undefined;
    return incoming;
  }

  /** True when a key names a host without a claim. */
  get isDoubtful(): boolean {
    return this.#suspects !== undefined && this.#suspects.size > 0;
  }

  /** Host that this node set the key to on behalf of its owner. */
  handedTo(key: string): string | undefined {
    return this.#handedTo?.get(key);
  }

  noteHandedTo(key: string, host: string | undefined): void {
    if (host !== undefined) (this.#handedTo ??= new Map()).set(key, host);
    else this.#handedTo?.delete(key);
  }

  /** Host that the key named without a claim at the last check. */
  suspect(key: string): string | undefined {
    return this.#suspects?.get(key);
  }

  noteSuspect(key: string, host: string | undefined): void {
    if (host !== undefined) (this.#suspects ??= new Map()).set(key, host);
    else this.#suspects?.delete(key);
  }

  /** Monotonic milliseconds since when another's claim has kept the same renewal. */
  unchangedSinceMs(claim: Claim): number | undefined {
    return this.#seen?.get(claim.id)?.sinceMs;
  }

  /**
   * Forgets how long others' claims have kept their renewals, as they could not be read for a
   * while.
   */
  restartRenewals(): void {
    this.#seen = undefined;
  }

  /** Notes the renewals of others' claims, and forgets claims that are gone. */
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
