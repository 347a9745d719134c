import type { CancelTimer } from "../../base/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import type { AccountReach, SessionsByAccount } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Collaborators of `SecondLook`. */
export interface SecondLookDeps extends Pick<RosterDeps, "process" | "clock" | "paced"> {
  readonly turns: AccountTurns;
  readonly reach: Pick<AccountReach, "sessionsOf">;
}

/**
 * A datacenter where an account has a session that the first look had not found, or whose presence has
 * not come.
 */
export interface Missed {
  readonly account: Jid;
  readonly host: string;
  /** False when the first look had found all of these sessions. */
  readonly isNew: boolean;
  /** False when the presence of all of these sessions has come since. */
  readonly isUnheard: boolean;
}

/** A session that is to look again, and the sessions that it has found. */
export interface FirstLook {
  readonly jid: FullJid;
  readonly found: SessionsByAccount;
  /** True when it has come from another node, which may not have known of sessions of this one. */
  readonly isFromElsewhere?: boolean;
  /**
   * Returns the accounts to look up again; undefined when the session is no longer available. Never
   * rejects.
   */
  accounts(): Promise<readonly Jid[] | "unreadable" | undefined>;
  /**
   * Called if something was missed. Returns false, and nothing has happened, when the database failed: the
   * session looks again later. Never rejects.
   */
  missed(all: readonly Missed[]): Promise<boolean>;
}

/** Milliseconds after which a session looks again: several times a usual replication delay. */
const LOOK_AGAIN_MS = 5_000;
/** Sessions elsewhere that one session is not to ask again. It asks all others. */
const MAX_HEARD = 1_000;

/** A session that is to look again. */
interface Waiting {
  readonly cancel: CancelTimer;
  /** Full JIDs of the sessions elsewhere whose presence has come in the meantime. */
  readonly heard: Set<string>;
}

/**
 * Second look of each new session at where its contacts are. Two contacts may log in at two
 * datacenters, or two nodes, within a replication delay. Neither node finds the other's session
 * then, and neither client would ever see the other one. A moment later, both nodes know both.
 *
 * The answer of a session that was found at once may be lost, too: a client that has just moved is known
 * at its old place for a moment, and presence waits for nobody. Whoever has not answered is asked again.
 *
 * In a storm of logins most contacts log in a little later than the session, and have found it by
 * themselves: their presence has come. They are not asked for it. They are told again, as the answer
 * to their probe may have found no way to them yet; their node drops presence that it has had.
 */
export class SecondLook {
  readonly #deps: SecondLookDeps;
  readonly #waiting = new Map<string, Waiting>();
  #isClosed = false;

  constructor(deps: SecondLookDeps) {
    this.#deps = deps;
  }

  /** Looks up the accounts again in a moment. */
  later(look: FirstLook): void {
    this.forget(look.jid);
    if (!this.#isClosed) this.#wait(look, new Set());
  }

  #wait(look: FirstLook, heard: Set<string>): void {
    const { clock, turns, paced } = this.#deps;
    const { text } = look.jid;
    const waiting: Waiting = {
      cancel: clock.after(LOOK_AGAIN_MS, () => {
        const step = async () => {
          let isOver = true;
          try {
            isOver = await paced.run(() => this.#look(look, waiting));
          } finally {
            const isCurrent = this.#waiting.get(text) === waiting;
            if (isCurrent && isOver) this.#waiting.delete(text);
            else if (isCurrent) this.#wait(look, heard);
          }
        };
        turns.runAlways(text, step, "patient");
      }),
      heard,
    };
    this.#waiting.set(text, waiting);
  }

  /** Notes that presence of a session elsewhere has come to a session here. */
  heard({ text }: FullJid, { from, type }: Stanza): void {
    const heard = this.#waiting.get(text)?.heard;
    if (type !== "available") heard?.delete(from.text);
    else if (heard !== undefined && heard.size < MAX_HEARD) heard.add(from.text);
  }

  /** True while any session is to look again. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Does not look again for a session that has ended. */
  forget({ text }: FullJid): void {
    this.#waiting.get(text)?.cancel();
    this.#waiting.delete(text);
  }

  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  /** Returns false when the database or the session table could not tell. */
  async #look(
    { jid, found, accounts, missed, isFromElsewhere = false }: FirstLook,
    { heard }: Waiting,
  ): Promise<boolean> {
    const { process, reach } = this.#deps;
    const looked = await accounts();
    if (looked === undefined) return true;
    if (looked === "unreadable") return false;
    const byText = new Map(looked.map((account) => [account.text, account]));
    // By the same rule as at first: people of local hosts are not looked up elsewhere.
    const foundNow = await reach.sessionsOf([...byText.values()]);
    if (foundNow === undefined) return false;
    const all: Missed[] = [];
    for (const account of byText.values()) {
      const before = found.get(account.text) ?? [];
      const hosts = new Map<string, { isNew: boolean; isUnheard: boolean }>();
      for (const place of foundNow.get(account.text) ?? []) {
        const contact = `${account.text}/${place.resourcepart}`;
        // A session of this node is known at once to those that log in here.
        if (contact === jid.text || (place.process === process && !isFromElsewhere)) continue;
        const isNew = !before.some((each) =>
          each.process === place.process && each.resourcepart === place.resourcepart
        );
        const isUnheard = !heard.has(contact);
        if (!isNew && !isUnheard) continue;
        const host = hosts.get(place.host);
        hosts.set(place.host, {
          isNew: isNew || host?.isNew === true,
          isUnheard: isUnheard || host?.isUnheard === true,
        });
      }
      for (const [host, missed] of hosts) all.push({ account, host, ...missed });
    }
    return all.length === 0 || await missed(all);
  }
}
