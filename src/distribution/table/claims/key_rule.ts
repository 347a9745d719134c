import type { Claim } from "./claims.ts";

/** Facts about one key of an account, for the decision on its value. */
export interface KeyFacts {
  /** Value in our Redis; null when there is none, "" when it cannot be a host. */
  readonly current: string | null;
  readonly localHost: string;
  /** Newest live claim on the key, ours or another's. */
  readonly newest: Claim | undefined;
  /** True when `newest` is a session of this node. */
  readonly isOurs: boolean;
  /** True when the session has just logged in: its host was never written. */
  readonly isLogin: boolean;
  /** True when a session of ours with this key has closed a short while ago. */
  readonly isLogout: boolean;
  /** True when that logout has not been written yet. */
  readonly isFirstLogout: boolean;
  /** True when the host in `current` has any claim on the key, live or dead. */
  readonly isClaimed: boolean;
  /** True when an earlier check found `current` without a claim, too. */
  readonly isSuspect: boolean;
  /** Host that this node set the key to on behalf of its owner. */
  readonly handedTo: string | undefined;
}

/**
 * Decision on a key: `set` to a host with a fresh expiry, `set-absent` (SET NX), `delete`,
 * `suspect` (leave, but check again), `leave`.
 */
export type KeyDecision =
  | { readonly kind: "set"; readonly host: string }
  | { readonly kind: "set-absent"; readonly host: string }
  | { readonly kind: "delete" }
  | { readonly kind: "suspect" }
  | { readonly kind: "leave" };

/** Decides on one key; the simulation replaces it to show that it matters. */
export type KeyRule = (facts: KeyFacts) => KeyDecision;

const LEAVE: KeyDecision = { kind: "leave" };
const DELETE: KeyDecision = { kind: "delete" };

/**
 * The rule of docs/promises.md, "The session table": the newest live claim owns the key, only its
 * owner renews it, and renewal never takes a user back.
 *
 * | newest live claim | key says | decision |
 * |---|---|---|
 * | ours, just logged in | anything | ours |
 * | ours | nothing | ours if still absent |
 * | ours | us | written again |
 * | ours | another, with a claim, or the host we gave it to | ours: that claim is older, dead or gone |
 * | ours | another, without a claim | left alone; ours if the next check finds the same |
 * | another's | anything | left alone: its owner renews it |
 * | another's, and ours has closed | us, the host we gave it to, or nothing | given to the owner |
 * | none, and ours has closed | us, or the host that we gave it to | deleted |
 *
 * A renewal writes the value and not only its expiry. EXPIRE would keep a wrong value alive in a
 * datacenter where an older write came in last, and would not fill a Redis that lost its data. For
 * the same reason a logout writes a value even if it is there already: elsewhere it may still be on
 * its way, or be overwritten by an earlier write of ours.
 */
export function decideKey(facts: KeyFacts): KeyDecision {
  if (facts.newest === undefined) return decideUnowned(facts);
  return facts.isOurs ? decideOurs(facts) : decideAnothers(facts, facts.newest.host);
}

/**
 * The rule with builtin replication. All claims lie in the one Redis of the datacenter, and a key
 * is never written before its claim. So a key names the host of the newest live claim and nothing
 * else.
 */
export function decideReplicatedKey(facts: KeyFacts): KeyDecision {
  const { newest, current, localHost } = facts;
  if (newest === undefined) return current === null ? LEAVE : DELETE;
  // The other node of this datacenter renews its own key.
  const isSiblings = !facts.isOurs && newest.host === localHost;
  return isSiblings && current === newest.host ? LEAVE : { kind: "set", host: newest.host };
}

function decideOurs(facts: KeyFacts): KeyDecision {
  const { current, localHost } = facts;
  if (facts.isLogin) return { kind: "set", host: localHost };
  if (current === null) return { kind: "set-absent", host: localHost };
  const isTakenBack = facts.isClaimed || facts.isSuspect || current === facts.handedTo;
  return current === localHost || isTakenBack
    ? { kind: "set", host: localHost }
    : { kind: "suspect" };
}

function decideAnothers(facts: KeyFacts, owner: string): KeyDecision {
  const { current, localHost } = facts;
  if (!facts.isLogout || owner === localHost) {
    // The other node of this datacenter renews its own key; only a key that our logout removed is
    // put back.
    return facts.isLogout && current === null ? { kind: "set-absent", host: owner } : LEAVE;
  }
  if (current === null) return { kind: "set-absent", host: owner };
  const isOurWriting = current === localHost || current === facts.handedTo;
  return facts.isFirstLogout || (isOurWriting && current !== owner)
    ? { kind: "set", host: owner }
    : LEAVE;
}

function decideUnowned(facts: KeyFacts): KeyDecision {
  const { current, localHost, handedTo } = facts;
  if (!facts.isLogout) return LEAVE;
  if (current === null) return facts.isFirstLogout || handedTo !== undefined ? DELETE : LEAVE;
  if (current === localHost || current === handedTo || current === "") return DELETE;
  // The claim may still be on its way; elsewhere a late write of ours may cover it.
  return facts.isFirstLogout ? { kind: "set", host: current } : LEAVE;
}
