import type { Clock, Pauses } from "../../base/mod.ts";
import { CausewayError, describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { GRACE_MS, RETRY_MS } from "./archive_writer.ts";

/** Rosters that are asked at the same time. */
const MOST_ASKED = 4;

/** Objects behind `ContactQuestions`. */
export interface ContactQuestionsDeps {
  /** True when the roster of an account has a contact. */
  isContact(account: BareJid, contact: BareJid): Promise<boolean>;
  /** Once they are closed, a roster that fails is not asked again. */
  readonly pauses: Pauses;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A question to a roster, which all calls share that came before it was asked. */
interface Question {
  readonly contact: BareJid;
  /** Undefined until there is one. */
  answer: boolean | "damaged" | undefined;
}

/** A call that waits for an answer. */
interface Call {
  readonly question: Question;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
  readonly answered: (isContact: boolean | undefined) => void;
}

/** A roster that calls wait for. */
interface Roster {
  /** In their order. */
  readonly calls: Set<Call>;
  /** Questions that have not been asked yet, by the bare JIDs of their contacts. */
  readonly open: Map<string, Question>;
}

/**
 * Questions to rosters: one to an account's roster at a time, and few in all, so that connections to
 * the database stay free. Answers keep the order of the calls about an account, so that its messages
 * keep theirs. A roster that fails is asked again, until it answers or this object is closed. Others
 * have its place meanwhile. One that does not answer keeps its one place until it does. A contact
 * whose item is damaged stays unknown, however often it is asked for. The caller bounds how many calls
 * wait.
 */
export class ContactQuestions {
  readonly #deps: ContactQuestionsDeps;
  /** Rosters that calls wait for, by the bare JIDs of the accounts. */
  readonly #rosters = new Map<string, Roster>();
  /** Rosters that wait for a place. */
  readonly #entering: (() => void)[] = [];
  #free = MOST_ASKED;
  #isClosed = false;

  constructor(deps: ContactQuestionsDeps) {
    this.#deps = deps;
  }

  /** Calls that wait for an answer. */
  get waiting(): number {
    let waiting = 0;
    for (const { calls } of this.#rosters.values()) waiting += calls.size;
    return waiting;
  }

  /** True while a call has waited for so long for the roster of an account that nobody waits for it. */
  isLate(account: BareJid): boolean {
    const [first] = this.#rosters.get(account.text)?.calls ?? [];
    return first !== undefined && first.sinceMs + GRACE_MS <= this.#deps.clock.monotonicMs();
  }

  /**
   * Asks the roster of an account for a contact.
   *
   * @param answered called with the answer; with undefined when there is none before the end, or the
   *   item of the contact is damaged
   * @returns a function that takes the call back
   */
  ask(account: BareJid, contact: BareJid, answered: Call["answered"]): () => void {
    if (this.#isClosed) {
      answered(undefined);
      return () => {};
    }
    const present = this.#rosters.get(account.text);
    const roster = present ?? { calls: new Set(), open: new Map() };
    let question = roster.open.get(contact.text);
    if (question === undefined) {
      question = { contact, answer: undefined };
      roster.open.set(contact.text, question);
    }
    const call = { question, sinceMs: this.#deps.clock.monotonicMs(), answered };
    roster.calls.add(call);
    if (present === undefined) {
      this.#rosters.set(account.text, roster);
      void this.#work(account, roster);
    }
    return () => void roster.calls.delete(call);
  }

  /** Ends all calls, without an answer, and those that come later. */
  close(): void {
    this.#isClosed = true;
    for (const roster of this.#rosters.values()) endAll(roster);
  }

  /** Asks a roster until no call waits for it. Never rejects. */
  async #work(account: BareJid, roster: Roster): Promise<void> {
    await Promise.resolve(); // all calls of this turn share their questions
    while (roster.calls.size > 0) {
      if (this.#free > 0) this.#free--;
      else await new Promise<void>((resolve) => void this.#entering.push(resolve));
      const isAnswered = await this.#askFirst(account, roster);
      const next = this.#entering.shift();
      if (next === undefined) this.#free++;
      else next();
      if (isAnswered) continue;
      if (this.#deps.pauses.isClosed) endAll(roster);
      else await this.#deps.pauses.pause(RETRY_MS);
    }
    this.#rosters.delete(account.text);
  }

  /** Asks the question of the first call. Returns false when that fails. */
  async #askFirst(account: BareJid, { calls, open }: Roster): Promise<boolean> {
    const [first] = calls;
    if (first === undefined) return true; // all were taken back
    const { question } = first;
    // A contact that is added from now on may be missing from the answer: later calls do not share it.
    if (open.get(question.contact.text) === question) open.delete(question.contact.text);
    try {
      question.answer = await this.#deps.isContact(account, question.contact);
    } catch (thrown) {
      this.#deps.logger.debug("archive.not-asked", { error: describeError(thrown) });
      if (!isDamaged(thrown)) return false;
      question.answer = "damaged";
    }
    for (const call of calls) {
      const { answer } = call.question;
      if (answer === undefined) break;
      calls.delete(call);
      call.answered(answer === "damaged" ? undefined : answer);
    }
    return true;
  }
}

/** True for the failure to read an item. The database itself is well, and so are other items. */
function isDamaged(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code === "storage/corrupt";
}

function endAll({ calls }: Roster): void {
  const ended = [...calls];
  calls.clear();
  for (const { answered } of ended) answered(undefined);
}
