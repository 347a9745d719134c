import type { Clock } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";

/** Milliseconds for which a message waits for the answer of a roster, its turn included. */
const ANSWER_MS = 5_000;
/** Rosters that are asked at the same time. */
const MOST_ASKED = 4;

/** Objects behind `RosterQuestions`. */
export interface RosterQuestionsDeps {
  /** True when the roster of an account has a contact. */
  isContact(account: BareJid, contact: BareJid): Promise<boolean>;
  readonly clock: Clock;
}

/**
 * Questions to rosters: one to an account's roster at a time, so that its messages keep their order,
 * and few in all, so that connections to the database stay free. Each is answered within its time.
 */
export class RosterQuestions {
  readonly #deps: RosterQuestionsDeps;
  /** The end of the last question about each account, by bare JID. */
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #waiting = new Set<() => void>();
  #free = MOST_ASKED;

  constructor(deps: RosterQuestionsDeps) {
    this.#deps = deps;
  }

  /** Rejects when the roster cannot tell, or does not in time. Answers keep the order of the calls. */
  async ask(account: BareJid, contact: BareJid): Promise<boolean> {
    const before = this.#last.get(account.text);
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => {}); // it may come while nobody waits for it yet
    const cancel = this.#deps.clock.after(ANSWER_MS, () => {
      late.reject(new CausewayError("archive/roster-late", "The roster does not answer in time"));
    });
    const question = (async () => {
      // Those before this one began to wait earlier: their time is over before its own.
      await before?.catch(() => {});
      return await Promise.race([late.promise, this.#askNow(account, contact, late.promise)]);
    })();
    this.#last.set(account.text, question);
    try {
      return await question;
    } finally {
      cancel();
      if (this.#last.get(account.text) === question) this.#last.delete(account.text);
    }
  }

  /** Asks in its turn, unless `late` rejects before. What was asked keeps its place until it is answered. */
  async #askNow(account: BareJid, contact: BareJid, late: Promise<never>): Promise<boolean> {
    if (this.#free > 0) this.#free--;
    else {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      late.catch(() => this.#waiting.delete(resolve));
      await promise;
    }
    try {
      return await this.#deps.isContact(account, contact);
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#free++;
      else {
        this.#waiting.delete(next);
        next();
      }
    }
  }
}
