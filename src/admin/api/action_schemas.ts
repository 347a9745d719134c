import { z } from "@hono/zod-openapi";
import { COUNT, TIME } from "./answers.ts";
import { pageSchema } from "./paging.ts";

/** What a caller may do: read, act on links and sessions too, or everything. */
export const ROLES = ["read", "act", "admin"] as const;

export type Role = typeof ROLES[number];

/** What operators can do. */
export const ACTIONS = [
  "drain",
  "pause",
  "resume",
  "retry",
  "rebalance",
  "refresh",
  "drop-cache",
  "kick",
  "reload",
  "remove-datacenter",
  "trace",
] as const;

export type Action = typeof ACTIONS[number];

/** Outcome of an action. */
export const RESULT = z.object({
  action: z.enum(ACTIONS),
  target: z.string().optional(),
  outcome: z.enum(["done", "nothing-to-do", "started"]),
  affected: COUNT.openapi({ description: "Links, senders, entries or sessions, by the action" }),
  text: z.string().openapi({ description: "The same in a sentence" }),
}).openapi("ActionResult");

/** An action in the audit log. */
export const AUDIT_ENTRY = z.object({
  id: COUNT,
  at: TIME,
  who: z.string().openapi({ description: "Name of the token or certificate, or `local`" }),
  role: z.enum(ROLES),
  from: z.string().openapi({ description: "Address of the caller" }),
  action: z.enum(ACTIONS),
  target: z.string().optional(),
  outcome: z.string().openapi({
    description: "`done`, `nothing-to-do`, `started`, `refused`, or the name of a failure",
  }),
  text: z.string(),
}).openapi("AuditEntry");

export const AUDIT = pageSchema(AUDIT_ENTRY).openapi("Audit");

/** Whose token or certificate a request carries. */
export const CALLER = z.object({
  who: z.string(),
  role: z.enum(ROLES),
}).openapi("Caller");

export type ActionResult = z.infer<typeof RESULT>;
export type AuditEntry = z.infer<typeof AUDIT_ENTRY>;
export type Caller = z.infer<typeof CALLER>;
