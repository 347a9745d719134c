import type { CancelTimer, Clock } from "../base/mod.ts";
import type { Logger } from "../observe/mod.ts";
import type { Action, AuditEntry } from "./api/action_schemas.ts";

/** Entries about known callers that the API shows; the log has all. */
const MAX_KEPT = 500;

/** Entries about strangers that the API shows. They push out no entry about a known caller. */
const MAX_KEPT_OF_STRANGERS = 50;

/** Milliseconds in which `MAX_SINGLE` refusals of strangers get an entry each. */
const WINDOW_MS = 60_000;

/** Refused actions of strangers with an entry of their own, in one window. The rest share one. */
const MAX_SINGLE = 10;

/** Addresses that the entry of the rest counts. */
const MAX_COUNTED_ADDRESSES = 1_000;

/** An action that was refused to a caller without a name. */
export interface StrangersDeed {
  readonly action: Action;
  /** Address and port of the caller. */
  readonly from: string;
  readonly text: string;
}

/** Refusals that have no entry yet. */
interface Rest {
  count: number;
  last: StrangersDeed;
  readonly addresses: Set<string>;
}

/**
 * Actions: who did what, and the outcome. All are in the log, and the last ones in memory. Strangers
 * without a token can ask as often as they like, so their refusals have limits of their own.
 */
export class AuditLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #kept: AuditEntry[] = [];
  readonly #ofStrangers: AuditEntry[] = [];
  #lastId = 0;
  #windowEndsAtMs = -Infinity;
  #singles = 0;
  #rest: Rest | undefined;
  #cancelTimer: CancelTimer | undefined;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** The last entries, newest first. */
  get newest(): readonly AuditEntry[] {
    return [...this.#kept, ...this.#ofStrangers].sort((a, b) => b.id - a.id);
  }

  /** Notes an action of a known caller, also one that was refused. */
  add(entry: Omit<AuditEntry, "id" | "at" | "count">): void {
    this.#write(this.#kept, MAX_KEPT, entry);
  }

  /**
   * Notes an action that was refused to a caller without a name. Beyond ten in a minute, the others
   * of that minute share one entry that counts them, at its end.
   */
  addStranger(deed: StrangersDeed): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#windowEndsAtMs) {
      this.#flush(); // the timer may be late
      this.#windowEndsAtMs = nowMs + WINDOW_MS;
      this.#singles = 0;
    }
    if (this.#singles < MAX_SINGLE) {
      this.#singles++;
      this.#writeStranger(deed);
      return;
    }
    this.#rest ??= { count: 0, last: deed, addresses: new Set() };
    this.#rest.count++;
    this.#rest.last = deed;
    if (this.#rest.addresses.size < MAX_COUNTED_ADDRESSES) {
      this.#rest.addresses.add(hostOf(deed.from));
    }
    this.#cancelTimer ??= this.#clock.after(this.#windowEndsAtMs - nowMs, () => this.#flush());
  }

  /** Writes the entry that is still to come. Call it when the API has closed. */
  close(): void {
    this.#flush();
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest === undefined) return;
    const { count, last, addresses } = rest;
    const isMany = addresses.size === MAX_COUNTED_ADDRESSES;
    const callers = addresses.size === 1
      ? "one address"
      : `${addresses.size}${isMany ? " or more" : ""} addresses`;
    const text =
      `${count} more were refused within a minute, to callers at ${callers}. The last: ` +
      last.text;
    this.#writeStranger({ ...last, text }, count);
  }

  #writeStranger({ action, from, text }: StrangersDeed, count?: number): void {
    this.#write(this.#ofStrangers, MAX_KEPT_OF_STRANGERS, {
      ...{ who: "unknown", from, action, outcome: "refused", text },
      ...(count !== undefined && { count }),
    });
  }

  #write(kept: AuditEntry[], maxKept: number, entry: Omit<AuditEntry, "id" | "at">): void {
    this.#log.audit("admin.action", entry);
    const at = new Date(this.#clock.wallMs()).toISOString();
    kept.push({ id: ++this.#lastId, at, ...entry });
    if (kept.length > maxKept) kept.shift();
  }
}

/** Returns an address without its port. */
function hostOf(from: string): string {
  return from.slice(0, from.lastIndexOf(":"));
}
