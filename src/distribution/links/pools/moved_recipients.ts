import type { Jid } from "../../../xmpp/mod.ts";
import type { Envelope } from "../../mod.ts";
import type { Lane } from "../lanes/lane.ts";
import type { LinkLayerEvents } from "../ports.ts";

/** Recipients of one lookup; the others come with the next. */
const MAX_LOOKED_FOR = 1000;

/** Recipients by their text. */
export type Recipients = ReadonlyMap<string, Jid>;

/** Returns the recipients of stanzas not reported as received; at most `MAX_LOOKED_FOR`. */
export function recipientsIn(lanes: Iterable<Lane>): Recipients {
  const recipients = new Map<string, Jid>();
  for (const lane of lanes) {
    for (const { to } of lane.unreceived()) {
      recipients.set(to.text, to);
      if (recipients.size === MAX_LOOKED_FOR) return recipients;
    }
  }
  return recipients;
}

/** Returns the texts of recipients that are somewhere else than at `destination` by now. */
export async function findMoved(
  recipients: Recipients,
  destination: string,
  whereabouts: NonNullable<LinkLayerEvents["whereabouts"]>,
): Promise<ReadonlySet<string>> {
  const moved = new Set<string>();
  await Promise.all([...recipients].map(async ([text, to]) => {
    const host = await whereabouts(to);
    if (host !== undefined && host !== destination) moved.add(text);
  }));
  return moved;
}

/**
 * Takes the stanzas for `moved` out of the lanes, except those that a peer has received. Carbons that
 * they bring stay: those are for their senders' own devices at the destination.
 */
export function takeMoved(lanes: Iterable<Lane>, moved: ReadonlySet<string>): readonly Envelope[] {
  const taken: Envelope[] = [];
  for (const lane of lanes) {
    for (const { entry, wasSent, wasReceived } of lane.takeAll()) {
      if (wasReceived || !moved.has(entry.to.text)) lane.adopt(entry, wasSent);
      else {
        lane.adoptCarbonOf(entry, wasSent);
        taken.push(entry.toEnvelope(wasSent));
      }
    }
  }
  return taken;
}
