import { FullJid, isSubscription, ruleForAccount, ruleForMissingResource } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import type { Placement } from "./ports.ts";

/** Sessions of one account on this node, as far as RFC 6121 §8.5 needs them. */
export interface OwnSessions {
  /** True when the account has any session here. */
  readonly isHere: boolean;
  /** True when the addressed full JID is here. */
  readonly isResourceHere: boolean;
  /** Highest priority of the available ones; undefined when none is available. */
  readonly priority: number | undefined;
}

/** Nodes of a datacenter that a stanza goes to. */
export interface Spread {
  /** True when this node is among them. */
  readonly isHere: boolean;
  /** The others, each once. */
  readonly nodes: readonly string[];
}

const HERE: Spread = { isHere: true, nodes: [] };

/**
 * Returns the nodes of this datacenter that get a stanza for an account whose sessions are spread
 * over them. It follows RFC 6121 §8.5 as if all were on one node. Each node then delivers to its
 * own sessions by the same rules.
 *
 * If no session fits, this node gets the stanza if it has sessions of the account, else one that
 * has: the rules for that case are applied in one place. Pure.
 *
 * @param isRerouted as in `ruleForMissingResource`
 */
export function spreadToUser(
  stanza: Stanza,
  own: OwnSessions,
  placements: readonly Placement[],
  isRerouted = false,
): Spread {
  const { to, kind, type } = stanza;
  if (placements.length === 0 || ruleForAccount(stanza) !== undefined) return HERE;
  const isForAccount = kind === "presence" && (isSubscription(stanza) || type === "probe");
  if (to instanceof FullJid && !isForAccount) {
    if (own.isResourceHere) return HERE;
    for (const { node, resourcepart } of placements) {
      if (resourcepart === to.resourcepart) return { isHere: false, nodes: [node] };
    }
    // A stanza for the missing resource alone ends on this node.
    if (ruleForMissingResource(stanza, isRerouted) !== "account") return HERE;
  }
  const least = leastPriority(stanza, own, placements);
  const nodes = new Set<string>();
  for (const { node, priority } of placements) {
    if (priority !== undefined && priority >= least) nodes.add(node);
  }
  const isHere = own.priority !== undefined && own.priority >= least;
  if (isHere || nodes.size > 0) return { isHere, nodes: [...nodes] };
  return own.isHere ? HERE : { isHere: false, nodes: [placements[0]!.node] };
}

/**
 * Returns the lowest priority at which an available resource gets the stanza; Infinity for none.
 */
function leastPriority(
  { kind, type }: Stanza,
  own: OwnSessions,
  placements: readonly Placement[],
): number {
  if (kind === "presence") return type === "error" ? Infinity : -128;
  if (type === "headline") return 0;
  let highest = own.priority ?? -1;
  for (const { priority } of placements) {
    if (priority !== undefined && priority > highest) highest = priority;
  }
  return highest < 0 ? Infinity : highest;
}
