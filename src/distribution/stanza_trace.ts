import type { TraceContext } from "./trace_context.ts";

/**
 * Steps on a stanza's way through one node. The number on the wire is the index, so that the order
 * is part of the protocol and never changes.
 *
 * | step | meaning |
 * | --- | --- |
 * | `other` | a step that this build does not know |
 * | `accepted` | it entered the mesh here |
 * | `arrived` | another node sent it here, over a lane |
 * | `refused` | it arrived, and was refused before it was routed |
 * | `waiting` | it waits for its turn, a lookup or an archive |
 * | `looked-up` | the session table, or its cache, was asked for its recipient |
 * | `held` | it bounces: nothing is known of its recipient |
 * | `queued` | it is in a lane to another node |
 * | `moved` | it went on to another lane of the same destination |
 * | `written` | it was written to the link |
 * | `received` | the next node has it |
 * | `returned` | the place to which it was sent gave it back |
 * | `delivered` | a session, component or service here has it |
 * | `not-delivered` | nobody here takes it |
 * | `kept` | a session keeps it until its client acknowledges it |
 * | `acknowledged` | the client of a session acknowledged it |
 * | `stored` | an archive, or the store for offline messages, has it |
 * | `taken` | a service of this node goes on with it |
 * | `answered` | its sender gets an error |
 * | `dropped` | it ended, and its sender hears nothing |
 * | `settled` | its fate is final, as far as this node is concerned |
 */
export const TRACE_STEPS = [
  "other",
  "accepted",
  "arrived",
  "refused",
  "waiting",
  "looked-up",
  "held",
  "queued",
  "moved",
  "written",
  "received",
  "returned",
  "delivered",
  "not-delivered",
  "kept",
  "acknowledged",
  "stored",
  "taken",
  "answered",
  "dropped",
  "settled",
] as const;

export type TraceStep = typeof TRACE_STEPS[number];

/** Details of a step. Which ones there are depends on the step. */
export interface TraceDetails {
  /** Local host of a datacenter, or name of a node. */
  readonly place?: string | undefined;
  /** Part that knows or takes it, such as `cache`, `redis`, `archive`. */
  readonly source?: string | undefined;
  /** Reason in one or a few words, such as the condition of an error. */
  readonly reason?: string | undefined;
  /** Number of a lane; at least 1. */
  readonly lane?: number | undefined;
  /** Place of the stanza in the lane; at least 1. */
  readonly number?: number | undefined;
  /** Retry that comes next; at least 1. */
  readonly retry?: number | undefined;
  /** Milliseconds until something happens. */
  readonly waitMs?: number | undefined;
}

/** Notes the way of one stanza through this node, for somebody who follows it. */
export interface StanzaTrace {
  /** Place in a distributed trace, for stanzas that this one causes; undefined where it has none. */
  readonly context?: TraceContext | undefined;
  /** CONTEXT frame that a lane writes before the stanza; undefined where it has none. */
  readonly carried?: Uint8Array | undefined;
  note(step: TraceStep, details?: TraceDetails): void;
  /** Notes that the fate is final. The step comes behind those that are noted in the same moment. */
  settled(): void;
}
