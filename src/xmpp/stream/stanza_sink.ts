import type { Jid } from "../jid/jid.ts";
import type { Fate } from "../stanza/fate.ts";
import type { Stanza } from "../stanza/stanza.ts";

/** The stream that a stanza came from, as the router sees it. */
export interface StanzaSource {
  /** As in `LocalSession`, of a client. */
  loneUntilMs?: number;
  /** Full JID of a client, or domain of a component. */
  readonly jid: Jid;
  /** True while its stanzas may repeat those of a stream that could not be resumed. */
  readonly isResending?: boolean;
  /**
   * Stops reading from this stream until `resume`. What was already read, one chunk at most, still
   * arrives. This is a switch, not a counter: a caller with several reasons counts them itself.
   */
  pause(): void;
  resume(): void;
}

/** Receiver of the stanzas of all streams. */
export interface StanzaSink {
  /**
   * Takes `stanza` over, with `from` stamped and checked. Called in the order of the stream.
   *
   * @param fate called with `number` once the client may forget the stanza
   */
  accept(stanza: Stanza, source: StanzaSource, fate?: Fate, number?: number): void;
}

/**
 * Result of an attempt to deliver a stanza to a session or component. `hidden` is a request whose
 * sender must not learn that the session is there.
 */
export type DeliveryOutcome =
  | "delivered"
  | "no-session"
  | "hidden"
  | "ignored"
  | import("../stanza/stanza_error.ts").StanzaErrorCondition;
