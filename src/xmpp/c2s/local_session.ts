import type { FullJid } from "../jid.ts";
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
  /** Writes `stanza` to the client; false when the client reads too slowly to take it. */
  send(stanza: Stanza): boolean;
  /** Ends the stream with `condition`. */
  end(condition: StreamErrorCondition): void;
}

/** Told of every session that comes and goes. For one full JID, calls alternate and do not overlap. */
export interface SessionHooks {
  /** Awaited before the client is told that it is bound. Must not reject. */
  opened(jid: FullJid): Promise<void>;
  /** Must not reject. */
  closed(jid: FullJid): Promise<void>;
  /** Stanzas for the session are delivered from now on; again when it has become available. */
  reachable?(jid: FullJid): void;
}
