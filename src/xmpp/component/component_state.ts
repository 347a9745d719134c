import type { StreamErrorCondition } from "../stream_error.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import { checkStreamHeader } from "../stream/stream_header.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";

// A component's stream (XEP-0114 §3):
//
//   opening --header--> proving --handshake--> registering --registered--> open
//
//   any --end, error, timeout, wrong handshake, conflict--> closed

/** Where a component's stream stands. */
export type ComponentState =
  | { readonly kind: "opening" }
  | { readonly kind: "proving"; readonly domain: string }
  /** Input is held back. */
  | { readonly kind: "registering"; readonly domain: string }
  | { readonly kind: "open"; readonly domain: string }
  | { readonly kind: "closed" };

/** What can happen to it. */
export type ComponentEvent =
  | { readonly kind: "header"; readonly header: StreamHeader }
  | { readonly kind: "handshake"; readonly isRight: boolean }
  /** A message, presence or iq. */
  | { readonly kind: "stanza" }
  | { readonly kind: "foreign" }
  | { readonly kind: "registered" }
  | { readonly kind: "footer" }
  | { readonly kind: "fail"; readonly condition: StreamErrorCondition };

/** What the shell has to do, in order. */
export type ComponentAction =
  | { readonly kind: "send-header"; readonly domain: string | undefined }
  | { readonly kind: "hold" }
  | { readonly kind: "register"; readonly domain: string }
  | { readonly kind: "accept" }
  | { readonly kind: "release" }
  | { readonly kind: "refuse"; readonly domain: string }
  | { readonly kind: "stream-error"; readonly condition: StreamErrorCondition }
  | { readonly kind: "end" };

/** A new state and what to do about it. */
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
      return event.kind === "stanza"
        ? { state, actions: [] }
        : fail(state, unexpected(event, "unsupported-stanza-type"));
    default:
      return state satisfies never;
  }
}

function fail(state: ComponentState, condition: StreamErrorCondition): ComponentStep {
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
