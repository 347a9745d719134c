import type { FullJid, Jid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import type { Delivery } from "./delivery.ts";

/** What a session is, but for its queue, as it goes from one node to another; counts as in `h`. */
export interface SessionState {
  readonly jid: FullJid;
  /** Stanzas of the client that were taken. */
  readonly received: number;
  /** Of those, without a gap, the ones that the client may forget even if this process dies. */
  readonly covered: number;
  /** Stanzas that the client has acknowledged. */
  readonly acknowledged: number;
  readonly resumeTimeoutMs: number;
  /** Time for which its client may still send again what a stream before left open. */
  readonly resendingMs: number;
  readonly lang: string | undefined;
  /** Undefined while it is not available. */
  readonly priority: number | undefined;
  /** The last broadcast; undefined while it is not available. */
  readonly presence: Stanza | undefined;
  /** Whom directed presence went to. */
  readonly directed: readonly Jid[];
}

// ---- where the session is ------------------------------------------------------------------

/** Takes what a frozen session keeps, in order. */
export interface Relay {
  /**
   * @param number its place in the queue, from 1
   * @returns false when it cannot take it now: `relayMore` follows
   */
  write(delivery: Delivery, number: number): boolean;
}

/** Why a frozen session is not to be had any more. */
export type Unfreezing = "superseded" | "ended";

/** Who has frozen a session, to bring it to another node. */
export interface FreezeOwner {
  /** All that its client sent has met its fate, or is with another node. */
  covered(): void;
  /** It is over, or has been resumed here, or is frozen for somebody else. */
  ended(reason: Unfreezing): void;
}

/** A session that does nothing but keep what comes for it. Its connection, if it had one, is gone. */
export interface FrozenSession {
  readonly jid: FullJid;
  readonly isCovered: boolean;
  /** Stanzas that it keeps. */
  readonly kept: number;
  /** True when it keeps more than it may. */
  readonly isFull: boolean;
  /** Stanzas kept that `relay` has not been given. */
  readonly unrelayed: number;
  state(): SessionState;
  /** Gives what it keeps, and what comes, to `relay`, behind the first `from` stanzas. */
  relay(relay: Relay, from: number): void;
  /** Goes on with what `relay` could not take. */
  relayMore(): void;
  /** The first `count` stanzas are settled where they went. */
  settle(count: number): void;
  /** True when the session of this full JID is at another place already. */
  isElsewhere(): Promise<boolean>;
  /** Takes it back: it waits for its client as before. */
  thaw(): void;
  /** It is the session of the process `process`: here it can be resumed no more. */
  give(process: number): void;
  /** Takes a session that was given out of the registry, and says nothing to anybody else. */
  leave(): Promise<void>;
  /**
   * Routes again what is not settled, after `leave`.
   * @param mayBeRepeat true when whoever it went to may still deliver it
   */
  giveBack(mayBeRepeat: boolean): void;
}

/** Whose session is wanted, and what its client has handled of it. */
export interface ResumeRequest {
  readonly previd: string;
  /** Bare JID of the account that the client has logged in to. */
  readonly account: string;
  readonly h: number;
}

/** What an attempt to freeze a session comes to. */
export type Freezing =
  | { readonly kind: "frozen"; readonly session: FrozenSession }
  | { readonly kind: "unknown" | "other-account" }
  /** It is over; `h` is what was handled of it. */
  | { readonly kind: "stale"; readonly h: number }
  | { readonly kind: "handled-too-high"; readonly sentCount: number }
  /** It went to the process with this incarnation. */
  | { readonly kind: "moved"; readonly process: number };

// ---- where its client has come to -----------------------------------------------------------

/** A session in its new place, to which what was kept for it meanwhile follows. */
export interface FollowedSession {
  follow(delivery: Delivery): void;
  /** All that had reached the old place before this one was known has followed. */
  caughtUp(): void;
}

/** A session that has come from another node. Either of its methods is called, once. */
export interface ArrivedSession {
  readonly state: SessionState;
  /** What its client has not acknowledged, in order. */
  readonly queue: readonly Delivery[];
  /** It has its place here. */
  placed(session: FollowedSession): void;
  /** It cannot have one. */
  declined(): void;
}

/** What became of the wish for a session of another node. */
export type Arrival =
  | { readonly kind: "arrived"; readonly session: ArrivedSession }
  /** `h` is known when the stream was this account's. */
  | { readonly kind: "failed"; readonly h: number | undefined }
  | { readonly kind: "handled-too-high"; readonly sentCount: number };

/** A session that was asked for. */
export interface Fetching {
  /** Never rejects, and comes in a bounded time. */
  readonly arrival: Promise<Arrival>;
  /** Its client has gone again: nothing is wanted any more. */
  cancel(): void;
}

/** The sessions that are not in this process. */
export interface SessionsElsewhere {
  /** @param process incarnation of the process that is believed to have it */
  fetch(request: ResumeRequest, process: number): Fetching;
}
