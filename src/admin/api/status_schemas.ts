import { z } from "@hono/zod-openapi";
import { AMOUNT, COUNT, TIME } from "./answers.ts";

/** State of one part of the process. */
export const PART = z.object({
  name: z.string(),
  state: z.enum(["up", "degraded", "draining", "down"]),
  reason: z.string().optional(),
}).openapi("Part");

/** Progress of a graceful stop. */
export const DRAIN = z.object({
  isDraining: z.boolean(),
  step: z.string().optional().openapi({
    description: "What the node does now, such as `listeners`, `routing`, `lanes` or `streams`",
  }),
  startedAt: TIME.optional(),
  deadlineAt: TIME.optional().openapi({
    description: "The node ends by then, drained or not (`limits.shutdown_timeout`)",
  }),
  sessions: COUNT,
  stanzas: COUNT.openapi({ description: "Stanzas that still wait in lanes, lookups and bounces" }),
}).openapi("Drain");

/** The process, its build and its counts. */
export const STATUS = z.object({
  node: z.string(),
  datacenter: z.string().openapi({ description: "Local host of this node" }),
  datacenterId: z.string().optional().openapi({
    description: "Id of the datacenter, the same at all its nodes; absent until Redis was reached",
  }),
  globalHost: z.string(),
  hosts: z.array(z.string()).readonly(),
  build: z.object({
    version: z.string(),
    commit: z.string().optional(),
    runtime: z.string().openapi({ example: "deno 2.9.6" }),
    os: z.string().openapi({ example: "linux x86_64" }),
  }),
  startedAt: TIME,
  now: TIME,
  uptimeMs: AMOUNT,
  ready: z.boolean(),
  parts: z.array(PART).readonly(),
  counts: z.object({
    sessions: COUNT,
    components: COUNT,
    datacenters: COUNT.openapi({ description: "Other datacenters that are known" }),
    linkedDatacenters: COUNT,
    bouncing: COUNT,
    waitingForLookup: COUNT,
    heldBack: COUNT.openapi({ description: "Clients and components that are not read for now" }),
    cached: COUNT.openapi({ description: "Addresses in the cache" }),
  }),
  memory: z.object({
    residentBytes: COUNT,
    heapBytes: COUNT,
    waitingBytes: COUNT.openapi({ description: "Memory of waiting stanzas" }),
    waitingMaxBytes: COUNT,
  }),
  drain: DRAIN,
}).openapi("Status");

export type Part = z.infer<typeof PART>;
export type Drain = z.infer<typeof DRAIN>;
export type Status = z.infer<typeof STATUS>;
