import type { BareJid, FullJid } from "../jid/jid.ts";
import { tryParseJid } from "../jid/jid_parser.ts";
import type { SaslCondition, SaslMechanism } from "../sasl/mod.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import { CLIENT_NAMESPACE } from "../stream/namespaces.ts";
import { checkStreamHeader } from "../stream/stream_header.ts";
import type { NegotiationAction, NegotiationEvent } from "./negotiation_events.ts";

// A client's stream from its first byte to its end (RFC 6120 §4 to §7):
//
//   opening --header--> offering --starttls--> securing --secured--> opening
//                          |  ^
//                        auth |failure
//                          v  |
//                     authenticating --success--> reopening --header--> binding
//                                                                         |
//   closed <--end, error, timeout-- bound <--registered-- registering <--bind--+
//                                     ^                                       |
//                                     +--resumed-- resuming <-----------resume+
//
//   closed <--end, error, timeout-- ending <--dismiss-- bound
//
// While the server works (authenticating with `isWaiting`, registering, resuming) input is held back, so that
// what a client pipelines is read in its turn. While a stream is ending, our side of it is closed, but
// we still take what the client wrote before it learned of that (§4.4).

/** State of a stream's negotiation. */
export type NegotiationState =
  | { readonly kind: "opening" }
  | { readonly kind: "securing" }
  | { readonly kind: "offering"; readonly host: string; readonly failures: number }
  | {
    readonly kind: "authenticating";
    readonly host: string;
    readonly failures: number;
    readonly mechanism: SaslMechanism;
    /** True while the server works on the client's last message. */
    readonly isWaiting: boolean;
  }
  | { readonly kind: "reopening"; readonly account: BareJid }
  | { readonly kind: "binding"; readonly account: BareJid }
  | { readonly kind: "registering"; readonly account: BareJid; readonly iqId: string }
  | { readonly kind: "resuming"; readonly account: BareJid }
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
  /** Types of channel binding that the connection allows as it is. */
  readonly channelBindings: readonly string[];
  /** True when clients may use stream management. */
  readonly isManageable: boolean;
  /** Number of failed attempts that ends the stream. */
  readonly maxAuthFailures: number;
  hosts(domain: string): boolean;
}

/** The next state and its actions. */
export interface NegotiationStep {
  readonly state: NegotiationState;
  readonly actions: readonly NegotiationAction[];
}

const CLOSED: NegotiationState = { kind: "closed" };

/**
 * Address with an `@` before any resourcepart. The rest need not be a JID: the name of a machine may be
 * no domainpart, `build_box` for example.
 */
const HAS_LOCALPART = /^[^/@]*@/;

/** Advances one stream by one event. Pure: no clock, no connection, no logging. */
export function stepNegotiation(
  state: NegotiationState,
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  if (state.kind === "closed") return { state, actions: [] }; // late input is normal at the end
  if (event.kind === "fail") return fail(state, event.condition);
  if (event.kind === "dismiss" && state.kind !== "bound") return fail(state, event.condition);
  if (event.kind === "footer") return { state: CLOSED, actions: [{ kind: "end" }] };
  switch (state.kind) {
    case "opening":
    case "reopening":
      return event.kind === "header"
        ? opened(state, event.header, terms)
        : fail(state, "bad-format");
    case "securing":
      // Nothing but the handshake may follow <proceed/>; the transport reports pipelined bytes.
      return event.kind === "secured"
        ? { state: { kind: "opening" }, actions: [{ kind: "restart" }] }
        : fail(state, "policy-violation");
    case "offering":
      return offering(state, event, terms);
    case "authenticating":
      return authenticating(state, event, terms);
    case "binding":
      return binding(state, event, terms);
    case "registering":
      return registering(state, event);
    case "resuming":
      return resuming(state, event);
    case "bound":
      if (event.kind === "dismiss") {
        return {
          state: { kind: "ending" },
          actions: [{ kind: "stream-error", condition: event.condition }, { kind: "end-output" }],
        };
      }
      return event.kind === "stanza" ? { state, actions: [] } : fail(state, unexpected(event));
    case "ending":
      return event.kind === "stanza" ? { state, actions: [] } : fail(state, unexpected(event));
    default:
      return state satisfies never;
  }
}

