import type { Clock, FairShares } from "../../base/mod.ts";
import { RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import { ENCRYPTED } from "../../storage/mod.ts";
import type { BareJid, ChildElement, Stanza } from "../../xmpp/mod.ts";
import { childElements, CLIENT_NAMESPACE, senderHolders, stanzaSource } from "../../xmpp/mod.ts";
import { RosterQuestions } from "../archive/mod.ts";

/** Namespace of an invitation to a room (XEP-0249). */
const INVITATION = "jabber:x:conference";

/** Children of a message with texts that clients show (RFC 6121 §5.2.3). */
const SHOWN: ReadonlySet<string> = new Set(["body", "subject"]);

/** A start tag and the first character behind it that is not white space, if that begins a text. */
const TEXT = /^<(?:[^'">]|'[^']*'|"[^"]*")*>\s*[^<\s]/;

/** Objects behind `SilentEnds`. */
export interface SilentEndsDeps {
  /** True for those who may know whether an account is online. */
  maySee(asker: BareJid, account: BareJid): Promise<boolean>;
  /** True for a domain whose people have rosters at this node. */
  hasRosters(domainpart: string): boolean;
  /** True for a domain whose people log in at this node. */
  isUserHost(domainpart: string): boolean;
  /** Bound on the memory of messages about which a roster is asked. */
  readonly budget: FairShares;
  readonly clock: Clock;
}

/** Ways in which a message ends. One of the two is called. */
export interface SilentOutcome {
  /** Its sender gets the error. */
  refused(condition: "service-unavailable"): void;
  /** Its sender must not see that it found nobody. */
  dropped(): void;
}

/**
 * Messages of which an account that is online would show nothing, such as chat states and receipts.
 * No store keeps them. An error for one that found nobody would tell its sender that the account is
 * offline. It is for those alone who may see the account's presence.
 */
export class SilentEnds {
  readonly #deps: SilentEndsDeps;
  readonly #rosters: RosterQuestions;

  constructor(deps: SilentEndsDeps) {
    this.#deps = deps;
    this.#rosters = new RosterQuestions({
      isContact: (account, sender) => deps.maySee(sender, account),
      clock: deps.clock,
    });
  }

  /**
   * Takes over a message for which its sender would get an error.
   *
   * @returns a promise that resolves once `outcome` was told the end; undefined: the sender may get
   *   the error at once
   */
  take(stanza: Stanza, outcome: SilentOutcome): Promise<void> | undefined {
    const { hasRosters, isUserHost, budget } = this.#deps;
    const { type, from: { bare: sender }, to: { bare: account } } = stanza;
    if (type !== "chat" && type !== "normal") return undefined;
    if (sender.text === account.text) return undefined;
    if (account.localpart === "" || !hasRosters(account.domainpart)) return undefined;
    if (sender.localpart === "" || !isUserHost(sender.domainpart)) return undefined;
    if (isForPerson(stanza)) return undefined;
    const holders = senderHolders(stanza.from, true);
    const cost = stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
    if (!budget.mayHold(holders, cost)) {
      outcome.dropped(); // an error would tell those who flood what a roster would not
      return Promise.resolve();
    }
    budget.hold(holders, cost);
    return this.#end(sender, account, outcome).finally(() => budget.release(holders, cost));
  }

  /** Never rejects. A database that does not answer in time loses no message in silence. */
  async #end(sender: BareJid, account: BareJid, outcome: SilentOutcome): Promise<void> {
    const isTold = await this.#rosters.ask(account, sender).catch(() => true);
    if (isTold) outcome.refused("service-unavailable");
    else outcome.dropped();
  }
}

/**
 * True for a message that a person gets to read: one with a text, an encrypted payload or an
 * invitation. Pure.
 */
export function isForPerson({ bytes }: Pick<Stanza, "bytes">): boolean {
  return childElements(stanzaSource(bytes)).some((child) => {
    const { name, namespace } = child;
    if (namespace === CLIENT_NAMESPACE) return SHOWN.has(name) && hasText(child);
    return namespace === INVITATION || ENCRYPTED.has(namespace);
  });
}

function hasText({ bytes, start, end }: ChildElement): boolean {
  return TEXT.test(new TextDecoder().decode(bytes.subarray(start, end)));
}
