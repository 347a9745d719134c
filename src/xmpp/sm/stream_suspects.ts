import type { Stanza } from "../stanza/stanza.ts";

/** Number of remembered accounts; the one that was warned of longest ago is forgotten first. */
const MAX_ACCOUNTS = 10_000;
/** Number of remembered stanzas for one account. */
const MAX_STANZAS = 32;
/** Milliseconds for which an account is remembered after the last suspicious end of a stream. */
const LIFETIME_MS = 600_000;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

interface Account {
  /** Streams that ended without a reason before the client acknowledged any of their stanzas. */
  readonly barren: number;
  readonly isWarned: boolean;
  /** Number of streams that each stanza has ended, by its fingerprint. */
  readonly ends: Map<string, number>;
  readonly untilMs: number;
}

/**
 * Accounts with streams that a stanza seems to have ended, and the number of streams that each suspected
 * stanza has ended. A stanza may reach its recipient by several streams, sessions and resources, so the
 * whole process shares one record. It is bounded in accounts, stanzas and time.
 */
export class StreamSuspects {
  readonly #accounts = new Map<string, Account>();

  /**
   * Records that a client of `account` has refused a stanza by an error that ended its stream. From now
   * on its account is warned of.
   */
  refused(account: string, nowMs: number): void {
    this.#remember(account, nowMs, { isWarned: true });
  }

  /**
   * Records that a client of `account` vanished without acknowledging anything on its stream. One such
   * end is a bad connection. After a second one the account is warned of.
   */
  endedBarren(account: string, nowMs: number): void {
    const barren = (this.#find(account, nowMs)?.barren ?? 0) + 1;
    this.#remember(account, nowMs, barren > 1 ? { barren, isWarned: true } : { barren });
  }

  #remember(account: string, nowMs: number, change: Partial<Account>): void {
    const known = this.#find(account, nowMs) ?? { barren: 0, isWarned: false, ends: new Map() };
    this.#accounts.delete(account);
    this.#accounts.set(account, { ...known, ...change, untilMs: nowMs + LIFETIME_MS });
    for (const oldest of this.#accounts.keys()) {
      if (this.#accounts.size <= MAX_ACCOUNTS) return;
      this.#accounts.delete(oldest);
    }
  }

  /** True when `account` should get its stanzas one by one, so that the cause shows. */
  isWarned(account: string, nowMs: number): boolean {
    return this.#find(account, nowMs)?.isWarned === true;
  }

  /**
   * Records that `stanza` alone can have ended a stream of `account`. @returns the number of streams it
   * has ended
   */
  blame(account: string, stanza: Stanza, nowMs: number): number {
    this.refused(account, nowMs);
    const { ends } = this.#find(account, nowMs)!; // just remembered
    const fingerprint = fingerprintOf(stanza);
    const count = (ends.get(fingerprint) ?? 0) + 1;
    ends.delete(fingerprint);
    ends.set(fingerprint, count);
    for (const oldest of ends.keys()) {
      if (ends.size <= MAX_STANZAS) break;
      ends.delete(oldest);
    }
    return count;
  }

  #find(account: string, nowMs: number): Account | undefined {
    const found = this.#accounts.get(account);
    return found === undefined || found.untilMs <= nowMs ? undefined : found;
  }
}

/** Returns a fingerprint that recognises a stanza when it comes again, perhaps to another resource. */
function fingerprintOf({ from, bytes }: Stanza): string {
  let hash = FNV_OFFSET;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return `${bytes.length} ${hash >>> 0} ${from.text}`;
}
