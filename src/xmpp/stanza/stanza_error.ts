/** The defined conditions of a stanza error (RFC 6120 §8.3.3). */
export type StanzaErrorCondition =
  | "bad-request"
  | "conflict"
  | "feature-not-implemented"
  | "forbidden"
  | "gone"
  | "internal-server-error"
  | "item-not-found"
  | "jid-malformed"
  | "not-acceptable"
  | "not-allowed"
  | "not-authorized"
  | "policy-violation"
  | "recipient-unavailable"
  | "redirect"
  | "registration-required"
  | "remote-server-not-found"
  | "remote-server-timeout"
  | "resource-constraint"
  | "service-unavailable"
  | "subscription-required"
  | "undefined-condition"
  | "unexpected-request";

/** Possible reactions of a stanza's sender to its error (RFC 6120 §8.3.2). */
export type StanzaErrorType = "auth" | "cancel" | "continue" | "modify" | "wait";

/** The type that RFC 6120 §8.3.3 recommends for each condition. */
export const STANZA_ERROR_TYPES: Readonly<Record<StanzaErrorCondition, StanzaErrorType>> = {
  "bad-request": "modify",
  "conflict": "cancel",
  "feature-not-implemented": "cancel",
  "forbidden": "auth",
  "gone": "cancel",
  "internal-server-error": "cancel",
  "item-not-found": "cancel",
  "jid-malformed": "modify",
  "not-acceptable": "modify",
  "not-allowed": "cancel",
  "not-authorized": "auth",
  "policy-violation": "modify",
  "recipient-unavailable": "wait",
  "redirect": "modify",
  "registration-required": "auth",
  "remote-server-not-found": "cancel",
  "remote-server-timeout": "wait",
  "resource-constraint": "wait",
  "service-unavailable": "cancel",
  "subscription-required": "auth",
  "undefined-condition": "cancel",
  "unexpected-request": "wait",
};

/** RFC 6120 §8.3.3. */
export const STANZA_ERROR_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-stanzas";
