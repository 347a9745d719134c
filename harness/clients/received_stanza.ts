import type { StanzaKind } from "../../src/xmpp/mod.ts";

/** One stanza that a client library has handed to its owner, in the words that all of them share. */
export interface ReceivedStanza {
  readonly kind: StanzaKind;
  /** The `type` attribute; undefined when absent. */
  readonly type: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly id: string | undefined;
  /** Text of `<body/>`. */
  readonly body: string | undefined;
  /** Name of the defined condition when `type` is `error` (RFC 6120 §8.3.3). */
  readonly errorCondition: string | undefined;
  /** The whole stanza as the library writes it out. */
  readonly xml: string;
}

/** Criterion of a wait: a body, or a predicate on the stanza. */
export type StanzaPredicate = string | ((stanza: ReceivedStanza) => boolean);

export function matchesStanza(predicate: StanzaPredicate, stanza: ReceivedStanza): boolean {
  return typeof predicate === "string" ? stanza.body === predicate : predicate(stanza);
}

/** One line for the message of a failed wait. */
export function describeStanza(stanza: ReceivedStanza): string {
  return stanza.xml.length > 400 ? `${stanza.xml.slice(0, 400)}…` : stanza.xml;
}
