import type { Holders } from "../../base/mod.ts";
import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { senderHolders } from "../../xmpp/mod.ts";
import type { KeepOutcome, OfflineMessagesDeps } from "./offline_messages_deps.ts";
import { RosterQuestions } from "./roster_questions.ts";

/**
 * Questions to rosters that are open at the same time, so few that rosters answer all of them in time.
 * A sender gets the error when the answer is late: no flood of questions must be able to cause that.
 */
const MAX_QUESTIONS = 200;

/** Objects behind `DiscreetRefusals`. */
export type DiscreetRefusalsDeps = Pick<
  OfflineMessagesDeps,
  "maySee" | "isUserHost" | "budget" | "clock"
>;

/**
 * Refusals of messages for accounts that are offline. The error would show its sender that nobody is
 * there: a client that is online takes the message. Only those who may see the account's presence get
 * it. For others the message is dropped.
 */
export class DiscreetRefusals {
  readonly #deps: DiscreetRefusalsDeps;
  readonly #rosters: RosterQuestions;
  /** Open questions by sender and account. Each serves all messages that come until its answer. */
  readonly #questions = new Map<string, Promise<boolean>>();
  readonly #shares = new FairShares({ maxItems: MAX_QUESTIONS });

  constructor(deps: DiscreetRefusalsDeps) {
    this.#deps = deps;
    this.#rosters = new RosterQuestions({
      isContact: (account, sender) => deps.maySee(sender, account),
      clock: deps.clock,
    });
  }

  /** Refuses a message. Resolves once `outcome` was told whether its sender gets the error. */
  async refuse(
    { from, to, bytes }: Stanza,
    condition: StanzaErrorCondition,
    outcome: Pick<KeepOutcome, "refused" | "dropped">,
  ): Promise<void> {
    const { isUserHost, budget } = this.#deps;
    const holders = senderHolders(from, isUserHost(from.domainpart));
    const cost = bytes.length + RETAINED_OVERHEAD_BYTES;
    // An error would tell those who flood what a roster would not.
    if (!budget.mayHold(holders, cost)) return outcome.dropped();
    budget.hold(holders, cost);
    try {
      if (await this.#mayKnow(from.bare, to.bare, holders)) outcome.refused(condition);
      else outcome.dropped();
    } finally {
      budget.release(holders, cost);
    }
  }

  /** True for a sender who may know that an account is offline. Never rejects. */
  #mayKnow(sender: BareJid, account: BareJid, holders: Holders): Promise<boolean> {
    const key = `${sender.text} ${account.text}`;
    const open = this.#questions.get(key);
    if (open !== undefined) return open;
    if (!this.#shares.mayHold(holders, 0)) return Promise.resolve(false);
    this.#shares.hold(holders, 0);
    // A database that does not answer in time loses no message in silence.
    const question = this.#rosters.ask(account, sender).catch(() => true).finally(() => {
      this.#shares.release(holders, 0);
      this.#questions.delete(key);
    });
    this.#questions.set(key, question);
    return question;
  }
}
