import type { PacedTask } from "../../base/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import type { AccountHosts, AccountReach } from "./account_reach.ts";

/** Accounts that presence is sent to in one piece of paced work: half a millisecond or so. */
export const SENT_AT_ONCE = 8;

/** The way in which presence goes to many accounts. */
export interface Sending {
  readonly hosts: AccountHosts;
  /** True for the first presence of a session. */
  readonly isInitial: boolean;
  readonly pace: PacedTask;
}

/**
 * Sends presence to accounts that have sessions: a few at a time if there are more, or if it is the
 * first of a session.
 * @param sending.make returns the stanza for an account when its turn comes; undefined: none
 */
export async function sendEach(
  accounts: readonly Jid[],
  reach: Pick<AccountReach, "reaches" | "send">,
  sending: Sending & { readonly make: (to: Jid) => Stanza | undefined },
): Promise<void> {
  const { hosts, isInitial, pace, make } = sending;
  const reached = accounts.filter((account) => reach.reaches(account, hosts));
  const sendTo = (some: readonly Jid[]) => {
    for (const to of some) {
      const stanza = make(to);
      if (stanza !== undefined) reach.send(stanza, hosts);
    }
  };
  if (!isInitial && reached.length <= SENT_AT_ONCE) return sendTo(reached);
  for (let start = 0; start < reached.length; start += SENT_AT_ONCE) {
    await pace.run(() => sendTo(reached.slice(start, start + SENT_AT_ONCE)));
  }
}
