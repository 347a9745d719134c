import type { TakerStep, TransferEnd } from "../wire/mod.ts";

// One session on its way to this node, whose client has come here:
//
//   asking --SESSION--> receiving --QUEUE, its end--> committing --GIVEN--> placing --placed--> taken
//     |  ^                 |                             |                    |                  |
//     |  +--END, moved--+  |                             |                    | no place         | END
//     |                 |  |                             |                    v                  v
//     +--gone-----------+--+--END, lost, late, stopped---+--> failed        over               over
//
// The client gets no answer before GIVEN: until then its old node owns the session, and from then on
// this one. Any end of the transfer in between is reported to the other node, which routes its kept
// stanzas again.

/** State of a transfer at the node that asked for it. */
export type TakingState =
  | { readonly kind: "asking"; readonly hops: number }
  | { readonly kind: "receiving" }
  | { readonly kind: "committing" }
  /** The session is ours, and is about to be registered and written to the table. */
  | { readonly kind: "placing" }
  | { readonly kind: "taken" }
  | { readonly kind: "over" };

/** Reason why a client does not get its session; the metrics' label `reason`. */
export type TakingFailure =
  | TransferEnd
  | "unreachable"
  | "lost"
  | "timeout"
  | "client-gone"
  | "stopped"
  | "too-large"
  | "refused"
  | "no-place";

/** Events of a transfer. */
export type TakingEvent =
  | { readonly kind: "session" }
  | { readonly kind: "queue"; readonly isEnd: boolean }
  | { readonly kind: "given" }
  | { readonly kind: "end"; readonly reason: TransferEnd }
  /** The session's node has sent an impossible frame. */
  | { readonly kind: "broken"; readonly reason: "too-large" | "refused" }
  /** The link to the session's node has ended. */
  | { readonly kind: "lost" }
  | { readonly kind: "late" }
  /** The client has gone again, or this node stops. */
  | { readonly kind: "gone" | "stopped" }
  | { readonly kind: "placed" | "unplaced" }
  /** Received stanzas were settled. */
  | { readonly kind: "news" };

/** Actions of the shell, in order. */
export type TakingAction =
  | { readonly kind: "tell"; readonly step: TakerStep }
  /** Asks the process that END has named. */
  | { readonly kind: "ask-on" }
  | { readonly kind: "arrive" }
  | { readonly kind: "fail"; readonly reason: TakingFailure };

export interface TakingStep {
  readonly state: TakingState;
  readonly actions: readonly TakingAction[];
}

/** Most nodes that may send us on: a session that moves faster cannot be caught. */
const MAX_HOPS = 4;

const OVER: TakingState = { kind: "over" };

/** Advances one transfer by one event. Pure: no clock, no link, no session. */
export function stepTaking(state: TakingState, event: TakingEvent): TakingStep {
  switch (state.kind) {
    case "asking":
      if (event.kind === "session") return { state: { kind: "receiving" }, actions: [] };
      if (event.kind === "end" && event.reason === "moved" && state.hops < MAX_HOPS) {
        return {
          state: { kind: "asking", hops: state.hops + 1 },
          actions: [{ kind: "ask-on" }],
        };
      }
      return event.kind === "queue" || event.kind === "given"
        ? failed("refused", true)
        : unplacedYet(state, event);
    case "receiving":
      if (event.kind === "queue") {
        return event.isEnd
          ? { state: { kind: "committing" }, actions: [{ kind: "tell", step: "commit" }] }
          : tell(state, "more");
      }
      return event.kind === "given" || event.kind === "session"
        ? failed("refused", true)
        : unplacedYet(state, event);
    case "committing":
      if (event.kind === "given") {
        return { state: { kind: "placing" }, actions: [{ kind: "arrive" }] };
      }
      if (event.kind === "queue") return tell(state, "commit");
      // Its old node may have given the session, and a client that goes comes back to it.
      if (event.kind === "gone") return { state, actions: [] };
      return event.kind === "session" ? failed("refused", true) : unplacedYet(state, event);
    case "placing":
      if (event.kind === "placed") {
        return { state: { kind: "taken" }, actions: [{ kind: "tell", step: "taken" }] };
      }
      if (event.kind === "unplaced") return failed("no-place", true);
      return event.kind === "queue" ? tell(state, "more") : { state, actions: [] };
    case "taken":
      return taken(state, event);
    case "over":
      return event.kind === "given" ? tell(state, "decline") : { state, actions: [] };
    default:
      return state satisfies never;
  }
}

function taken(state: TakingState, event: TakingEvent): TakingStep {
  switch (event.kind) {
    case "queue":
    case "news":
    case "given": // its node asks over a new link whether we have the session
      return tell(state, "taken");
    case "end":
      return { state: OVER, actions: [] };
    default:
      return { state, actions: [] };
  }
}

/** Answers events before the session is ours. */
function unplacedYet(state: TakingState, event: TakingEvent): TakingStep {
  switch (event.kind) {
    case "end":
      return failed(event.reason, false);
    case "lost":
      return failed("lost", true);
    case "late":
      return failed("timeout", true);
    case "gone":
      return failed("client-gone", true);
    case "stopped":
      return failed("stopped", true);
    case "broken":
      return failed(event.reason, true);
    default:
      return { state, actions: [] };
  }
}

function failed(reason: TakingFailure, isTold: boolean): TakingStep {
  const fail: TakingAction = { kind: "fail", reason };
  return { state: OVER, actions: isTold ? [{ kind: "tell", step: "decline" }, fail] : [fail] };
}

function tell(state: TakingState, step: TakerStep): TakingStep {
  return { state, actions: [{ kind: "tell", step }] };
}
