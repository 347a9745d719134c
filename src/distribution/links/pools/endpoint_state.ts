/**
 * State of one endpoint of a destination.
 *
 *     enabled --vanish--> disabled --collect, all its links dead--> closed
 *        ^                   |
 *        +------appear-------+
 */
export type EndpointState = "enabled" | "disabled" | "closed";

export type EndpointEvent =
  /** The session table lists it. */
  | { readonly kind: "appear" }
  /** The session table lists it no longer. */
  | { readonly kind: "vanish" }
  /** A round of the garbage collector. */
  | { readonly kind: "collect"; readonly isAnyLinkOpen: boolean };

/** Advances one endpoint by one event. */
export function stepEndpoint(state: EndpointState, event: EndpointEvent): EndpointState {
  switch (state) {
    case "enabled":
      return event.kind === "vanish" ? "disabled" : "enabled";
    case "disabled":
      if (event.kind === "appear") return "enabled";
      return event.kind === "collect" && !event.isAnyLinkOpen ? "closed" : "disabled";
    case "closed":
      return "closed"; // an endpoint that appears again gets a new pool
    default:
      return state satisfies never;
  }
}
