import type { TakerStep, TransferEnd } from "../wire/mod.ts";

// One session on its way to another node, where its client has come back to, as the node sees it that
// has it (the taker's side is `taking_state.ts`):
//
//   covering --covered, waited--> sending --commit--> checking --still ours--> given --taken--> taken
//      |                            |                    |                      |                 |
//      +---declined, lost, late-----+--------------------+--> taken back        +--declined, peer +--all is
//      |                            |                    |                      |  gone           |  settled
//      +---session ended------------+--------------------+--> told              +--> given back   +--> over
//
// Up to `checking` the session is ours, and every end but its own takes it back. From `given` on it is
// not, whether the taker knows it or not: what it kept is either settled by the taker or routed again.

/** Where a transfer stands at the node that has the session. */
export type GivingState =
  /** What the client sent last has not met its fate yet. */
  | { readonly kind: "covering" }
  | { readonly kind: "sending" }
  /** The taker wants to have it: has somebody else logged in with its resource? */
  | { readonly kind: "checking" }
  | { readonly kind: "given"; readonly hasLeft: boolean }
  /** The taker has it; `hasLeft` once nothing reaches us for it any more. */
  | { readonly kind: "taken"; readonly hasLeft: boolean }
  | { readonly kind: "over" };

/** What can happen to it. */
export type GivingEvent =
  | { readonly kind: "covered" | "waited" }
  | { readonly kind: "have"; readonly step: TakerStep }
  | { readonly kind: "checked"; readonly isElsewhere: boolean }
  /** Too long without an end. */
  | { readonly kind: "late" }
  /** The link to the taker has ended, or there is one again. */
  | { readonly kind: "lost" | "linked" }
  /** The session is over, or somebody else has it. */
  | { readonly kind: "ended"; readonly reason: TransferEnd }
  /** Nothing reaches us for the session any more. */
  | { readonly kind: "left" }
  /** All that it kept is settled. */
  | { readonly kind: "settled" }
  /** The taker's process is no more, or, when that is not certain, has not been heard of for long. */
  | { readonly kind: "peer-gone"; readonly isCertain: boolean };

/** What the shell does, in order. */
export type GivingAction =
  /** Tells what the session is, and begins to send its queue. */
  | { readonly kind: "send-session" }
  /** Sends what the taker has room for. */
  | { readonly kind: "send-more" }
  | { readonly kind: "check" }
  | { readonly kind: "give" }
  | { readonly kind: "tell-given" }
  /** Stays reachable until the session table says where it is, then leaves. */
  | { readonly kind: "leave-when-known" }
  | { readonly kind: "leave" }
  | { readonly kind: "thaw" }
  | { readonly kind: "tell-end"; readonly reason: TransferEnd }
  /** Routes again what is not settled, once it has left. */
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
      // The taker asks again while it takes what has come meanwhile.
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

/** What takes a session back that has not been given. */
function stillOurs(state: GivingState, event: GivingEvent): GivingStep {
  switch (event.kind) {
    case "have":
      // "taken" of what was not given: the peer is mistaken, and has to give way.
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
        return { state: OVER, actions: [{ kind: "give-back", mayBeRepeat: false }] };
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
      // The taker answers what it knows: that it has the session, or that it does not.
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
