import type { Envelope } from "./envelope.ts";
import type { StanzaTrace } from "./stanza_trace.ts";

/** Decides which stanzas are followed. */
export interface StanzaTracer {
  /** False while nobody follows any stanza. It is all that a stanza costs then. */
  readonly isOn: boolean;
  /**
   * Begins to follow a stanza that has come to this node, if somebody wants it.
   * @param cause the trace of the stanza that it answers
   */
  follow(envelope: Envelope, cause?: StanzaTrace): StanzaTrace | undefined;
}

/** A tracer that follows nothing. */
export const NO_TRACER: StanzaTracer = { isOn: false, follow: () => undefined };
