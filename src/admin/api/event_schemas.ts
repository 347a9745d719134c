import { z } from "@hono/zod-openapi";
import { AMOUNT, COUNT, TIME } from "./answers.ts";
import { pageSchema } from "./paging.ts";

/** Kinds of events at a node that an operator should see. */
export const EVENT_KINDS = [
  "link-up",
  "link-lost",
  "link-refused",
  "link-unreachable",
  "incoming-link-up",
  "incoming-link-lost",
  "endpoint-changed",
  "node-gone",
  "node-back",
  "node-left",
  "datacenter-found",
  "datacenter-forgotten",
  "datacenter-limit",
  "redis-up",
  "redis-down",
  "redis-lost-data",
  "database-up",
  "database-down",
  "certificate-expiring",
  "configuration-reloaded",
  "configuration-refused",
  "configuration-incomplete",
  "certificates-reloaded",
  "certificates-unusable",
  "clock-off",
  "clock-agrees",
  "memory-scarce",
  "node-ready",
  "node-stopping",
  "node-superseded",
  "action",
] as const;

/** Something that has happened at a node. */
export const EVENT = z.object({
  id: COUNT.openapi({
    description: "Grows by one with each event, and more with each start of the node",
  }),
  at: TIME,
  kind: z.enum(EVENT_KINDS),
  severity: z.enum(["info", "warning", "error"]),
  text: z.string().openapi({ description: "What happened, for people" }),
  datacenter: z.string().optional(),
  node: z.string().optional(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
}).openapi("Event");

/** One datacenter in an overview. */
const OVERVIEW_DATACENTER = z.object({
  datacenter: z.string(),
  isOwn: z.boolean(),
  state: z.enum(["own", "linked", "degraded", "paused", "unreachable"]),
  links: COUNT,
  openLinks: COUNT,
  roundTripMs: AMOUNT.optional(),
  heldItems: COUNT.openapi({ description: "Stanzas that its nodes have not settled" }),
  heldBytes: COUNT,
  sentTotal: COUNT.openapi({ description: "Stanzas sent to it since the process started" }),
  receivedTotal: COUNT,
  sentPerSec: AMOUNT,
  receivedPerSec: AMOUNT,
}).openapi("OverviewDatacenter");

/** Traffic between datacenters, at a glance. */
export const OVERVIEW = z.object({
  at: TIME,
  node: z.string(),
  datacenter: z.string(),
  ready: z.boolean(),
  isDraining: z.boolean(),
  sessions: COUNT,
  components: COUNT,
  bouncing: COUNT,
  waitingForLookup: COUNT,
  heldBack: COUNT,
  sentPerSec: AMOUNT.openapi({ description: "Stanzas to other datacenters" }),
  receivedPerSec: AMOUNT,
  datacenters: z.array(OVERVIEW_DATACENTER).readonly(),
}).openapi("Overview");

/** Events that a client does not get, as it reads too slowly. */
export const EVENTS_MISSED = z.object({ events: COUNT }).openapi("EventsMissed");

export const EVENTS = pageSchema(EVENT).openapi("Events");

export type AdminEvent = z.infer<typeof EVENT>;
export type AdminEventKind = AdminEvent["kind"];
export type Overview = z.infer<typeof OVERVIEW>;
export type OverviewDatacenter = z.infer<typeof OVERVIEW_DATACENTER>;
