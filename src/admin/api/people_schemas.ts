import { z } from "@hono/zod-openapi";
import { AMOUNT, COUNT, TIME } from "./answers.ts";
import { pageSchema } from "./paging.ts";

/** A client that is connected to this node, or may resume its session here. */
export const SESSION = z.object({
  jid: z.string(),
  state: z.enum(["open", "hibernating", "ending"]).openapi({
    description: "`hibernating`: without a connection; its client may resume it (XEP-0198)",
  }),
  isAvailable: z.boolean(),
  priority: z.int().min(-128).max(127).optional(),
  isManaged: z.boolean().openapi({ description: "It uses stream management (XEP-0198)" }),
  hasCarbons: z.boolean(),
  isConfidential: z.boolean().openapi({ description: "It came over TLS, or on loopback" }),
}).openapi("Session");

/** A component, or a domain that a datacenter serves. */
export const COMPONENT = z.object({
  domain: z.string(),
  datacenter: z.string(),
  isHere: z.boolean().openapi({ description: "It is connected to this node" }),
  isHidden: z.boolean(),
}).openapi("Component");

/** An address that stanzas wait for. */
export const BOUNCE = z.object({
  address: z.string(),
  stanzas: COUNT,
  bytes: COUNT,
  attempts: COUNT.openapi({ description: "Retries that the stanza with the most has used up" }),
  maxAttempts: COUNT,
  nextRetryInMs: AMOUNT.optional(),
  isLooking: z.boolean().openapi({ description: "A lookup is under way" }),
}).openapi("Bounce");

/** Location of an address, according to each place that may know. */
export const WHERE = z.object({
  jid: z.string().openapi({ description: "The address, normalised" }),
  account: z.string().optional().openapi({ description: "Its bare JID; absent for a domain" }),
  verdict: z.object({
    place: z.enum(["here", "datacenter", "nowhere", "unknown"]).openapi({
      description: "`here`: at this node; `datacenter`: at the one named; `unknown`: Redis " +
        "cannot be asked and nothing is cached",
    }),
    datacenter: z.string().optional(),
    nodes: z.array(z.string()).readonly(),
    source: z.enum(["local", "domain", "redis", "cache", "none"]).openapi({
      description: "Who says so; `domain`: the address's domain alone decides",
    }),
    text: z.string().openapi({ description: "The same in a sentence" }),
  }),
  local: z.object({
    sessions: z.array(SESSION).readonly(),
    isComponentHere: z.boolean(),
    bouncingStanzas: COUNT.openapi({ description: "Stanzas that wait for it at this node" }),
  }),
  cache: z.array(z.object({
    address: z.string(),
    datacenter: z.string().nullable().openapi({ description: "null: remembered as nowhere" }),
    ageMs: AMOUNT,
    expiresInMs: z.number().openapi({
      description: "Negative when it only counts while Redis is away",
    }),
  })).readonly(),
  redis: z.object({
    isReachable: z.boolean(),
    reason: z.string().optional(),
    tookMs: AMOUNT.optional(),
    keys: z.array(z.object({
      key: z.string(),
      datacenter: z.string().nullable(),
      expiresInMs: AMOUNT.optional().openapi({
        description: "Time until it expires, unless its datacenter renews it; whole seconds",
      }),
    })).readonly(),
    claims: z.array(z.object({
      datacenter: z.string(),
      node: z.string(),
      resource: z.string().openapi({ description: "Empty for a component" }),
      priority: z.int().optional(),
      since: TIME.openapi({ description: "Time of the login" }),
      ageMs: AMOUNT,
      isLive: z.boolean().openapi({ description: "Its node holds its lease" }),
    })).readonly(),
  }),
}).openapi("Where");

export const SESSIONS = pageSchema(SESSION).openapi("Sessions");
export const COMPONENTS = pageSchema(COMPONENT).openapi("Components");
export const BOUNCES = pageSchema(BOUNCE).extend({
  stanzas: COUNT.openapi({ description: "Stanzas that wait, over all addresses" }),
}).openapi("Bounces");

export type Session = z.infer<typeof SESSION>;
export type Component = z.infer<typeof COMPONENT>;
export type Bounce = z.infer<typeof BOUNCE>;
export type Where = z.infer<typeof WHERE>;
