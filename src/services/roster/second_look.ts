import type { CancelTimer } from "../../base/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import type { AccountReach, SessionsByAccount } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Collaborators of `SecondLook`. */
export interface SecondLookDeps extends Pick<RosterDeps, "process" | "clock"> {
  readonly turns: AccountTurns;
  readonly reach: Pick<AccountReach, "sessionsOf">;
}

/** A datacenter where an account has a session that the first look had not found. */
export interface Missed {
  readonly account: Jid;
  readonly host: string;
}

/** A session that is to look again, and the sessions that it has found. */
export interface FirstLook {
  readonly jid: FullJid;
  readonly found: SessionsByAccount;
  /**
   * Returns the accounts to look up again; undefined when the session is no longer available, or they
   * cannot be read. Never rejects.
   */
  accounts(): Promise<readonly Jid[] | undefined>;
  /** Called once if something was missed. Never rejects. */
  missed(all: readonly Missed[]): Promise<void>;
}

/** Milliseconds after which a session looks again: several times a usual replication delay. */
const LOOK_AGAIN_MS = 5_000;

/**
 * Second look of each new session at where its contacts are. Two contacts may log in at two
 * datacenters, or two nodes, within a replication delay. Neither node finds the other's session
 * then, and neither client would ever see the other one. A moment later, both nodes know both.
 */
export class SecondLook {
  readonly #deps: SecondLookDeps;
  readonly #waiting = new Map<string, CancelTimer>();
  #isClosed = false;

  constructor(deps: SecondLookDeps) {
    this.#deps = deps;
  }

  /** Looks up the accounts again in a moment. */
  later(look: FirstLook): void {
    const { clock, turns } = this.#deps;
    const { text } = look.jid;
    this.forget(look.jid);
    if (this.#isClosed) return;
    const cancel = clock.after(LOOK_AGAIN_MS, () => {
      this.#waiting.delete(text);
      turns.runAlways(text, () => this.#look(look));
    });
    this.#waiting.set(text, cancel);
  }

  /** Does not look again for a session that has ended. */
  forget({ text }: FullJid): void {
    this.#waiting.get(text)?.();
    this.#waiting.delete(text);
  }

  close(): void {
    this.#isClosed = true;
    for (const cancel of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }

  async #look({ found, accounts, missed }: FirstLook): Promise<void> {
    const { process, reach } = this.#deps;
    const looked = await accounts();
    if (looked === undefined) return;
    const byText = new Map(looked.map((account) => [account.text, account]));
    // By the same rule as at first: people of local hosts are not looked up elsewhere.
    const foundNow = await reach.sessionsOf([...byText.values()]);
    const all: Missed[] = [];
    for (const account of byText.values()) {
      const before = found.get(account.text) ?? [];
      const hosts = new Set<string>();
      for (const place of foundNow.get(account.text) ?? []) {
        // A session of this node is known at once.
        const isKnown = place.process === process ||
          before.some((each) =>
            each.process === place.process && each.resourcepart === place.resourcepart
          );
        if (!isKnown) hosts.add(place.host);
      }
      for (const host of hosts) all.push({ account, host });
    }
    if (all.length > 0) await missed(all);
  }
}
