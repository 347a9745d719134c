import type { Clock } from "../../base/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";

/** Milliseconds for which the answer counts that an account is there. */
const KNOWN_MS = 2_000;
/** Accounts about which the database is asked at the same time. */
const MOST_ASKED = 4;

/** Objects behind `AbsentAccounts`. */
export interface AbsentAccountsDeps {
  /** Returns the `AccountCredentials.creation` of an account. Undefined when it does not exist. */
  creationOf(account: BareJid): Promise<string | undefined>;
  /** Returns a function that is true for messages that the default list of an account keeps out. */
  refusalsFor(account: BareJid): Promise<(message: Stanza) => boolean>;
  readonly clock: Clock;
}

/**
 * Outcome of a message in the archive of an account without sessions. `taken` has the account's
 * creation.
 */
export type Reception =
  | { readonly kind: "taken"; readonly creation: string }
  | { readonly kind: "missing" | "blocked" };

/** An account, as the database knows it. */
interface Account {
  readonly creation: string;
  refuses(message: Stanza): boolean;
}

interface Known {
  readonly account: Account;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
}

/**
 * Accounts that nobody knows to be online, and whether they take a message.
 *
 * The database gets one question about an account at a time, and few at the same time in all, however
 * many messages there are. Answers about one account come in the order of the calls. An account that
 * was made before a call is there for it: the answer that there is none counts for the calls alone
 * that were made before the question.
 */
export class AbsentAccounts {
  readonly #deps: AbsentAccountsDeps;
  /** Questions under way, by bare JID. */
  readonly #asked = new Map<string, Promise<Account | undefined>>();
  /** Answers, the oldest one first. */
  readonly #known = new Map<string, Known>();
  readonly #waiting: (() => void)[] = [];
  #free = MOST_ASKED;

  constructor(deps: AbsentAccountsDeps) {
    this.#deps = deps;
  }

  /** Rejects when the database cannot tell. */
  async receptionOf(account: BareJid, message: Stanza): Promise<Reception> {
    const found = await this.#find(account);
    if (found === undefined) return { kind: "missing" };
    if (found.refuses(message)) return { kind: "blocked" };
    return { kind: "taken", creation: found.creation };
  }

  /** Returns the creation of an account; undefined when there is none. Rejects as `receptionOf`. */
  async creationOf(account: BareJid): Promise<string | undefined> {
    return (await this.#find(account))?.creation;
  }

  async #find(account: BareJid): Promise<Account | undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [text, { untilMs }] of this.#known) {
      if (untilMs > nowMs) break;
      this.#known.delete(text);
    }
    const known = this.#known.get(account.text);
    if (known !== undefined) return known.account;
    const asked = this.#asked.get(account.text);
    if (asked !== undefined) {
      const found = await asked;
      if (found !== undefined) return found;
    }
    // Messages that have waited for one question share the next one, too.
    let next = this.#asked.get(account.text);
    if (next === undefined) this.#asked.set(account.text, next = this.#ask(account));
    return await next;
  }

  async #ask(account: BareJid): Promise<Account | undefined> {
    const { creationOf, refusalsFor, clock } = this.#deps;
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    try {
      const creation = await creationOf(account);
      if (creation === undefined) return undefined;
      const found = { creation, refuses: await refusalsFor(account) };
      this.#known.set(account.text, { account: found, untilMs: clock.monotonicMs() + KNOWN_MS });
      return found;
    } finally {
      this.#asked.delete(account.text);
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
