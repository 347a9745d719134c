import type { NegotiationEvent } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationStep, NegotiationTerms } from "./negotiation_step.ts";
import { fail, managementFailure, unexpected } from "./negotiation_step.ts";

/** Steps of an authenticated stream without a resource (RFC 6120 §7). */
export function binding(
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

/** Steps of a stream whose client resumes an earlier one (XEP-0198 §5). */
export function resuming(
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

/** Steps of a stream whose resource is being registered. */
export function registering(
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
