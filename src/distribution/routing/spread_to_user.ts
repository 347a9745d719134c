import { deliveryRule, FullJid, leastPriority } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import type { OwnSessions, Placement } from "./ports.ts";

/** Nodes of a datacenter that a stanza goes to. */
export interface Spread {
  /** True when this node is among them. */
  readonly isHere: boolean;
  /** The others, each once. */
  readonly nodes: readonly string[];
  /** True when a session on one of them gets it. */
  readonly isTaken: boolean;
}

const HERE: Spread = { isHere: true, nodes: [], isTaken: false };
const TAKEN_HERE: Spread = { ...HERE, isTaken: true };

/**
 * Returns the nodes of this datacenter that get a stanza for an account whose sessions are spread
 * over them. It follows RFC 6121 §8.5 as if all were on one node. Each node then delivers to its
 * own sessions by the same rules.
 *
 * If no session fits, one node alone gets the stanza and applies the rules for that case: this node
 * if it has sessions of the account, else one that has. Pure.
 *
 * @param isRerouted as in `deliveryRule`, and `isFromRoom`
 */
export function spreadToUser(
  stanza: Stanza,
  own: OwnSessions,
  placements: readonly Placement[],
  isRerouted = false,
  isFromRoom = false,
): Spread {
  if (placements.length === 0) return HERE;
  const placed = own.isResourceHere ? undefined : placementOf(stanza.to, placements);
  const isConnected = own.isResourceHere || placed !== undefined;
  const rule = deliveryRule(stanza, isConnected, isRerouted, isFromRoom);
  if (rule === "resource" && placed !== undefined) {
    return { isHere: false, nodes: [placed.node], isTaken: true };
  }
  if (rule === "resource") return TAKEN_HERE;
  // A stanza that no resource gets ends on this node.
  if (rule !== "account") return HERE;
  const least = leastPriority(stanza, placements, own.priority);
  const nodes = new Set<string>();
  for (const { node, priority } of placements) {
    if (priority !== undefined && priority >= least) nodes.add(node);
  }
  const isHere = own.priority !== undefined && own.priority >= least;
  if (isHere || nodes.size > 0) return { isHere, nodes: [...nodes], isTaken: true };
  return own.isHere ? HERE : { isHere: false, nodes: [placements[0]!.node], isTaken: false };
}

function placementOf(to: Jid, placements: readonly Placement[]): Placement | undefined {
  if (!(to instanceof FullJid)) return undefined;
  for (const each of placements) if (each.resourcepart === to.resourcepart) return each;
  return undefined;
}
