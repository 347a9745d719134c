import type { SaslCondition, SaslMechanism } from "../sasl/mod.ts";
import { authenticated } from "./binding_state.ts";
import type { NegotiationAction, NegotiationEvent, SaslProfile } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationStep, NegotiationTerms } from "./negotiation_step.ts";
import { requested } from "./creation_state.ts";
import { CLOSED, fail, managementFailure, offeredAt, unexpected } from "./negotiation_step.ts";

/** Steps of a stream on which nobody is authenticated yet (RFC 6120 §5, §6). */
export function offering(
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
      const { profile, inline } = event;
      if (profile === "sasl2" && !terms.hasSasl2) return fail(state, unexpected(event));
      const at = (mechanisms: readonly SaslMechanism[]) =>
        offeredAt(state.host, mechanisms, terms).find((each) => each === event.mechanism);
      const mechanism = at(terms.mechanisms);
      if (mechanism === undefined) {
        const isWithheld = at(terms.withheld) !== undefined;
        const condition = isWithheld ? "encryption-required" : "invalid-mechanism";
        return failedAttempt({ ...state, profile, mechanism: undefined }, condition, terms);
      }
      return {
        state: {
          kind: "authenticating",
          host: state.host,
          failures: state.failures,
          profile,
          mechanism,
          inline,
          isWaiting: true,
        },
        actions: [
          { kind: "hold" },
          { kind: "authenticate", profile, host: state.host, mechanism, text: event.text },
        ],
      };
    }
    case "response":
    case "abort": {
      const { profile } = event;
      if (profile === "sasl2" && !terms.hasSasl2) return fail(state, unexpected(event));
      return failedAttempt(
        { ...state, profile, mechanism: undefined },
        event.kind === "abort" ? "aborted" : "malformed-request",
        terms,
      );
    }
    case "create":
      return requested(state, event, terms);
    case "resume":
    case "management":
      return tooEarly(state, event, terms);
    default:
      return fail(state, unexpected(event));
  }
}

/** Steps of a stream while a SASL exchange is under way. */
export function authenticating(
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
          actions: [
            { kind: "challenge", profile: state.profile, text: reply.text },
            { kind: "release" },
          ],
        };
      case "success":
        if (state.profile === "sasl2") return authenticated(state.inline, reply, terms);
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
  if ("profile" in event && event.profile !== state.profile) return fail(state, unexpected(event));
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

/** Allows another attempt, up to a limit (RFC 6120 §6.4.5). */
function failedAttempt(
  state: {
    readonly host: string;
    readonly failures: number;
    readonly profile: SaslProfile;
    readonly mechanism: SaslMechanism | undefined;
  },
  condition: SaslCondition,
  terms: NegotiationTerms,
): NegotiationStep {
  const failures = state.failures + 1;
  const failure: NegotiationAction = {
    kind: "sasl-failure",
    profile: state.profile,
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
