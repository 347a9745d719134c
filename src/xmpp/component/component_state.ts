import type { StreamErrorCondition } from "../stream/stream_error.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import { checkStreamHeader } from "../stream/stream_header.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";

// A component's stream (XEP-0114 §3):
//
//   opening --header--> proving --handshake--> registering --registered--> open
//
//   open --dismiss--> ending: our side is closed, we still take what the component had written
//
//   any --end, error, timeout, wrong handshake, conflict--> closed

/** State of a component's stream. */
export type ComponentState =
  | { readonly kind: "opening" }
  | { readonly kind: "proving"; readonly domain: string }
  /** The registry is asked; input is held back. */
  | { readonly kind: "registering"; readonly domain: string }
  | { readonly kind: "open"; readonly domain: string }
  | { readonly kind: "ending" }
  | { readonly kind: "closed" };

/** Events of a component's stream. */
export type ComponentEvent =
  | { readonly kind: "header"; readonly header: StreamHeader }
  | { readonly kind: "handshake"; readonly isRight: boolean }
  /** A message, presence or iq. */
  | { readonly kind: "stanza" }
  | { readonly kind: "foreign" }
  | { readonly kind: "registered" }
  | { readonly kind: "footer" }
  /** The server ends the stream, and still reads what an accepted component has written. */
  | { readonly kind: "dismiss"; readonly condition: StreamErrorCondition }
  | { readonly kind: "fail"; readonly condition: StreamErrorCondition };

/** Actions of the shell, in order. */
export type ComponentAction =
  | { readonly kind: "send-header"; readonly domain: string | undefined }
  | { readonly kind: "hold" }
  | { readonly kind: "register"; readonly domain: string }
  | { readonly kind: "accept" }
  | { readonly kind: "release" }
  | { readonly kind: "refuse"; readonly domain: string }
  | { readonly kind: "stream-error"; readonly condition: StreamErrorCondition }
  /** Send the end of the stream, and keep reading. */
  | { readonly kind: "end-output" }
  /** Send the end of the stream, unless that was sent already, and close the connection. */
  | { readonly kind: "end" };

/** The next state and its actions. */
export interface ComponentStep {
  readonly state: ComponentState;
  readonly actions: readonly ComponentAction[];
}

/** Advances one component's stream by one event. Pure. */
export function stepComponent(
  state: ComponentState,
  event: ComponentEvent,
  hosts: (domain: string) => boolean,
): ComponentStep {
  if (state.kind === "closed") return { state, actions: [] }; // late input is normal at the end
  if (event.kind === "fail") return fail(state, event.condition);
  if (event.kind === "dismiss" && state.kind !== "open") return fail(state, event.condition);
  if (event.kind === "footer") return { state: { kind: "closed" }, actions: [{ kind: "end" }] };
  switch (state.kind) {
    case "opening": {
      if (event.kind !== "header") return fail(state, "bad-format");
      const checked = checkStreamHeader(event.header, {
        contentNamespace: COMPONENT_NAMESPACE,
        hasVersion: false,
        hosts,
      });
      return checked.ok
        ? {
          state: { kind: "proving", domain: checked.host },
          actions: [{ kind: "send-header", domain: checked.host }],
        }
        : fail(state, checked.condition);
    }
    case "proving":
      if (event.kind !== "handshake") return fail(state, unexpected(event, "not-authorized"));
      if (!event.isRight) {
        const { state: closed, actions } = fail(state, "not-authorized");
        return { state: closed, actions: [{ kind: "refuse", domain: state.domain }, ...actions] };
      }
      return {
        state: { kind: "registering", domain: state.domain },
        actions: [{ kind: "hold" }, { kind: "register", domain: state.domain }],
      };
    case "registering":
      return event.kind === "registered"
        ? {
          state: { kind: "open", domain: state.domain },
          actions: [{ kind: "accept" }, { kind: "release" }],
        }
        : fail(state, "policy-violation");
    case "open":
      if (event.kind === "dismiss") {
        return {
          state: { kind: "ending" },
          actions: [{ kind: "stream-error", condition: event.condition }, { kind: "end-output" }],
        };
      }
      return event.kind === "stanza"
        ? { state, actions: [] }
        : fail(state, unexpected(event, "unsupported-stanza-type"));
    case "ending":
      return event.kind === "stanza"
        ? { state, actions: [] }
        : fail(state, unexpected(event, "unsupported-stanza-type"));
    default:
      return state satisfies never;
  }
}

function fail(state: ComponentState, condition: StreamErrorCondition): ComponentStep {
  // After our end nothing may be written.
  if (state.kind === "ending") return { state: { kind: "closed" }, actions: [{ kind: "end" }] };
  const error: ComponentAction = { kind: "stream-error", condition };
  return {
    state: { kind: "closed" },
    actions: state.kind === "opening"
      ? [{ kind: "send-header", domain: undefined }, error, { kind: "end" }]
      : [error, { kind: "end" }],
  };
}

function unexpected(
  event: ComponentEvent,
  condition: StreamErrorCondition,
): StreamErrorCondition {
  return event.kind === "header" ? "bad-format" : condition;
}
