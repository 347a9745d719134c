import type { CancelTimer } from "../../base/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import type { AccountTurns } from "./account_turns.ts";
import type { RosterDeps, SessionPlace } from "./roster_ports.ts";

/** Sessions of accounts, by bare JID. */
export type SessionsByAccount = ReadonlyMap<string, readonly SessionPlace[]>;

/** Collaborators of `SecondLook`. */
export interface SecondLookDeps extends Pick<RosterDeps, "process" | "sessions" | "clock"> {
  readonly turns: AccountTurns;
}

/** A session that is to look again, and the sessions that it has found. */
export interface FirstLook {
  readonly jid: FullJid;
  readonly found: SessionsByAccount;
  /** Returns the accounts to look up again; undefined when the session is no longer available. */
  accounts(): readonly Jid[] | undefined;
  /** Called for an account that has a new session at the datacenter `host`. */
  missed(account: Jid, host: string): void;
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
    const { process, sessions } = this.#deps;
    const looked = accounts();
    if (looked === undefined) return;
    const byText = new Map(looked.map((account) => [account.text, account]));
    const foundNow = await sessions.everywhere([...byText.keys()]);
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
      for (const host of hosts) missed(account, host);
    }
  }
}
