import type { Jid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";

/** The stream that a stanza came from, as far as whoever routes may touch it. */
export interface StanzaSource {
  /** Full JID of a client, domain of a component. */
  readonly jid: Jid;
  /** True while what it sends may have been sent before, on a stream that could not be resumed. */
  readonly isResending?: boolean;
  /**
   * Stops reading from this stream until `resume`; what was already read, one chunk at most, still
   * arrives. A switch, not a counter: whoever has several reasons counts them.
   */
  pause(): void;
  resume(): void;
}

/** Told what becomes of the stanzas of somebody who waits for that, by their numbers. */
export interface StanzaFate {
  /** True where nobody would send it again, whatever becomes of it. @default false */
  readonly isSentOnce?: boolean;
  /** Another node holds it: this process may die. */
  held(number: number): void;
  /** Its fate is final. */
  settle(number: number): void;
}

/** Where the stanzas of all streams go. */
export interface StanzaSink {
  /**
   * Takes `stanza` over; `from` is stamped and checked. Called in the order of the stream.
   *
   * @param fate told, with `number`, once the client may forget the stanza
   */
  accept(stanza: Stanza, source: StanzaSource, fate?: StanzaFate, number?: number): void;
}

/** What became of a stanza that was to be delivered to a session or component. */
export type DeliveryOutcome =
  | "delivered"
  | "no-session"
  | "ignored"
  | import("../stanza_error.ts").StanzaErrorCondition;
