import type { TakerStep, TransferEnd } from "../wire/mod.ts";

// One session on its way to another node, to which its client has come back, as seen by the node
// that has it (the taker's side is `taking_state.ts`):
//
//   covering --covered, waited--> sending --commit--> checking --still ours--> given --taken--> taken
//      |                            |                    |                      |                 |
//      +---declined, lost, late-----+--------------------+--> taken back        +--declined, peer +--all is
//      |                            |                    |                      |  gone           |  settled
//      +---session ended------------+--------------------+--> told              +--> given back   +--> over
//
// Up to `checking` the session is ours, and any end of the transfer but the session's own takes it
// back. From `given` on the session is the taker's, even before the taker knows it. Stanzas that
// were kept are settled by the taker or routed again.

/** State of a transfer at the node that has the session. */
export type GivingState =
  /** Waits until the client's latest stanzas are settled. */
  | { readonly kind: "covering" }
  | { readonly kind: "sending" }
  /** Waits, after COMMIT, for a check whether another client has logged in with its resource. */
  | { readonly kind: "checking" }
  | { readonly kind: "given"; readonly hasLeft: boolean }
  /** The taker has the session; `hasLeft` once no stanza reaches us for it any more. */
  | { readonly kind: "taken"; readonly hasLeft: boolean }
  | { readonly kind: "over" };

/** Events of a transfer. */
export type GivingEvent =
  | { readonly kind: "covered" | "waited" }
  | { readonly kind: "have"; readonly step: TakerStep }
  | { readonly kind: "checked"; readonly isElsewhere: boolean }
  /** The time for the transfer is over. */
  | { readonly kind: "late" }
  /** The link to the taker has ended, or there is a new one. */
  | { readonly kind: "lost" | "linked" }
  /** The session has ended, or another node has it. */
  | { readonly kind: "ended"; readonly reason: TransferEnd }
  /** No stanza reaches us for the session any more. */
  | { readonly kind: "left" }
  /** All stanzas that it kept are settled. */
  | { readonly kind: "settled" }
  /** The taker's process has ended, or, if that is not certain, was not heard of for long. */
  | { readonly kind: "peer-gone"; readonly isCertain: boolean };

/** Actions of the shell, in order. */
export type GivingAction =
  /** Sends the session's state, and begins to send its queue. */
  | { readonly kind: "send-session" }
  /** Sends as much as the taker has room for. */
  | { readonly kind: "send-more" }
  | { readonly kind: "check" }
  | { readonly kind: "give" }
  | { readonly kind: "tell-given" }
  /** Stays reachable until the session table names the new place, then leaves. */
  | { readonly kind: "leave-when-known" }
  | { readonly kind: "leave" }
  | { readonly kind: "thaw" }
  | { readonly kind: "tell-end"; readonly reason: TransferEnd }
  /**
   * Routes unsettled stanzas again, once the session has left. `mayBeRepeat`: the taker may still
   * deliver those that it was sent.
   */
  | { readonly kind: "give-back"; readonly mayBeRepeat: boolean };

export interface GivingStep {
  readonly state: GivingState;
  readonly actions: readonly GivingAction[];
}

const OVER: GivingState = { kind: "over" };

/** Advances one transfer by one event. Pure: no clock, no link, no session. */
export function stepGiving(state: GivingState, event: GivingEvent): GivingStep {
  switch (state.kind) {
    case "covering":
      if (event.kind === "covered" || event.kind === "waited") {
        return { state: { kind: "sending" }, actions: [{ kind: "send-session" }] };
      }
      return stillOurs(state, event);
    case "sending":
      if (event.kind === "have" && event.step === "more") return on(state, "send-more");
      if (event.kind === "have" && event.step === "commit") {
        return { state: { kind: "checking" }, actions: [{ kind: "check" }] };
      }
      return stillOurs(state, event);
    case "checking":
      if (event.kind === "checked") {
        return event.isElsewhere ? takenBack("ended") : {
          state: { kind: "given", hasLeft: false },
          actions: [{ kind: "give" }, { kind: "tell-given" }],
        };
      }
      // The taker sends HAVE again while it takes stanzas that came meanwhile.
      if (event.kind === "have" && event.step !== "decline" && event.step !== "taken") {
        return on(state, "send-more");
      }
      return stillOurs(state, event);
    case "given":
    case "taken":
      return given(state, event);
    case "over":
      return { state, actions: [] }; // late frames are normal
    default:
      return state satisfies never;
  }
}

/** Answers events before the session is given. */
function stillOurs(state: GivingState, event: GivingEvent): GivingStep {
  switch (event.kind) {
    case "have":
      // "taken" before GIVEN: the peer is mistaken, and must give the session up.
      if (event.step === "decline") return { state: OVER, actions: [{ kind: "thaw" }] };
      return event.step === "taken" ? takenBack("other") : { state, actions: [] };
    case "late":
      return takenBack("late");
    case "lost":
    case "peer-gone":
      return { state: OVER, actions: [{ kind: "thaw" }] };
    case "ended":
      return { state: OVER, actions: [{ kind: "tell-end", reason: event.reason }] };
    case "covered":
    case "waited":
    case "checked":
    case "linked":
    case "left":
    case "settled":
      return { state, actions: [] };
    default:
      return event satisfies never;
  }
}

function takenBack(reason: TransferEnd): GivingStep {
  return { state: OVER, actions: [{ kind: "thaw" }, { kind: "tell-end", reason }] };
}

function given(
  state: GivingState & { kind: "given" | "taken" },
  event: GivingEvent,
): GivingStep {
  switch (event.kind) {
    case "have":
      if (event.step === "decline") {
        // A taker that has had the session, and forgotten it since, may have delivered stanzas.
        const mayBeRepeat = state.kind === "taken";
        return { state: OVER, actions: [{ kind: "give-back", mayBeRepeat }] };
      }
      if (event.step !== "taken" || state.kind === "taken") return on(state, "send-more");
      return {
        state: { kind: "taken", hasLeft: state.hasLeft },
        actions: state.hasLeft
          ? [{ kind: "send-more" }]
          : [{ kind: "send-more" }, { kind: "leave-when-known" }],
      };
    case "ended":
      return on(state, "leave");
    case "left":
      return { state: { kind: state.kind, hasLeft: true }, actions: [] };
    case "settled":
      return state.kind === "taken" && state.hasLeft
        ? {
          state: OVER,
          actions: [{ kind: "give-back", mayBeRepeat: false }, {
            kind: "tell-end",
            reason: "done",
          }],
        }
        : { state, actions: [] };
    case "linked":
      // The taker answers whether it has the session or not.
      return on(state, "tell-given");
    case "peer-gone":
      return { state: OVER, actions: [{ kind: "give-back", mayBeRepeat: !event.isCertain }] };
    case "covered":
    case "waited":
    case "checked":
    case "late":
    case "lost":
      return { state, actions: [] };
    default:
      return event satisfies never;
  }
}

function on(state: GivingState, kind: "send-more" | "leave" | "tell-given"): GivingStep {
  return { state, actions: [{ kind }] };
}
