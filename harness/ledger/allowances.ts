import type { Flow } from "./flow.ts";
import { SENT_AGAIN } from "./flow.ts";

/**
 * What lies in a socket or in a process was sent so shortly before the connection broke: what takes
 * longer is held somewhere else, in a lane or in a bounce queue, and has no business to be lost. A stanza
 * takes milliseconds, and up to 4 s where ten times as much runs as the machine has processors.
 */
export const ON_ITS_WAY_MS = 5_000;

/**
 * A client with stream management is asked after a second at the latest what it has, and answers: what
 * it received so shortly before its node was killed may come again.
 */
export const UNACKNOWLEDGED_MS = 2_000;

/**
 * Without stream management a stanza is done with when it is written to the socket. The node before
 * learns of that some milliseconds later, unless this one is killed first; the rest is for the way to
 * the client and for a machine that does a lot besides.
 */
export const UNTOLD_MS = 250;

/**
 * A node reads the end of a broken connection some milliseconds after the client has met it, or longer
 * on a machine that does a lot besides: until then it goes on writing to it.
 */
export const UNNOTICED_MS = 1_000;

/** A node may go on for so long to send to where a recipient was: the lifetime of its cache. */
export const CACHE_LIFETIME_MS = 5_000;

/**
 * True when stanza `seq` may arrive behind the later ones that have arrived before it.
 *
 * Only a recipient who moves between datacenters may see another order, for as long as nodes may not
 * know of it; and a sender's logins at two nodes are two streams, each of which keeps its own. Presence
 * for somebody whom a node cannot find at that moment is dropped, and nobody is told: what its client
 * sends again, as it does not know better when its node is killed, comes behind what followed it.
 */
export function mayBeLate(
  flow: Flow,
  seq: number,
  arrived: { readonly atMs: number; readonly before: number } = {
    atMs: flow.arrivedAtMs(seq),
    before: flow.arrivalsBefore(seq),
  },
): boolean {
  if (flow.kindOf(seq) === "presence" && flow.has(seq, SENT_AGAIN)) return true;
  const sentAtMs = flow.sentAtMs(seq);
  const hasRecipientMoved = flow.recipientMoves.some(({ fromMs, toMs }) =>
    sentAtMs < toMs + CACHE_LIFETIME_MS && arrived.atMs >= fromMs
  );
  if (hasRecipientMoved) return true;
  const next = flow.senderMoves.find(({ toMs }) => toMs > sentAtMs);
  if (next === undefined) return false;
  for (let later = seq + 1; later < flow.sent && flow.sentAtMs(later) < next.toMs; later++) {
    // of the same stream
    if (flow.arrivals(later) > 0 && flow.arrivalsBefore(later) < arrived.before) return false;
  }
  return true;
}
