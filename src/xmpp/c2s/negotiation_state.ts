import { tryParseJid } from "../jid/jid_parser.ts";
import { bindsChannel } from "../sasl/mod.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import { CLIENT_NAMESPACE } from "../stream/namespaces.ts";
import { checkStreamHeader } from "../stream/stream_header.ts";
import { authenticating, offering } from "./authentication_state.ts";
import { creating } from "./creation_state.ts";
import { binding, bindingFeatures, registering, resuming } from "./binding_state.ts";
import type { NegotiationAction, NegotiationEvent } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationStep, NegotiationTerms } from "./negotiation_step.ts";
import { CLOSED, fail, offeredAt, unexpected } from "./negotiation_step.ts";

// A client's stream from its first byte to its end (RFC 6120 §4 to §7):
//
//   opening --header--> offering --starttls--> securing --secured--> opening
//                          |  ^                offering --create--> creating --created--> offering
//                        auth |failure
//                          v  |
//                     authenticating --success--> reopening --header--> binding
//                          |                                               |
//                          | success2 (or with bind, with resume:)         |
//                          +---------------------------------------------> +
//                                                                          |
//   closed <--end, error, timeout-- bound <--registered-- registering <--bind
//                                     ^                                    |
//                                     +--resumed-- resuming <---------resume
//
//   closed <--end, error, timeout-- ending <--dismiss-- bound
//
// A client logs in by RFC 6120 §6, or by XEP-0388 (`success2`). The second needs no new header, and may
// ask for its resource, or for the stream to resume, together with its login: it goes from authenticating
// straight to registering or resuming, and its `<success/>` waits until that is done.
//
// While the server works (authenticating with `isWaiting`, creating, registering, resuming) input is held back, so that
// what a client pipelines is read in its turn. While a stream is ending, our side of it is closed, but
// we still take what the client wrote before it learned of that (§4.4).

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
    case "creating":
      return creating(state, event);
    case "binding":
      return binding(state, event, terms);
    case "registering":
      return registering(state, event, terms);
    case "resuming":
      return resuming(state, event, terms);
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
        features: bindingFeatures(terms, account),
      }],
    };
  }
  const mechanisms = offeredAt(checked.host, terms.mechanisms, terms);
  if (terms.startTls === "none" && mechanisms.length === 0) {
    return failAfterHeader("policy-violation");
  }
  return {
    state: { kind: "offering", host: checked.host, failures: 0 },
    actions: [sendHeader, {
      kind: "send-features",
      features: {
        startTls: terms.startTls,
        mechanisms,
        channelBindings: mechanisms.some(bindsChannel) ? terms.channelBindings : [],
        sasl2: terms.hasSasl2
          ? {
            isManageable: terms.isManageable,
            hasCarbons: terms.hasCarbons?.(checked.host) === true,
            hasCsi: terms.hasCsi,
          }
          : undefined,
        isBindable: false,
        isManageable: false,
        hasCsi: false,
        isCreatable: terms.canCreate?.(checked.host) ?? false,
      },
    }],
  };
}
