import type { FullJid } from "../jid.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { Stanza } from "../stanza.ts";
import type { StreamErrorCondition } from "../stream_error.ts";

/** A bound client, as the registry that delivers to it sees it. */
export interface LocalSession {
  readonly jid: FullJid;
  /** RFC 6121 §4.7.2.3, −128 to 127; undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
  /** The last broadcast presence with `to` set to the account's bare JID; while available. */
  readonly lastPresence: Stanza | undefined;
  /** False once the stream has ended. */
  readonly isOpen: boolean;
  /** From now on stanzas are delivered; called before any is. */
  opened(): void;
  /** True while it has no connection, and its client may come back to it (XEP-0198). */
  readonly isHibernating: boolean;
  /** True when it keeps what it is given until its client has acknowledged it (XEP-0198). */
  readonly isManaged: boolean;
  /**
   * Writes `stanza` to the client; false when the client reads too slowly to take it.
   * @param delivery kept by a managed session, which takes any stanza
   */
  send(stanza: Stanza, delivery?: Delivery): boolean;
  /** Ends the stream with `condition`. */
  end(condition: StreamErrorCondition): void;
  /** It has lost its place: what it keeps goes back, before anything else for its client is delivered. */
  giveBack(): void;
}

/** Told of every session that comes and goes. For one full JID, calls alternate and do not overlap. */
export interface SessionHooks {
  /** Awaited before the client is told that it is bound. Must not reject. */
  opened(jid: FullJid): Promise<void>;
  /** Must not reject. */
  closed(jid: FullJid): Promise<void>;
  /** Stanzas for the session are delivered from now on; again when it has become available. */
  reachable?(jid: FullJid): void;
  /**
   * The session has told the account's resources here of its presence.
   * @param priority undefined when it is not available any more
   */
  presence?(presence: Stanza, priority: number | undefined): void;
  /** The session has come from another node, where it had this priority; nobody else needs to hear of it. */
  arrived?(jid: FullJid, priority: number | undefined): void;
  /** The session has become available, and has been told of the account's other resources here. */
  available?(jid: FullJid): void;
}
