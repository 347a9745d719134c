import type { GoodbyeReason, Hello } from "../../wire/mod.ts";
import { commonVersion } from "../../wire/mod.ts";
import { isCertifiedHost } from "./certified_host.ts";
import type { LinkScope } from "./link_scope.ts";

/**
 * State of one connection between two nodes, from the first byte to the last.
 *
 *     greeting --hello, all checks pass--> open --goodbye, leave--> closing --lost--> closed
 *        |                                  |                          ^
 *        +--hello refused, late, broken-----+--silent, broken----------+
 *
 * `closing` has said or heard GOODBYE and waits for the connection to end; later bytes are not
 * read.
 */
export type LinkState =
  | { readonly kind: "greeting"; readonly deadlineMs: number }
  | { readonly kind: "open"; readonly peer: LinkPeer; readonly askedMs: number }
  | { readonly kind: "closing"; readonly reason: CloseReason }
  | { readonly kind: "closed"; readonly reason: CloseReason };

/**
 * Reason why a link ended: GOODBYE's reason, or that it broke off (`lost`) or went quiet
 * (`silent`).
 */
export type CloseReason = GoodbyeReason | "lost" | "silent";

/** The peer after all checks. */
export interface LinkPeer extends Hello {
  /** Protocol version in use on the link. */
  readonly version: number;
}

export type LinkEvent =
  | {
    readonly kind: "hello";
    readonly hello: Hello;
    readonly nowMs: number;
    /** Datacenter id that other live links of this local host have claimed. */
    readonly knownDatacenterId: string | undefined;
  }
  | { readonly kind: "goodbye"; readonly reason: GoodbyeReason }
  | { readonly kind: "broken"; readonly reason: GoodbyeReason; readonly detail: string }
  | { readonly kind: "leave"; readonly reason: GoodbyeReason; readonly detail: string }
  | {
    readonly kind: "tick";
    readonly nowMs: number;
    /** Times when the peer and this side last sent anything. */
    readonly heardMs: number;
    readonly spokeMs: number;
  }
  | { readonly kind: "lost" };

export type LinkAction =
  | { readonly kind: "open"; readonly peer: LinkPeer }
  | { readonly kind: "ping" }
  | { readonly kind: "goodbye"; readonly reason: GoodbyeReason; readonly detail: string }
  /** Ends the connection in order. */
  | { readonly kind: "hang-up" }
  /** Ends the connection at once. */
  | { readonly kind: "drop" };

export interface LinkStep {
  readonly state: LinkState;
  readonly actions: readonly LinkAction[];
}

/** Demands of one side on the other. */
export interface LinkExpectations {
  readonly role: "dialler" | "acceptor";
  readonly scope: LinkScope;
  /** Local host that the dialler meant to reach. */
  readonly host: string | undefined;
  /** Node that the dialler meant to reach; undefined when any node of `host` will do. */
  readonly node: string | undefined;
  /** The lane that the dialler announced. */
  readonly lane: number | undefined;
  /** Names in the peer's verified certificate; undefined over plain TCP, which asks for none. */
  readonly peerNames: readonly string[] | undefined;
  readonly ourHost: string;
  /** Our own domains, which no other datacenter may use as its local host. */
  readonly ourHosts: ReadonlySet<string>;
  readonly ourNode: string;
  readonly silenceTimeoutMs: number;
  readonly pingIntervalMs: number;
}

/** Intervals after which the dialler sends PING however busy the link is. */
const BUSY_PINGS = 4;

/** Advances one link by one event. Pure: no clock, no socket, no logging. */
export function stepLink(state: LinkState, event: LinkEvent, expect: LinkExpectations): LinkStep {
  switch (state.kind) {
    case "greeting":
      return stepGreeting(state, event, expect);
    case "open":
      return stepOpen(state, event, expect);
    case "closing":
      return event.kind === "lost" ? closed(state.reason) : { state, actions: [] };
    case "closed":
      return { state, actions: [] }; // late frames are normal after hang-up
    default:
      return state satisfies never;
  }
}

function stepGreeting(
  state: LinkState & { kind: "greeting" },
  event: LinkEvent,
  expect: LinkExpectations,
): LinkStep {
  switch (event.kind) {
    case "hello": {
      const refusal = refuse(event.hello, event.knownDatacenterId, expect);
      if (refusal !== undefined) return sayGoodbye(refusal.reason, refusal.detail);
      const peer = { ...event.hello, version: commonVersion(event.hello)! };
      return {
        // A busy link too measures its round trip soon after it opened.
        state: {
          kind: "open",
          peer,
          askedMs: event.nowMs - (BUSY_PINGS - 1) * expect.pingIntervalMs,
        },
        actions: [{ kind: "open", peer }],
      };
    }
    case "tick":
      if (event.nowMs < state.deadlineMs) return { state, actions: [] };
      return sayGoodbye("timeout", "no HELLO in time");
    default:
      return stepAnywhere(event);
  }
}

