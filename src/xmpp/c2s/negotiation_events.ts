import type { BareJid, FullJid } from "../jid/jid.ts";
import type { SaslCondition, SaslMechanism, SaslReply } from "../sasl/mod.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";

/** Events of a stream's negotiation. */
export type NegotiationEvent =
  | { readonly kind: "header"; readonly header: StreamHeader }
  | { readonly kind: "starttls" }
  | {
    readonly kind: "auth";
    readonly mechanism: string | undefined;
    readonly text: string | undefined;
  }
  | { readonly kind: "response"; readonly text: string }
  | { readonly kind: "abort" }
  /** `resource` is undefined when the server chooses it. */
  | { readonly kind: "bind"; readonly iqId: string; readonly resource: string | undefined }
  /**
   * The client wants to resume an earlier stream (XEP-0198 §5); either value is undefined when it is
   * invalid.
   */
  | {
    readonly kind: "resume";
    readonly previd: string | undefined;
    readonly h: number | undefined;
  }
  /** Any other nonza of stream management. */
  | { readonly kind: "management" }
  /** A message, presence or iq that is not a bind request. */
  | { readonly kind: "stanza" }
  /** Anything else at the top level. */
  | { readonly kind: "foreign" }
  /** The SASL exchange answered the message of `authenticate` or `respond`. */
  | { readonly kind: "sasl"; readonly reply: SaslReply }
  | { readonly kind: "secured" }
  | { readonly kind: "registered"; readonly jid: FullJid }
  | { readonly kind: "refused"; readonly condition: StanzaErrorCondition }
  /**
   * The earlier stream continues here, or fails with a condition; `h` is its handled count, where known.
   */
  | { readonly kind: "resumed"; readonly jid: FullJid }
  | {
    readonly kind: "resume-failed";
    readonly condition: StanzaErrorCondition;
    readonly h: number | undefined;
  }
  /** The peer ended its stream. */
  | { readonly kind: "footer" }
  /** The server ends the stream, and still reads a bound peer's remaining stanzas. */
  | { readonly kind: "dismiss"; readonly condition: StreamErrorCondition }
  /** The peer broke a rule, ran out of time, or the server ends the stream. */
  | { readonly kind: "fail"; readonly condition: StreamErrorCondition };

/** Features offered after a header (RFC 6120 §4.3.2). */
export interface OfferedFeatures {
  readonly startTls: "required" | "optional" | "none";
  readonly mechanisms: readonly SaslMechanism[];
  /** Types of channel binding for the -PLUS mechanisms (XEP-0440). */
  readonly channelBindings: readonly string[];
  readonly isBindable: boolean;
  /** True when stream management is offered. */
  readonly isManageable: boolean;
}

/** Actions of the shell, in order. */
export type NegotiationAction =
  | { readonly kind: "send-header"; readonly host: string | undefined }
  | { readonly kind: "send-features"; readonly features: OfferedFeatures }
  | { readonly kind: "proceed" }
  | { readonly kind: "tls-failure" }
  | {
    readonly kind: "authenticate";
    readonly host: string;
    readonly mechanism: SaslMechanism;
    readonly text: string | undefined;
  }
  | { readonly kind: "respond"; readonly text: string }
  | { readonly kind: "challenge"; readonly text: string }
  | { readonly kind: "success"; readonly text: string | undefined }
  | {
    readonly kind: "sasl-failure";
    readonly condition: SaslCondition;
    /** Undefined for a mechanism that does not exist. */
    readonly mechanism: SaslMechanism | undefined;
  }
  /** The next input is a new stream header. */
  | { readonly kind: "restart" }
  | { readonly kind: "register"; readonly account: BareJid; readonly resource: string | undefined }
  | { readonly kind: "bind-result"; readonly iqId: string; readonly jid: FullJid }
  | {
    readonly kind: "bind-error";
    readonly iqId: string;
    readonly condition: StanzaErrorCondition;
  }
  | {
    readonly kind: "resume";
    readonly account: BareJid;
    readonly previd: string;
    readonly h: number;
  }
  | {
    readonly kind: "management-failure";
    readonly condition: StanzaErrorCondition;
    readonly h: number | undefined;
  }
  /** Stop the input, or continue it. */
  | { readonly kind: "hold" }
  | { readonly kind: "release" }
  | { readonly kind: "stream-error"; readonly condition: StreamErrorCondition }
  /** Send the end of the stream, and keep reading. */
  | { readonly kind: "end-output" }
  /** Send the end of the stream, unless that was sent already, and close the connection. */
  | { readonly kind: "end" };
