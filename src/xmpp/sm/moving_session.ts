import type { FullJid, Jid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { Delivery } from "./delivery.ts";

/** State of a session, without its queue, on its way from one node to another; counts as in `h`. */
export interface SessionState {
  readonly jid: FullJid;
  /** Stanzas received from the client. */
  readonly received: number;
  /** Received stanzas, without a gap, that the client may forget even if this process dies. */
  readonly covered: number;
  /** Stanzas that the client has acknowledged. */
  readonly acknowledged: number;
  readonly resumeTimeoutMs: number;
  /** Milliseconds in which its client may still resend stanzas that an earlier stream left open. */
  readonly resendingMs: number;
  readonly lang: string | undefined;
  /** Priority of the session; undefined while it is not available. */
  readonly priority: number | undefined;
  /** The last broadcast presence; undefined while it is not available. */
  readonly presence: Stanza | undefined;
  /** Recipients of its directed presence. */
  readonly directed: readonly Jid[];
  /** True while its client has message carbons turned on (XEP-0280). */
  readonly hasCarbons: boolean;
  /** True while some contacts may not have been told of its presence, as after the initial one. */
  readonly isNewlyAvailable: boolean;
}

// ---- at the node that has the session ----------------------------------------------------------

/** Receiver of the stanzas that a frozen session keeps, in order. */
export interface Relay {
  /**
   * @param number the stanza's place in the queue, from 1
   * @returns false when it cannot take the stanza now: `relayMore` follows
   */
  write(delivery: Delivery, number: number): boolean;
}

/** Reason why a frozen session can no longer move. */
export type Unfreezing = "superseded" | "ended";

/** Owner of a freeze: it moves the session to another node. */
export interface FreezeOwner {
  /** Everything that the client sent is settled or held by another node. */
  covered(): void;
  /** The session is over, was resumed here, or was frozen for another owner. */
  ended(reason: Unfreezing): void;
}

/** A session that only keeps the stanzas that come for it. Its connection, if it had one, is gone. */
export interface FrozenSession {
  readonly jid: FullJid;
  /** Number of the transfer by which it came here; undefined when it began here. */
  readonly cameBy: number | undefined;
  readonly isCovered: boolean;
  /** Stanzas that the session keeps. */
  readonly kept: number;
  /** True when the session keeps more than it may. */
  readonly isFull: boolean;
  /**
   * Stanzas that wait here: `relay` has not received them yet. Those that came straight here do so
   * until no more follow from the node before.
   */
  readonly waiting: readonly Delivery[];
  /** Kept stanzas that `relay` has not received yet. */
  readonly unrelayed: number;
  /** Returns the stanzas that other sessions of the account here keep. */
  keptByOthers(): readonly Delivery[];
  state(): SessionState;
  /** Gives the kept and all later stanzas to `relay`, except the first `from`. */
  relay(relay: Relay, from: number): void;
  /** Continues with the stanzas that `relay` could not take. */
  relayMore(): void;
  /** Reports that the first `count` stanzas are settled at the other node. */
  settle(count: number): void;
  /** True when the session of this full JID is already at another node. */
  isElsewhere(): Promise<boolean>;
  /** Undoes the freeze: the session waits for its client as before. */
  thaw(): void;
  /** Marks the session as moved to the process `process`: nobody can resume it here any more. */
  give(process: number): void;
  /**
   * Takes a moved session out of the registry, and informs nobody else. What was held back goes along
   * first.
   */
  leave(): Promise<void>;
  /**
   * Routes unsettled stanzas again, after `leave`.
   * @param relayed number of the last stanza that the other node was sent; 0 for none
   * @param mayBeRepeat true when it may still deliver them
   */
  giveBack(relayed: number, mayBeRepeat: boolean): void;
}

/** Request to resume a session: its id, its account, and the client's handled count. */
export interface ResumeRequest {
  readonly previd: string;
  /** Bare JID of the account that the client has logged in to. */
  readonly account: string;
  readonly h: number;
}

/** Result of an attempt to freeze a session. */
export type Freezing =
  | { readonly kind: "frozen"; readonly session: FrozenSession }
  | { readonly kind: "unknown" | "other-account" }
  /** The session is over; `h` is its handled count. */
  | { readonly kind: "stale"; readonly h: number }
  | { readonly kind: "handled-too-high"; readonly sentCount: number }
  /** The session moved to the process with this incarnation. */
  | { readonly kind: "moved"; readonly process: number };

// ---- at the node that the client has come to ---------------------------------------------------

/** A session in its new place, which receives the stanzas that its old node kept meanwhile. */
export interface FollowedSession {
  /**
   * @param hasCome true when the session has the stanza: one of the two is a copy of the other
   */
  follow(delivery: Delivery, hasCome?: boolean): void;
  /**
   * Every stanza that reached the old node before it knew the new place has followed.
   * @param isSure false when more may follow: the session must wait no longer. @default true
   */
  caughtUp(isSure?: boolean): void;
}

/** The way by which a session came from another node. */
export interface SessionOrigin {
  /** Incarnation of the process that gave it. */
  readonly process: number;
  /** Monotonic milliseconds when it was asked for: a later login with its full JID is newer. */
  readonly askedMs: number;
  /**
   * Epoch of its claim at that process, read while it was on its way: a claim with a higher one is a
   * later login. Undefined where that is not known.
   */
  readonly epoch?: number | undefined;
}

/** A session that came from another node. Either `placed` or `declined` is called, once. */
export interface ArrivedSession {
  /** Number of the transfer by which it comes. */
  readonly transfer: number;
  readonly origin: SessionOrigin;
  readonly state: SessionState;
  /** Stanzas that its client has not acknowledged, in order. */
  readonly queue: readonly Delivery[];
  /** The session has its place here. */
  placed(session: FollowedSession): void;
  /** True for a stanza that the session has got at one of its nodes before, or by way of it. */
  hasFollowed(delivery: Delivery): boolean;
  /** Notes a stanza that came straight to the session, and was held back until now. */
  kept(delivery: Delivery): void;
  /** Notes one that came straight to it, and was not held back: the old node may still send it, too. */
  got(delivery: Delivery): void;
  /** The session cannot have a place here. */
  declined(): void;
  /** The session has ended here, or has gone on and left nothing here. Called after `placed`. */
  over(): void;
}

/** Result of a request for another node's session. */
export type Arrival =
  | { readonly kind: "arrived"; readonly session: ArrivedSession }
  /** `h` is known when the stream belonged to this account. */
  | { readonly kind: "failed"; readonly h: number | undefined }
  /** This node goes down. The session is, or may be, where it was. */
  | { readonly kind: "stopped" }
  | { readonly kind: "handled-too-high"; readonly sentCount: number };

/** A request for another node's session. */
export interface Fetching {
  /** The result. It never rejects, and resolves in a bounded time. */
  readonly arrival: Promise<Arrival>;
  /** True once a node has begun to send the session, until the transfer is over. */
  readonly hasBegun: boolean;
  /** Cancels the request, because the client has gone again. */
  cancel(): void;
}

/** Access to the sessions of other processes. */
export interface SessionsElsewhere {
  /**
   * Requests a session.
   * @param process incarnation of the process that is believed to have it
   */
  fetch(request: ResumeRequest, process: number): Fetching;
}
