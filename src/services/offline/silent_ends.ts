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
 * Messages that no store keeps, and whose errors would tell strangers that an account is offline. The
 * errors are for those alone who may see the account's presence.
 *
 * An account that is online shows no sign of some of them, such as chat states and receipts: nobody
 * would notice the question. Others come as a flood, and find no room where they would wait.
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
    const { type } = stanza;
    if (type !== "chat" && type !== "normal") return undefined;
    if (!this.#isToOther(stanza) || isForPerson(stanza)) return undefined;
    return this.#deps.refusals.refuse(stanza, "service-unavailable", outcome);
  }

  /**
   * Takes over a message that could not wait for its account, as there was no room. Whatever it
   * says, a client that is online would have got it.
   *
   * @returns as `take`
   */
  takeWithoutRoom(
    stanza: Stanza,
    outcome: Pick<KeepOutcome, "refused" | "dropped">,
  ): Promise<void> | undefined {
    const { type } = stanza;
    // Nobody at all gets one of type `groupchat`, and no error answers another one.
    if (type === "groupchat" || type === "error" || !this.#isToOther(stanza)) return undefined;
    return this.#deps.refusals.refuse(stanza, "resource-constraint", outcome);
  }

  /** True for a message from a person to somebody else, whose roster says who sees the presence. */
  #isToOther({ from: { bare: sender }, to: { bare: account } }: Stanza): boolean {
    const { hasRosters, isUserHost } = this.#deps;
    if (sender.text === account.text) return false;
    if (account.localpart === "" || !hasRosters(account.domainpart)) return false;
    return sender.localpart !== "" && isUserHost(sender.domainpart);
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
