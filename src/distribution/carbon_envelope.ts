import type { Stanza } from "../xmpp/mod.ts";
import { Envelope } from "./envelope.ts";

/** Makes the carbon of a message that brings one; undefined for a stanza that has none. */
export type CarbonOf = (message: Envelope) => Envelope | undefined;

/**
 * Returns the envelope of a carbon that goes to one datacenter, besides the message that it tells
 * of. Both have the same id. Nobody answers for a carbon, and nodes remember the carbons that they
 * have delivered apart from other stanzas.
 *
 * @param stanza the carbon, which wraps the message
 */
export function carbonEnvelope(message: Envelope, stanza: Stanza): Envelope {
  return new Envelope({
    stanza,
    process: message.process,
    sequence: message.sequence,
    origin: message.origin,
    sentAtUs: message.sentAtUs,
    ttl: message.ttl,
    bounces: 0,
    mayBeRepeat: message.mayBeRepeat,
    entry: "sent-once",
    isCopy: true,
    isSpread: true,
    isCarbon: true,
  });
}
