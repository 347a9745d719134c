import type { BareJid } from "../jid/jid.ts";
import type {
  InlineRequests,
  NegotiationAction,
  NegotiationEvent,
  OfferedFeatures,
  PendingSuccess,
} from "./negotiation_events.ts";
import { NO_FEATURES } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationStep, NegotiationTerms } from "./negotiation_step.ts";
import { fail, managementFailure, unexpected } from "./negotiation_step.ts";

/**
 * Returns the features of an authenticated stream that hold with a resource and without: a client that
 * logs in by XEP-0388 may see no others.
 */
export function lastingFeatures(
  { hasCsi, accountFeatures }: NegotiationTerms,
  { domainpart }: BareJid,
): OfferedFeatures {
  return {
    ...NO_FEATURES,
    hasCsi,
    ...(accountFeatures && { account: accountFeatures(domainpart) }),
  };
}

/** Returns the features of an authenticated stream without a resource. */
export function bindingFeatures(terms: NegotiationTerms, account: BareJid): OfferedFeatures {
  const { isManageable } = terms;
  return { ...lastingFeatures(terms, account), isBindable: true, isManageable };
}

/**
 * First step of a stream whose client has authenticated by XEP-0388, and still waits for its
 * `<success/>`. Input stays held until that is written.
 */
export function authenticated(
  { resume, bind }: InlineRequests,
  { account, text }: { readonly account: BareJid; readonly text: string | undefined },
  terms: NegotiationTerms,
): NegotiationStep {
  const success: PendingSuccess = { text, bind, failedResume: undefined };
  if (resume === undefined) return bindInline(account, success, terms);
  const { previd, h } = resume;
  if (terms.isManageable && previd !== undefined && h !== undefined) {
    return {
      state: { kind: "resuming", account, success },
      actions: [{ kind: "resume", account, previd, h, success }],
    };
  }
  const condition = terms.isManageable ? "bad-request" : "feature-not-implemented";
  return bindInline(account, { ...success, failedResume: { condition, h: undefined } }, terms);
}

/** Binds the resource that was asked for together with the login; without a request, only answers. */
function bindInline(
  account: BareJid,
  success: PendingSuccess,
  terms: NegotiationTerms,
): NegotiationStep {
  const { bind } = success;
  if (bind === undefined) return unbound(account, success, terms);
  return {
    state: { kind: "registering", account, answer: { success } },
    actions: [{ kind: "register", account, resource: bind }],
  };
}

/** Answers a login that binds no resource, after which the client may bind one by RFC 6120. */
function unbound(
  account: BareJid,
  success: PendingSuccess,
  terms: NegotiationTerms,
): NegotiationStep {
  return {
    state: { kind: "binding", account },
    actions: [
      { kind: "success2", jid: account, success },
      { kind: "send-features", features: bindingFeatures(terms, account) },
      { kind: "release" },
    ],
  };
}

/** Steps of an authenticated stream without a resource (RFC 6120 §7). */
export function binding(
  state: NegotiationState & { kind: "binding" },
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  const { account } = state;
  switch (event.kind) {
    case "bind":
      return {
        state: { kind: "registering", account, answer: { iqId: event.iqId } },
        actions: [{ kind: "hold" }, { kind: "register", account, resource: event.resource }],
      };
    case "resume": {
      const { previd, h } = event;
      if (!terms.isManageable) return fail(state, "unsupported-stanza-type");
      if (previd === undefined || h === undefined) return managementFailure(state, "bad-request");
      return {
        state: { kind: "resuming", account, success: undefined },
        actions: [{ kind: "hold" }, { kind: "resume", account, previd, h, success: undefined }],
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
  terms: NegotiationTerms,
): NegotiationStep {
  const { account, success } = state;
  switch (event.kind) {
    case "resumed":
      return { state: { kind: "bound", jid: event.jid }, actions: [{ kind: "release" }] };
    case "resume-failed": {
      const { condition, h } = event;
      if (success !== undefined) {
        return bindInline(account, { ...success, failedResume: { condition, h } }, terms);
      }
      return {
        state: { kind: "binding", account },
        actions: [{ kind: "management-failure", condition, h }, { kind: "release" }],
      };
    }
    default:
      return fail(state, "policy-violation");
  }
}

/** Steps of a stream whose resource is being registered. */
export function registering(
  state: NegotiationState & { kind: "registering" },
  event: NegotiationEvent,
  terms: NegotiationTerms,
): NegotiationStep {
  const { account, answer } = state;
  switch (event.kind) {
    case "registered":
      return {
        state: { kind: "bound", jid: event.jid },
        actions: "iqId" in answer
          ? [{ kind: "bind-result", iqId: answer.iqId, jid: event.jid }, { kind: "release" }]
          : [
            { kind: "success2", jid: event.jid, success: answer.success },
            { kind: "send-features", features: boundFeatures(answer.success, terms, account) },
            { kind: "release" },
          ],
      };
    case "refused": {
      // XEP-0386 has no answer for it. The client is authenticated, and learns more when it binds anew.
      if ("success" in answer) return unbound(account, answer.success, terms);
      const error: NegotiationAction = {
        kind: "bind-error",
        iqId: answer.iqId,
        condition: event.condition,
      };
      return { state: { kind: "binding", account }, actions: [error, { kind: "release" }] };
    }
    default:
      return fail(state, "policy-violation");
  }
}

/** Returns the features of a stream with a resource: the client may still enable stream management. */
function boundFeatures(
  { bind }: PendingSuccess,
  terms: NegotiationTerms,
  account: BareJid,
): OfferedFeatures {
  const isManageable = terms.isManageable && bind?.enable === undefined;
  return { ...lastingFeatures(terms, account), isManageable };
}
