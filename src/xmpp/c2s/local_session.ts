import type { FullJid, Jid } from "../jid/jid.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { SessionOrigin } from "../sm/moving_session.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";

/** A bound client, as the registry that delivers to it sees it. */
export interface LocalSession {
  readonly jid: FullJid;
  /**
   * Mark that tells the account from another one of its name, as it was at the login.
   * @default empty: its store has nothing of the kind
   */
  readonly creation?: string;
  /** RFC 6121 §4.7.2.3, −128 to 127; undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
  /**
   * The last broadcast presence, with `to` set to the account's bare JID; undefined while not available.
   */
  readonly lastPresence: Stanza | undefined;
  /** True while its client gets copies of the account's other messages (XEP-0280). */
  hasCarbons: boolean;
  /** Monotonic milliseconds until which the account is known to have no other session; else 0. */
  loneUntilMs: number;
  /** Recipients of its directed presence that have not been sent the end of it. */
  readonly directed: readonly Jid[];
  /** True when nobody on the way can read what its client writes: over TLS, or on loopback. */
  readonly isConfidential: boolean;
  /** False once the stream has ended. */
  readonly isOpen: boolean;
  /** Called before any stanza is delivered: delivery begins now. */
  opened(): void;
  /** True while the session has no connection and its client may resume it (XEP-0198). */
  readonly isHibernating: boolean;
  /** True once the session belongs to another node, and only passes on what still comes here. */
  readonly isGiven?: boolean;
  /**
   * Set for a session that has come from another node: it takes stanzas before it has its place.
   * @default it began here
   */
  readonly origin?: SessionOrigin | undefined;
  /** True when the session keeps each stanza until its client has acknowledged it (XEP-0198). */
  readonly isManaged: boolean;
  /** Stanzas that its client has not acknowledged. @default none */
  readonly kept?: readonly Delivery[];
  /**
   * Writes `stanza` to the client; false when the client reads too slowly to take it.
   * @param delivery kept by a managed session, whatever the stanza
   */
  send(stanza: Stanza, delivery?: Delivery): boolean;
  /** Keeps `delivery` in the place of a copy of it; false when it keeps none. @default false */
  replaceCopy?(delivery: Delivery): boolean;
  /** Sends the last broadcast presence anew, with what the server adds to it by now. */
  repeatPresence?(): void;
  /** Sends directed presence for an account and its resources again. */
  repeatDirected?(account: Jid): void;
  /** Ends the stream with `condition`. */
  end(condition: StreamErrorCondition): void;
  /**
   * Called when the session has lost its place. It returns the stanzas it keeps, before anything else
   * for its client is delivered.
   */
  giveBack(): void;
}

/**
 * Callbacks for every session that comes and goes. For one full JID, calls alternate and do not overlap.
 */
export interface SessionRegistryEvents {
  /**
   * Awaited before the client learns that it is bound. Must not reject.
   * @param origin set for a session that has come from another node
   */
  opened(jid: FullJid, origin?: SessionOrigin): Promise<void>;
  /**
   * Awaited after `opened`, before anything is delivered to the session. Must not reject.
   * @returns the condition by which the session is refused; `closed` follows
   */
  opening?(jid: FullJid): Promise<StanzaErrorCondition | undefined>;
  /**
   * Returns the number of the account's resources at other nodes and datacenters, as it was when
   * `opened` was over. @default none
   */
  elsewhere?(bareJid: string): number;
  /**
   * A session that has moved to another node leaves next, with what it gets within this call.
   */
  leaving?(jid: FullJid): void;
  /** Must not reject. */
  closed(jid: FullJid): Promise<void>;
  /** Stanzas for the session are delivered from now on. Called again when the session becomes available. */
  reachable?(jid: FullJid): void;
  /**
   * The session has sent its presence to the account's resources here.
   * @param priority undefined when the session is no longer available
   * @param creation that of the session, empty without one
   */
  presence?(presence: Stanza, priority: number | undefined, creation: string): void;
  /** Returns false when the account's resources here know newer presence of the same full JID. */
  isNews?(presence: Stanza): boolean;
  /** Returns available presence of a client as it is sent: with what the server adds to it. */
  completed?(presence: Stanza): Stanza;
  /**
   * Returns true while contacts may still be told of the last presence of a session here, or the session
   * may still be sent what follows its login.
   */
  isTelling?(jid: FullJid): boolean;
  /**
   * The session came from another node, where it had this priority; nobody else needs to hear of it.
   * @param isNew true when it has become available a moment ago, or `isTelling` was true where it came from
   */
  arrived?(jid: FullJid, priority: number | undefined, isNew: boolean): void;
  /**
   * The session has become available, and has received the presence of the account's other resources
   * here.
   */
  available?(jid: FullJid): void;
}
