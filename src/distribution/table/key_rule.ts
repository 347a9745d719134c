import type { Claim } from "./claims.ts";

/** One key of an account as a node finds it, with all it needs to decide on its value. */
export interface KeyFacts {
  /** Value in our Redis; null when there is none. */
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
  /** True when that has not been written yet. */
  readonly isFirstLogout: boolean;
  /** True when the host that `current` names has any claim on the key, live or dead. */
  readonly isClaimed: boolean;
  /** True when `current` was found without a claim at an earlier look, too. */
  readonly isSuspect: boolean;
  /** Host that this node itself gave the key to, on behalf of its owner. */
  readonly handedTo: string | undefined;
}

/**
 * What to do with the key: `set` to a host with a fresh expiry, `set-absent` (SET NX), `delete`,
 * `suspect` (leave, but look again), `leave`.
 */
export type KeyDecision =
  | { readonly kind: "set"; readonly host: string }
  | { readonly kind: "set-absent"; readonly host: string }
  | { readonly kind: "delete" }
  | { readonly kind: "suspect" }
  | { readonly kind: "leave" };

/** Decides on one key; replaced in the simulation to show that it matters. */
export type KeyRule = (facts: KeyFacts) => KeyDecision;

const LEAVE: KeyDecision = { kind: "leave" };

/**
 * The rule of `design.md` §4: the newest live claim owns the key, only its owner renews it, and
 * refreshing never takes a user back.
 *
 * | newest live claim | key says | decision |
 * |---|---|---|
 * | ours, just logged in | anything | ours |
 * | ours | nothing | ours if still absent |
 * | ours | us | written again: an EXPIRE alone would keep a wrong value alive in a datacenter where an older write came in last, and would not fill a Redis that lost its data |
 * | ours | another's, which has a claim | ours: its claim is older or dead |
 * | ours | another's, without a claim | left alone; if it is still so at the next look, ours |
 * | ours | another's, to which we gave it | ours: that one closed, too |
 * | another's, and a session of ours has closed | us, whom we gave it to, or nothing; it, too, when we close: elsewhere the key may still name us | given to it |
 * | another's | anything else | left alone, its owner sees to it |
 * | none, and a session of ours has closed | us, or whom we gave it to; nothing, too, when we close | deleted |
 */
export function decideKey(facts: KeyFacts): KeyDecision {
  const { current, localHost, newest } = facts;
  if (newest === undefined) {
    const isOurWriting = current === localHost || current === facts.handedTo;
    // also where it is gone already: elsewhere, what we wrote may come in after what removed it
    const isToGo = current === null
      ? facts.isFirstLogout || (facts.isLogout && facts.handedTo !== undefined)
      : facts.isLogout && isOurWriting;
    return isToGo ? { kind: "delete" } : LEAVE;
  }
  if (!facts.isOurs) {
    if (newest.host === localHost) {
      // another node of this datacenter renews it; only a key that closing left wrong is put right
      return facts.isLogout && current === null ? { kind: "set-absent", host: localHost } : LEAVE;
    }
    if (!facts.isLogout) return LEAVE;
    if (current === null) return { kind: "set-absent", host: newest.host };
    const isOurWriting = current === localHost || current === facts.handedTo;
    const isWritten = current === newest.host && !facts.isFirstLogout;
    return !isWritten && (isOurWriting || current === newest.host)
      ? { kind: "set", host: newest.host }
      : LEAVE;
  }
  if (facts.isLogin) return { kind: "set", host: localHost };
  if (current === null) return { kind: "set-absent", host: localHost };
  const isTakenBack = facts.isClaimed || facts.isSuspect || current === facts.handedTo;
  return current === localHost || isTakenBack
    ? { kind: "set", host: localHost }
    : { kind: "suspect" };
}
