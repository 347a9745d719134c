import { z } from "@hono/zod-openapi";
import { TRACE_STEPS } from "../../distribution/mod.ts";
import { AMOUNT, COUNT, TIME } from "./answers.ts";

/** States of a trace at one node. */
export const NODE_TRACE_STATES = ["asked", "watching", "forbidden", "busy", "ended"] as const;

/** The first event of a trace. */
export const TRACE_BEGUN = z.object({
  address: z.string(),
  endsAt: TIME,
}).openapi("TraceBegun");

/** News of a trace at another node. */
export const TRACE_NODE = z.object({
  node: z.string(),
  datacenter: z.string(),
  state: z.enum(NODE_TRACE_STATES).openapi({
    description: "`asked`: no answer yet, as from a node of an older version; `forbidden`: its " +
      "configuration, or the address, does not allow it; `busy`: it has too many traces",
  }),
  missed: COUNT.openapi({ description: "Steps that it has not told, as there were too many" }),
}).openapi("TraceNode");

/** One step of one stanza at one node. */
export const TRACE_STEP = z.object({
  at: TIME,
  node: z.string(),
  datacenter: z.string(),
  stanza: z.string().openapi({ description: "Id of the stanza, the same at every node" }),
  kind: z.enum(["message", "presence", "iq"]),
  type: z.string(),
  from: z.string(),
  to: z.string(),
  bytes: COUNT.openapi({ description: "Length of the stanza. Its content is never shown" }),
  step: z.enum(TRACE_STEPS),
  text: z.string().openapi({ description: "The same in a sentence" }),
  place: z.string().optional().openapi({ description: "A datacenter or a node" }),
  source: z.string().optional().openapi({ description: "Part that knows or takes it" }),
  reason: z.string().optional(),
  lane: COUNT.optional(),
  number: COUNT.optional().openapi({ description: "Place in the lane" }),
  retry: COUNT.optional().openapi({ description: "The retry that comes next" }),
  waitMs: AMOUNT.optional(),
}).openapi("TraceStep");

/** Steps of a trace that its reader does not get. */
export const STEPS_MISSED = z.object({ steps: COUNT }).openapi("StepsMissed");

/** The last event of a trace. */
export const TRACE_ENDED = z.object({ address: z.string() }).openapi("TraceEnded");

export type TraceBegun = z.infer<typeof TRACE_BEGUN>;
export type TraceNode = z.infer<typeof TRACE_NODE>;
export type TraceStepAnswer = z.infer<typeof TRACE_STEP>;