function opened(
  state: NegotiationState & { kind: "opening" | "reopening" },
  header: StreamHeader,
  terms: NegotiationTerms,
): NegotiationStep {
  const account = state.kind === "reopening" ? state.account : undefined;
  const checked = checkStreamHeader(header, {
    contentNamespace: CLIENT_NAMESPACE,
    hasVersion: true,
    hosts: (domain) => account === undefined ? terms.hosts(domain) : domain === account.domainpart,
  });
  if (!checked.ok) return fail(state, checked.condition);
  const sendHeader: NegotiationAction = { kind: "send-header", host: checked.host };
  const failAfterHeader = (condition: StreamErrorCondition): NegotiationStep => ({
    state: CLOSED,
    actions: [sendHeader, { kind: "stream-error", condition }, { kind: "end" }],
  });
  if (account !== undefined) {
    // RFC 6120 §4.7.1: a `from` after authentication must name the account. A `from` without a
    // localpart is ignored, because some clients write the name of their machine there.
    const { from = "" } = header;
    if (HAS_LOCALPART.test(from) && tryParseJid(from)?.bare.text !== account.text) {
      return failAfterHeader("invalid-from");
    }
    return {
      state: { kind: "binding", account },
      actions: [sendHeader, {
        kind: "send-features",
        features: {
          startTls: "none",
          mechanisms: [],
          channelBindings: [],
          isBindable: true,
          isManageable: terms.isManageable,
        },
      }],
    };
  }
  if (terms.startTls === "none" && terms.mechanisms.length === 0) {
    return failAfterHeader("policy-violation");
  }
  return {
    state: { kind: "offering", host: checked.host, failures: 0 },
    actions: [sendHeader, {
      kind: "send-features",
      features: {
        startTls: terms.startTls,
        mechanisms: terms.mechanisms,
        channelBindings: terms.channelBindings,
        isBindable: false,
        isManageable: false,
      },
    }],
  };
}

function offering(
  state: NegotiationState & { kind: "offering" },
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  switch (event.kind) {
    case "starttls":
      return terms.startTls === "none"
        ? { state: CLOSED, actions: [{ kind: "tls-failure" }, { kind: "end" }] }
        : { state: { kind: "securing" }, actions: [{ kind: "proceed" }] };
    case "auth": {
      const mechanism = terms.mechanisms.find((offered) => offered === event.mechanism);
      if (mechanism === undefined) {
        const isWithheld = terms.withheld.some((withheld) => withheld === event.mechanism);
        const condition = isWithheld ? "encryption-required" : "invalid-mechanism";
        return failedAttempt({ ...state, mechanism: undefined }, condition, terms);
      }
      return {
        state: {
          kind: "authenticating",
          host: state.host,
          failures: state.failures,
          mechanism,
          isWaiting: true,
        },
        actions: [
          { kind: "hold" },
          { kind: "authenticate", host: state.host, mechanism, text: event.text },
        ],
      };
    }
    case "response":
    case "abort":
      return failedAttempt(
        { ...state, mechanism: undefined },
        event.kind === "abort" ? "aborted" : "malformed-request",
        terms,
      );
    case "resume":
    case "management":
      return tooEarly(state, event, terms);
    default:
      return fail(state, unexpected(event));
  }
}

function authenticating(
  state: NegotiationState & { kind: "authenticating" },
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  if (state.isWaiting) {
    if (event.kind !== "sasl") return fail(state, "policy-violation");
    const { reply } = event;
    switch (reply.kind) {
      case "challenge":
        return {
          state: { ...state, isWaiting: false },
          actions: [{ kind: "challenge", text: reply.text }, { kind: "release" }],
        };
      case "success":
        return {
          state: { kind: "reopening", account: reply.account },
          actions: [
            { kind: "success", text: reply.text },
            { kind: "restart" },
            { kind: "release" },
          ],
        };
      case "failure": {
        const step = failedAttempt(state, reply.condition, terms);
        return { state: step.state, actions: [...step.actions, { kind: "release" }] };
      }
      default:
        return reply satisfies never;
    }
  }
  switch (event.kind) {
    case "response":
      return {
        state: { ...state, isWaiting: true },
        actions: [{ kind: "hold" }, { kind: "respond", text: event.text }],
      };
    case "abort":
      return failedAttempt(state, "aborted", terms);
    case "auth":
      return failedAttempt(state, "malformed-request", terms);
    case "resume":
    case "management":
      return tooEarly(state, event, terms);
    default:
      return fail(state, unexpected(event));
  }
}

