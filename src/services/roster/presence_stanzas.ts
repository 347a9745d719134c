import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element } from "../../xmpp/mod.ts";

/** Makes a question for the presence of `to`. */
export function probe(from: Jid, to: Jid): Stanza {
  return presence("probe", from, to);
}

/** Makes a request to see the presence of `to`. */
export function subscribe(from: Jid, to: Jid): Stanza {
  return presence("subscribe", from, to);
}

/** Makes the end of a presence, without a word of the client's. */
export function unavailable(from: Jid, to: Jid): Stanza {
  return presence("unavailable", from, to);
}

/** Makes the end of a presence that says no more than the time of `end`, the client's own one. */
export function bareEnd({ from, to, sinceUs }: Stanza): Stanza {
  const end = unavailable(from, to);
  return sinceUs === undefined ? end : { ...end, sinceUs };
}

/** Makes the stanza of a subscription request that was kept. */
export function requestOf(from: Jid, to: Jid, bytes: Uint8Array): Stanza {
  return { kind: "presence", type: "subscribe", from, to, bytes };
}

function presence(type: string, from: Jid, to: Jid): Stanza {
  return buildStanza(element("presence", { type }), { from, to });
}
