import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, errorReply, isReply, stanzaId } from "../../xmpp/mod.ts";

const CONDITIONS = "urn:ietf:params:xml:ns:xmpp-stanzas";

/**
 * Returns the error for a stanza that its sender's own list keeps here (XEP-0191 §3.3). Undefined
 * for stanzas that are never answered: errors, results, and the end of a presence.
 *
 * @param client full JID of the sender, which gets the error
 */
export function blockedError(stanza: Stanza, client: Jid): Stanza | undefined {
  const { kind, type, to } = stanza;
  if (isReply(stanza)) return undefined;
  if (kind === "presence" && (type === "unavailable" || type === "probe")) return undefined;
  const error = element(
    "error",
    { type: "cancel" },
    element("not-acceptable", { xmlns: CONDITIONS }),
    element("blocked", { xmlns: "urn:xmpp:blocking:errors" }),
  );
  return buildStanza(element(kind, { type: "error", id: stanzaId(stanza) }, error), {
    from: to,
    to: client,
  });
}

/**
 * Returns what somebody gets in place of an answer to their request that its sender's own list keeps
 * here. They have asked before they were blocked, as when the request waited for a client that has lost
 * its connection. The error is that of a client that is not there: silence would tell them of the block.
 * Undefined for other stanzas, which nobody waits for.
 */
export function hiddenAnswer(stanza: Stanza): Stanza | undefined {
  const { kind, from, to, bytes } = stanza;
  if (kind !== "iq" || !isReply(stanza)) return undefined;
  return errorReply({ kind, type: "get", from: to, to: from, bytes }, "service-unavailable");
}
