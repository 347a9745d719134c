import type { Clock } from "../../base/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";

/** Milliseconds for which the answer about an account counts. */
const KNOWN_MS = 2_000;
/** Accounts about which the database is asked at the same time. */
const MOST_ASKED = 4;

/** Objects behind `AbsentAccounts`. */
export interface AbsentAccountsDeps {
  exists(account: BareJid): Promise<boolean>;
  /** Returns a function that is true for messages that the default list of an account keeps out. */
  refusalsFor(account: BareJid): Promise<(message: Stanza) => boolean>;
  readonly clock: Clock;
}

/** Outcomes of a message in the archive of an account without sessions. */
export type Reception = "takes" | "missing" | "blocked";

/** An account, as the database knows it. Undefined when it does not exist. */
type Refusals = ((message: Stanza) => boolean) | undefined;

interface Known {
  readonly refusals: Refusals;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
}

/**
 * Accounts that nobody knows to be online, and whether they take a message.
 *
 * The database gets one question about an account at a time, and few at the same time in all, however
 * many messages there are. Answers about one account come in the order of the calls.
 */
export class AbsentAccounts {
  readonly #deps: AbsentAccountsDeps;
  /** Questions under way, by bare JID. */
  readonly #asked = new Map<string, Promise<Refusals>>();
  /** Answers, the oldest one first. */
  readonly #known = new Map<string, Known>();
  readonly #waiting: (() => void)[] = [];
  #free = MOST_ASKED;

  constructor(deps: AbsentAccountsDeps) {
    this.#deps = deps;
  }

  /** Rejects when the database cannot tell. */
  async receptionOf(account: BareJid, message: Stanza): Promise<Reception> {
    const refusals = await this.#find(account);
    if (refusals === undefined) return "missing";
    return refusals(message) ? "blocked" : "takes";
  }

  #find(account: BareJid): Promise<Refusals> {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [text, { untilMs }] of this.#known) {
      if (untilMs > nowMs) break;
      this.#known.delete(text);
    }
    const known = this.#known.get(account.text);
    if (known !== undefined) return Promise.resolve(known.refusals);
    let asked = this.#asked.get(account.text);
    if (asked === undefined) this.#asked.set(account.text, asked = this.#ask(account));
    return asked;
  }

  async #ask(account: BareJid): Promise<Refusals> {
    const { exists, refusalsFor, clock } = this.#deps;
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    try {
      const refusals = await exists(account) ? await refusalsFor(account) : undefined;
      this.#known.set(account.text, { refusals, untilMs: clock.monotonicMs() + KNOWN_MS });
      return refusals;
    } finally {
      this.#asked.delete(account.text);
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
