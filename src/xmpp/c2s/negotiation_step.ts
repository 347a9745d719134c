import type { BareJid, FullJid } from "../jid/jid.ts";
import type { SaslMechanism } from "../sasl/mod.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type {
  AccountFeature,
  InlineRequests,
  NegotiationAction,
  NegotiationEvent,
  PendingSuccess,
  SaslProfile,
} from "./negotiation_events.ts";

/** State of a stream's negotiation. */
export type NegotiationState =
  | { readonly kind: "opening" }
  | { readonly kind: "securing" }
  | {
    readonly kind: "offering";
    readonly host: string;
    readonly failures: number;
    /** Requests to make an account that came so far. @default 0 */
    readonly creations?: number;
  }
  | {
    readonly kind: "creating";
    readonly host: string;
    readonly failures: number;
    readonly creations: number;
    readonly iqId: string;
  }
  | {
    readonly kind: "authenticating";
    readonly host: string;
    readonly failures: number;
    readonly profile: SaslProfile;
    readonly mechanism: SaslMechanism;
    readonly inline: InlineRequests;
    /** True while the server works on the client's last message. */
    readonly isWaiting: boolean;
  }
  | { readonly kind: "reopening"; readonly account: BareJid }
  | { readonly kind: "binding"; readonly account: BareJid }
  | {
    readonly kind: "registering";
    readonly account: BareJid;
    /** Id of the request that waits for the answer, or the `<success/>` that will carry it. */
    readonly answer: { readonly iqId: string } | { readonly success: PendingSuccess };
  }
  | {
    readonly kind: "resuming";
    readonly account: BareJid;
    readonly success: PendingSuccess | undefined;
  }
  | { readonly kind: "bound"; readonly jid: FullJid }
  | { readonly kind: "ending" }
  | { readonly kind: "closed" };

/** Current facts about the connection and the listener. */
export interface NegotiationTerms {
  readonly startTls: "required" | "optional" | "none";
  /** Mechanisms allowed on the connection as it is; none while TLS is required. */
  readonly mechanisms: readonly SaslMechanism[];
  /** Mechanisms allowed only once the connection is encrypted. */
  readonly withheld: readonly SaslMechanism[];
  /** True for a host that keeps no keys of its accounts, and so offers PLAIN alone. @default false */
  offersPlainOnly?(host: string): boolean;
  /** Types of channel binding that the connection allows as it is. */
  readonly channelBindings: readonly string[];
  /** True when clients may use XEP-0388. */
  readonly hasSasl2: boolean;
  /** True when clients may use stream management. */
  readonly isManageable: boolean;
  /** True when clients may say that they are inactive (XEP-0352). */
  readonly hasCsi: boolean;
  /** Returns true for a host at which the client may make an account. @default never */
  canCreate?(host: string): boolean;
  /** True when the accounts of a host have carbons (XEP-0280). @default false */
  hasCarbons?(domain: string): boolean;
  /** Returns the features of a host's accounts. @default none */
  accountFeatures?(domain: string): readonly AccountFeature[];
  /** Number of failed attempts that ends the stream. */
  readonly maxAuthFailures: number;
  hosts(domain: string): boolean;
}

/** Returns those of the mechanisms that a host offers. */
export function offeredAt(
  host: string,
  mechanisms: readonly SaslMechanism[],
  terms: NegotiationTerms,
): readonly SaslMechanism[] {
  if (terms.offersPlainOnly?.(host) !== true) return mechanisms;
  return mechanisms.filter((mechanism) => mechanism === "PLAIN");
}

/** The next state and its actions. */
export interface NegotiationStep {
  readonly state: NegotiationState;
  readonly actions: readonly NegotiationAction[];
}

/** A stream that is over. */
export const CLOSED: NegotiationState = { kind: "closed" };

/** Answers an element of stream management with an error, after which the stream goes on. */
export function managementFailure(
  state: NegotiationState,
  condition: StanzaErrorCondition,
): NegotiationStep {
  return { state, actions: [{ kind: "management-failure", condition, h: undefined }] };
}

/** Ends the stream with an error. If our own header was not sent yet, that goes first (§4.9.1.2). */
export function fail(state: NegotiationState, condition: StreamErrorCondition): NegotiationStep {
  const error: NegotiationAction = { kind: "stream-error", condition };
  switch (state.kind) {
    case "opening":
    case "reopening":
      return {
        state: CLOSED,
        actions: [{ kind: "send-header", host: undefined }, error, { kind: "end" }],
      };
    case "securing":
    case "ending":
      // During a handshake, and after our end, nothing may be sent.
      return { state: CLOSED, actions: [{ kind: "end" }] };
    default:
      return { state: CLOSED, actions: [error, { kind: "end" }] };
  }
}

/** Returns the condition for an element that is out of place (RFC 6120 §4.9.3). */
export function unexpected(event: NegotiationEvent): StreamErrorCondition {
  switch (event.kind) {
    case "stanza":
    case "bind":
    case "create":
    case "resume":
    case "management":
      return "not-authorized";
    case "header":
      return "bad-format";
    default:
      return "unsupported-stanza-type";
  }
}
