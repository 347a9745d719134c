import type { Stanza } from "../stanza.ts";

/** Accounts that are remembered; the one that was warned of longest ago is forgotten first. */
const MAX_ACCOUNTS = 10_000;
/** Stanzas that are remembered for one account. */
const MAX_STANZAS = 32;
/** Milliseconds for which an account is remembered after the last end of a stream that looked suspicious. */
const LIFETIME_MS = 600_000;

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

interface Account {
  /** Streams that ended without a reason while nothing that they brought was acknowledged. */
  readonly barren: number;
  readonly isWarned: boolean;
  /** Streams that each stanza has ended, by its fingerprint. */
  readonly ends: Map<string, number>;
  readonly untilMs: number;
}

/**
 * Accounts whose clients' streams have ended as if over a stanza, and how many streams each suspected
 * stanza has ended. A stanza may come to its recipient by several streams, sessions and resources, so
 * this is kept for the process. Bounded in accounts, stanzas and time.
 */
export class StreamSuspects {
  readonly #accounts = new Map<string, Account>();

  /**
   * A client of `account` has refused what it was sent, by an error that ended its stream: from now on
   * its account is warned of.
   */
  refused(account: string, nowMs: number): void {
    this.#remember(account, nowMs, { isWarned: true });
  }

  /**
   * A client of `account` has gone without a word, and has acknowledged nothing that its stream had
   * brought. Once that is a bad connection. Who does so again is warned of.
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

  /** True when what `account` is sent should go to it one by one, so that the cause shows. */
  isWarned(account: string, nowMs: number): boolean {
    return this.#find(account, nowMs)?.isWarned === true;
  }

  /** `stanza` alone can have ended a stream of `account`. @returns how many streams it has ended */
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

/** What a stanza is recognised by when it comes again, to another resource perhaps. */
function fingerprintOf({ from, bytes }: Stanza): string {
  let hash = FNV_OFFSET;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return `${bytes.length} ${hash >>> 0} ${from.text}`;
}
