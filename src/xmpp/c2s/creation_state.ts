import type { CreationRequest, NegotiationEvent } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationStep, NegotiationTerms } from "./negotiation_step.ts";
import { fail } from "./negotiation_step.ts";

/** Requests to make an account that one stream may send. */
const MAX_CREATIONS = 10;

/** Takes a request of a client that is not logged in to make an account (XEP-0077 §3.1). */
export function requested(
  state: NegotiationState & { kind: "offering" },
  { iqId, type, username, password }: CreationRequest,
  terms: NegotiationTerms,
): NegotiationStep {
  const { host, failures, creations = 0 } = state;
  if (terms.canCreate?.(host) !== true) return fail(state, "not-authorized");
  if (creations >= MAX_CREATIONS) return fail(state, "policy-violation");
  const counted = { ...state, creations: creations + 1 };
  if (type === "get") {
    return { state: counted, actions: [{ kind: "creation-form", iqId, host }] };
  }
  if (username === undefined || password === undefined) {
    const outcome = "not-acceptable"; // XEP-0077 §3.1.1: not all fields are there
    return { state: counted, actions: [{ kind: "creation-answer", iqId, host, outcome }] };
  }
  return {
    state: { kind: "creating", host, failures, creations: creations + 1, iqId },
    actions: [{ kind: "hold" }, { kind: "create-account", host, username, password }],
  };
}

/** Steps of a stream while an account is being made. */
export function creating(
  state: NegotiationState & { kind: "creating" },
  event: NegotiationEvent,
): NegotiationStep {
  if (event.kind !== "created") return fail(state, "policy-violation");
  const { host, failures, creations, iqId } = state;
  const { outcome } = event;
  return {
    state: { kind: "offering", host, failures, creations },
    actions: [{ kind: "creation-answer", iqId, host, outcome }, { kind: "release" }],
  };
}
