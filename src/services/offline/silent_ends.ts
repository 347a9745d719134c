import { ENCRYPTED } from "../../storage/mod.ts";
import type { ChildElement, Stanza } from "../../xmpp/mod.ts";
import { childElements, CLIENT_NAMESPACE, stanzaSource } from "../../xmpp/mod.ts";
import type { DiscreetRefusals } from "./discreet_refusals.ts";
import type { KeepOutcome, OfflineMessagesDeps } from "./offline_messages_deps.ts";

/** Namespace of an invitation to a room (XEP-0249). */
const INVITATION = "jabber:x:conference";

/** Children of a message with texts that clients show (RFC 6121 §5.2.3). */
const SHOWN: ReadonlySet<string> = new Set(["body", "subject"]);

/** A start tag and the first character behind it that is not white space, if that begins a text. */
const TEXT = /^<(?:[^'">]|'[^']*'|"[^"]*")*>\s*[^<\s]/;

/** Objects behind `SilentEnds`. */
export interface SilentEndsDeps extends Pick<OfflineMessagesDeps, "hasRosters" | "isUserHost"> {
  readonly refusals: DiscreetRefusals;
}

/**
 * Messages of which an account that is online would show nothing, such as chat states and receipts.
 * No store keeps them. An error for one that found nobody would tell its sender that the account is
 * offline, and nobody would notice the question. It is for those alone who may see the account's
 * presence.
 */
export class SilentEnds {
  readonly #deps: SilentEndsDeps;

  constructor(deps: SilentEndsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes over a message for which its sender would get an error.
   *
   * @returns a promise that resolves once `outcome` was told the end; undefined: the sender may get
   *   the error at once
   */
  take(
    stanza: Stanza,
    outcome: Pick<KeepOutcome, "refused" | "dropped">,
  ): Promise<void> | undefined {
    const { hasRosters, isUserHost, refusals } = this.#deps;
    const { type, from: { bare: sender }, to: { bare: account } } = stanza;
    if (type !== "chat" && type !== "normal") return undefined;
    if (sender.text === account.text) return undefined;
    if (account.localpart === "" || !hasRosters(account.domainpart)) return undefined;
    if (sender.localpart === "" || !isUserHost(sender.domainpart)) return undefined;
    if (isForPerson(stanza)) return undefined;
    return refusals.refuse(stanza, "service-unavailable", outcome);
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
