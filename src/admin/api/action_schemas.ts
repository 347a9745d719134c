import { z } from "@hono/zod-openapi";
import { COUNT, TIME } from "./answers.ts";
import { pageSchema } from "./paging.ts";

/** Role of a caller: to read, to act on links and sessions too, or to do everything. */
export const ROLES = ["read", "act", "admin"] as const;

export type Role = typeof ROLES[number];

/** Actions of operators. */
export const ACTIONS = [
  "drain",
  "pause",
  "resume",
  "retry",
  "rebalance",
  "refresh",
  "drop-cache",
  "kick",
  "check-account",
  "reload",
  "remove-datacenter",
  "trace",
] as const;

export type Action = typeof ACTIONS[number];

/** Outcome of a reload. */
const RELOADED = z.object({
  changes: z.array(z.object({
    path: z.string().openapi({
      description: "Key path of a changed setting",
      example: "limits.stanza_rate_per_account",
    }),
    effect: z.enum(["now", "new", "restart"]).openapi({
      description:
        "`now`: it is in force; `new`: for connections, streams or links that begin from now on; " +
        "`restart`: only after a restart of the node",
    }),
  })),
  certificates: z.array(z.string()).openapi({
    description: "Key paths of the certificates that are others than before",
  }),
  pools: z.array(z.string()).openapi({
    description: "Pools of connections to databases that were replaced",
    example: ["rdbms.default"],
  }),
}).openapi("Reloaded");

/** Outcome of an action. */
export const RESULT = z.object({
  action: z.enum(ACTIONS),
  target: z.string().optional(),
  outcome: z.enum(["done", "nothing-to-do", "started"]),
  affected: COUNT.openapi({
    description: "Links, senders, entries, sessions or settings, by the action",
  }),
  text: z.string().openapi({ description: "The same in a sentence" }),
  reload: RELOADED.optional().openapi({ description: "Only of the action `reload`" }),
}).openapi("ActionResult");

/** An action in the audit log. */
export const AUDIT_ENTRY = z.object({
  id: COUNT,
  at: TIME,
  who: z.string().openapi({
    description: "Name of the token or certificate, `local`, `socket`, or `unknown`",
  }),
  role: z.enum(ROLES).optional().openapi({ description: "Absent for an unknown caller" }),
  from: z.string().openapi({ description: "Address of the caller" }),
  action: z.enum(ACTIONS),
  target: z.string().optional(),
  outcome: z.string().openapi({
    description:
      "`done`, `nothing-to-do`, `started`, `refused`, `malformed`, or the name of a failure",
  }),
  text: z.string(),
  count: COUNT.optional().openapi({
    description: "Refusals that share this entry, where unknown callers ask often",
  }),
}).openapi("AuditEntry");

export const AUDIT = pageSchema(AUDIT_ENTRY).openapi("Audit");

/** Owner of the token or certificate that a request carries. */
export const CALLER = z.object({
  who: z.string(),
  role: z.enum(ROLES),
}).openapi("Caller");

export type ActionResult = z.infer<typeof RESULT>;
export type AuditEntry = z.infer<typeof AUDIT_ENTRY>;
export type Caller = z.infer<typeof CALLER>;