/** Answers stream management before authentication with an error, because XEP-0198 §3 wants it after. */
function tooEarly(
  state: NegotiationState,
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  return terms.isManageable
    ? managementFailure(state, "unexpected-request")
    : fail(state, unexpected(event));
}

function managementFailure(
  state: NegotiationState,
  condition: StanzaErrorCondition,
): NegotiationStep {
  return { state, actions: [{ kind: "management-failure", condition, h: undefined }] };
}

function binding(
  state: NegotiationState & { kind: "binding" },
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  switch (event.kind) {
    case "bind":
      return {
        state: { kind: "registering", account: state.account, iqId: event.iqId },
        actions: [
          { kind: "hold" },
          { kind: "register", account: state.account, resource: event.resource },
        ],
      };
    case "resume": {
      const { previd, h } = event;
      if (!terms.isManageable) return fail(state, "unsupported-stanza-type");
      if (previd === undefined || h === undefined) return managementFailure(state, "bad-request");
      return {
        state: { kind: "resuming", account: state.account },
        actions: [{ kind: "hold" }, { kind: "resume", account: state.account, previd, h }],
      };
    }
    case "management":
      // XEP-0198 §3: enabled only once a resource is bound.
      return terms.isManageable
        ? managementFailure(state, "unexpected-request")
        : fail(state, "unsupported-stanza-type");
    default:
      return fail(state, unexpected(event));
  }
}

function resuming(
  state: NegotiationState & { kind: "resuming" },
  event: NegotiationEvent,
): NegotiationStep {
  switch (event.kind) {
    case "resumed":
      return { state: { kind: "bound", jid: event.jid }, actions: [{ kind: "release" }] };
    case "resume-failed":
      return {
        state: { kind: "binding", account: state.account },
        actions: [
          { kind: "management-failure", condition: event.condition, h: event.h },
          { kind: "release" },
        ],
      };
    default:
      return fail(state, "policy-violation");
  }
}

function registering(
  state: NegotiationState & { kind: "registering" },
  event: NegotiationEvent,
): NegotiationStep {
  switch (event.kind) {
    case "registered":
      return {
        state: { kind: "bound", jid: event.jid },
        actions: [{ kind: "bind-result", iqId: state.iqId, jid: event.jid }, { kind: "release" }],
      };
    case "refused":
      return {
        state: { kind: "binding", account: state.account },
        actions: [
          { kind: "bind-error", iqId: state.iqId, condition: event.condition },
          { kind: "release" },
        ],
      };
    default:
      return fail(state, "policy-violation");
  }
}

/** Allows another attempt, up to a limit (RFC 6120 §6.4.5). */
function failedAttempt(
  state: {
    readonly host: string;
    readonly failures: number;
    readonly mechanism: SaslMechanism | undefined;
  },
  condition: SaslCondition,
  terms: NegotiationTerms,
): NegotiationStep {
  const failures = state.failures + 1;
  const failure: NegotiationAction = {
    kind: "sasl-failure",
    condition,
    mechanism: state.mechanism,
  };
  if (failures >= terms.maxAuthFailures) {
    return {
      state: CLOSED,
      actions: [failure, { kind: "stream-error", condition: "policy-violation" }, { kind: "end" }],
    };
  }
  return { state: { kind: "offering", host: state.host, failures }, actions: [failure] };
}

/** Ends the stream with an error. If our own header was not sent yet, that goes first (§4.9.1.2). */
function fail(state: NegotiationState, condition: StreamErrorCondition): NegotiationStep {
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
function unexpected(event: NegotiationEvent): StreamErrorCondition {
  switch (event.kind) {
    case "stanza":
    case "bind":
    case "resume":
    case "management":
      return "not-authorized";
    case "header":
      return "bad-format";
    default:
      return "unsupported-stanza-type";
  }
}