function stepOpen(
  state: LinkState & { kind: "open" },
  event: LinkEvent,
  expect: LinkExpectations,
): LinkStep {
  switch (event.kind) {
    case "hello":
      return sayGoodbye("malformed", "a second HELLO");
    case "tick": {
      const quietMs = event.nowMs - event.heardMs;
      if (quietMs >= expect.silenceTimeoutMs) {
        return { state: { kind: "closing", reason: "silent" }, actions: [{ kind: "drop" }] };
      }
      // Only the dialler sends PING. It shows the acceptor that the dialler lives, even if the
      // acceptor writes all the time and hears nothing. On a busy link it measures the round trip.
      const leastMs = Math.min(event.heardMs, event.spokeMs);
      const isDue = event.nowMs - Math.max(leastMs, state.askedMs) >= expect.pingIntervalMs ||
        event.nowMs - state.askedMs >= BUSY_PINGS * expect.pingIntervalMs;
      if (expect.role !== "dialler" || !isDue) return { state, actions: [] };
      return { state: { ...state, askedMs: event.nowMs }, actions: [{ kind: "ping" }] };
    }
    default:
      return stepAnywhere(event);
  }
}

function stepAnywhere(event: Exclude<LinkEvent, { kind: "hello" | "tick" }>): LinkStep {
  switch (event.kind) {
    case "goodbye":
      return { state: { kind: "closing", reason: event.reason }, actions: [{ kind: "hang-up" }] };
    case "broken":
    case "leave":
      return sayGoodbye(event.reason, event.detail);
    case "lost":
      return closed("lost");
    default:
      return event satisfies never;
  }
}

function sayGoodbye(reason: GoodbyeReason, detail: string): LinkStep {
  return {
    state: { kind: "closing", reason },
    actions: [{ kind: "goodbye", reason, detail }, { kind: "hang-up" }],
  };
}

function closed(reason: CloseReason): LinkStep {
  return { state: { kind: "closed", reason }, actions: [] };
}

interface Refusal {
  readonly reason: GoodbyeReason;
  readonly detail: string;
}

function refuse(
  hello: Hello,
  knownDatacenterId: string | undefined,
  expect: LinkExpectations,
): Refusal | undefined {
  const { localHost } = hello;
  if (commonVersion(hello) === undefined) {
    return {
      reason: "version",
      detail:
        `no common version: the peer speaks ${hello.lowestVersion} to ${hello.highestVersion}`,
    };
  }
  if (expect.peerNames !== undefined && !isCertifiedHost(localHost, expect.peerNames)) {
    return { reason: "identity", detail: `the certificate does not name ${localHost}` };
  }
  if (expect.host !== undefined && localHost !== expect.host) {
    return { reason: "identity", detail: `meant to reach ${expect.host}, not ${localHost}` };
  }
  const misplaced = expect.scope === "mesh"
    ? refuseOwnHost(hello, expect)
    : refuseStranger(hello, expect);
  if (misplaced !== undefined) return misplaced;
  const { datacenterId } = hello;
  if (
    knownDatacenterId !== undefined && datacenterId !== "" && knownDatacenterId !== datacenterId
  ) {
    return { reason: "host-conflict", detail: `another datacenter is linked as ${localHost}` };
  }
  if (expect.lane !== undefined && hello.lane !== expect.lane) {
    return {
      reason: "malformed",
      detail: `HELLO for lane ${hello.lane} instead of ${expect.lane}`,
    };
  }
  return undefined;
}

/**
 * Refuses, between datacenters, a peer with our own local host or with one of our users' domains.
 */
function refuseOwnHost({ localHost }: Hello, expect: LinkExpectations): Refusal | undefined {
  if (localHost === expect.ourHost) {
    return { reason: "host-conflict", detail: `${localHost} is the local host of both sides` };
  }
  if (!expect.ourHosts.has(localHost)) return undefined;
  return { reason: "identity", detail: `${localHost} is one of our own hosts` };
}

/** Refuses, within a datacenter, all but its own nodes, each under its own name. */
function refuseStranger(hello: Hello, expect: LinkExpectations): Refusal | undefined {
  const { localHost, nodeName } = hello;
  if (localHost !== expect.ourHost) {
    return { reason: "identity", detail: `only nodes of ${expect.ourHost} may link here` };
  }
  if (nodeName === expect.ourNode) {
    return { reason: "host-conflict", detail: `${nodeName} is the name of both sides` };
  }
  if (expect.node !== undefined && nodeName !== expect.node) {
    return { reason: "identity", detail: `meant to reach ${expect.node}, not ${nodeName}` };
  }
  return undefined;
}

/** True for the orderly ends of a link; the others are counted as errors. */
export function isOrderlyEnd(reason: CloseReason): boolean {
  return reason === "leaving" || reason === "superseded" || reason === "endpoint-gone";
}
