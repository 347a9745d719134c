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

/** Calls a question that waits: true when it is its turn, false when its time is over. */
type Call = (isTurn: boolean) => void;

/**
 * Questions to rosters: one to an account's roster at a time, so that its messages keep their order,
 * and few in all, so that connections to the database stay free. Each is answered within its time. A
 * roster that does not answer keeps its one place until it does: the other places stay for others.
 */
export class RosterQuestions {
  readonly #deps: RosterQuestionsDeps;
  /** Questions that wait for the one about their account, by the bare JIDs of the accounts. */
  readonly #behind = new Map<string, Set<Call>>();
  /** Questions that wait for a place. */
  readonly #waiting = new Set<Call>();
  #free = MOST_ASKED;

  constructor(deps: RosterQuestionsDeps) {
    this.#deps = deps;
  }

  /** Rejects when the roster cannot tell, or does not in time. Answers keep the order of the calls. */
  async ask(account: BareJid, contact: BareJid): Promise<boolean> {
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => {}); // it may come while nobody waits for it yet
    const cancel = this.#deps.clock.after(ANSWER_MS, () => {
      late.reject(new CausewayError("offline/roster-late", "The roster does not answer in time"));
    });
    try {
      return await Promise.race([late.promise, this.#inTurn(account, contact, late.promise)]);
    } finally {
      cancel();
    }
  }

  async #inTurn(account: BareJid, contact: BareJid, late: Promise<never>): Promise<boolean> {
    const behind = this.#behind.get(account.text);
    if (behind === undefined) this.#behind.set(account.text, new Set());
    else if (!await called(behind, late)) return await late;
    try {
      return await this.#askNow(account, contact, late);
    } finally {
      if (!callNext(this.#behind.get(account.text)!)) this.#behind.delete(account.text);
    }
  }

  async #askNow(account: BareJid, contact: BareJid, late: Promise<never>): Promise<boolean> {
    if (this.#free > 0) this.#free--;
    else if (!await called(this.#waiting, late)) return await late;
    try {
      return await this.#deps.isContact(account, contact);
    } finally {
      if (!callNext(this.#waiting)) this.#free++;
    }
  }
}

/** Waits among others. Resolves to false when `late` rejects before it is called. */
function called(waiting: Set<Call>, late: Promise<never>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  waiting.add(resolve);
  late.catch(() => {
    if (waiting.delete(resolve)) resolve(false);
  });
  return promise;
}

/** Calls the first one that waits; false when nobody does. */
function callNext(waiting: Set<Call>): boolean {
  const [next] = waiting;
  if (next === undefined) return false;
  waiting.delete(next);
  next(true);
  return true;
}
