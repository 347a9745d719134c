import type { Flow } from "./flow.ts";
import { SENT_AGAIN } from "./flow.ts";

/**
 * Milliseconds before a broken connection in which a stanza may still be in a socket or in a
 * process. An older stanza is held elsewhere, in a lane or in the bounce store, and must not be
 * lost. A stanza takes milliseconds, and up to 4 s where ten times as much runs as the machine has
 * processors.
 */
export const ON_ITS_WAY_MS = 5_000;

/**
 * Milliseconds before its node's death in which a client with stream management may receive a
 * stanza that then comes again. The node asks for an acknowledgement after a second at the latest,
 * and the client answers.
 */
export const UNACKNOWLEDGED_MS = 2_000;

/**
 * The same without stream management. A stanza is settled when it is written to the socket. The
 * sending node learns of that some milliseconds later, unless this node is killed first. The rest
 * is for the way to the client and for a busy machine.
 */
export const UNTOLD_MS = 250;

/**
 * Milliseconds in which a node goes on writing to a broken connection. It reads the end some
 * milliseconds after the client noticed it, or later on a busy machine.
 */
export const UNNOTICED_MS = 1_000;

/**
 * Milliseconds for which a node may go on sending to a recipient's old place: the lifetime of its
 * cache.
 */
export const CACHE_LIFETIME_MS = 5_000;

/**
 * True when stanza `seq` may arrive behind the later ones that have arrived before it.
 *
 * Only a recipient who moves between datacenters may see another order, for as long as nodes may not
 * know of it, and one whose session at a node ended with stanzas to the bare JID that it had not taken
 * (docs/promises.md, "Order"); and a sender's logins at two nodes are two streams, each of which keeps its own. Presence
 * for somebody whom a node cannot find at that moment is dropped, and nobody is told: what its client
 * sends again, as it does not know better when its node is killed, comes behind what followed it. So
 * does presence that comes back after it was withdrawn with its sender's datacenter.
 */
export function mayBeLate(
  flow: Flow,
  seq: number,
  arrived: { readonly atMs: number; readonly before: number } = {
    atMs: flow.arrivedAtMs(seq),
    before: flow.arrivalsBefore(seq),
  },
): boolean {
  if (flow.kindOf(seq) === "presence") {
    if (flow.has(seq, SENT_AGAIN) || arrived.atMs >= flow.withdrawnAtMs) return true;
  }
  const sentAtMs = flow.sentAtMs(seq);
  const hasRecipientMoved = flow.recipientMoves.some(({ fromMs, toMs }) =>
    sentAtMs < toMs + CACHE_LIFETIME_MS && arrived.atMs >= fromMs
  );
  if (hasRecipientMoved || hasOutlivedSession(flow, sentAtMs, arrived.atMs)) return true;
  const next = flow.senderMoves.find(({ toMs }) => toMs > sentAtMs);
  if (next === undefined) return false;
  for (let later = seq + 1; later < flow.sent && flow.sentAtMs(later) < next.toMs; later++) {
    // of the same stream
    if (flow.arrivals(later) > 0 && flow.arrivalsBefore(later) < arrived.before) return false;
  }
  return true;
}

/**
 * True when a stanza to the bare JID was sent before its recipient had logged in at another node, and
 * came to it there: the session before had not taken it, and the new one may have had later ones.
 */
function hasOutlivedSession(flow: Flow, sentAtMs: number, arrivedAtMs: number): boolean {
  if (flow.to === flow.recipient) return false; // to the full JID
  return flow.recipientChanges.some(({ fromMs, toMs }) =>
    sentAtMs <= toMs && arrivedAtMs >= fromMs
  );
}
