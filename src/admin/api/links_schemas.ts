import { z } from "@hono/zod-openapi";
import { AMOUNT, COUNT } from "./answers.ts";

/** One link to an endpoint, with its lane. */
const LINK = z.object({
  lane: z.int(),
  state: z.enum(["idle", "waiting", "dialling", "connected", "open", "stopped"]),
  node: z.string().optional().openapi({ description: "Node at the other end" }),
  senders: COUNT.openapi({ description: "Senders bound to the lane" }),
  items: COUNT.openapi({ description: "Stanzas that the other side has not settled" }),
  waiting: COUNT.openapi({ description: "Those that are not written yet" }),
  bytes: COUNT.openapi({ description: "Memory allocated for them" }),
  unreceivedItems: COUNT.openapi({ description: "Those that the peer has not received" }),
  unreceivedBytes: COUNT.openapi({ description: "Bytes of their frames" }),
  unreceivedForMs: AMOUNT.optional().openapi({ description: "Age of the oldest of them" }),
  openForMs: AMOUNT.optional(),
  roundTripMs: AMOUNT.optional().openapi({ description: "Last measured round trip" }),
  timesOpened: COUNT,
  nextAttemptInMs: AMOUNT.optional(),
  isPaused: z.boolean().openapi({ description: "An operator keeps the link down" }),
  lastFailure: z.object({ reason: z.string(), detail: z.string(), agoMs: AMOUNT }).optional()
    .openapi({ description: "Why the link ended or could not be made the last time" }),
}).openapi("OutgoingLink");

/** Links to one destination. */
const LINKED_HOST = z.object({
  host: z.string().openapi({
    description: "Local host of a datacenter; under `cluster`, name of a node",
  }),
  openLinks: COUNT,
  senders: COUNT,
  parkedItems: COUNT.openapi({ description: "Stanzas that wait for an endpoint to appear" }),
  isPaused: z.boolean().openapi({ description: "An operator keeps all its links down" }),
  endpoints: z.array(z.object({
    endpoint: z.string().openapi({ example: "10.0.0.2#5555" }),
    state: z.enum(["enabled", "disabled", "closed"]),
    lanes: z.array(LINK).readonly(),
  })).readonly(),
}).openapi("LinkedHost");

/** A link that another node has made to this one. */
const INCOMING_LINK = z.object({
  host: z.string().optional().openapi({ description: "Absent until the peer has named itself" }),
  node: z.string().optional(),
  remoteAddress: z.string(),
  unsettled: COUNT.openapi({ description: "Stanzas from it that this node has not settled" }),
}).openapi("IncomingLink");

const LINK_LAYER = z.object({
  hosts: z.array(LINKED_HOST).readonly(),
  incoming: z.array(INCOMING_LINK).readonly(),
  rememberedLanes: COUNT.openapi({ description: "Lanes of peers that this node remembers" }),
});

/** This node's entries in the session table as they are sent to another datacenter. */
const OUTGOING_FEED = z.object({
  host: z.string(),
  state: z.enum(["silent", "asked", "following", "snapshot"]),
  via: z.string().optional().openapi({ description: "Node at the other end of the link in use" }),
  applied: COUNT.openapi({ description: "Last change that it has written" }),
  lag: z.int().openapi({ description: "Changes that it has not written" }),
  snapshotRecords: COUNT.openapi({ description: "Entries of a snapshot that is being sent" }),
}).openapi("OutgoingFeed");

/** Entries of the session table that come from a node of another datacenter. */
const INCOMING_FEED = z.object({
  host: z.string(),
  node: z.string(),
  state: z.enum(["silent", "locating", "following", "snapshot"]),
  applied: COUNT.openapi({ description: "Last of its changes that is written here" }),
  lag: COUNT.openapi({ description: "Its changes that are not written here" }),
  snapshotRecords: COUNT.openapi({ description: "Entries of a snapshot that has come so far" }),
}).openapi("IncomingFeed");

/** Links to other nodes, as the node keeps them. */
export const LINKS = z.object({
  // Absent until the node has begun to make links.
  ...LINK_LAYER.partial().shape,
  cluster: LINK_LAYER.openapi("ClusterLinks").optional().openapi({
    description: "Links to the other nodes of this datacenter",
  }),
  replication: z.object({
    lastNumber: COUNT.openapi({ description: "Number of this node's last change" }),
    out: z.array(OUTGOING_FEED).readonly(),
    in: z.array(INCOMING_FEED).readonly(),
    peers: z.array(z.object({ host: z.string(), endpoints: z.array(z.string()).readonly() }))
      .readonly().openapi({ description: "Last known endpoints of the other datacenters" }),
  }).optional().openapi({ description: 'Only with `redis.replication = "builtin"`' }),
}).openapi("Links");

export type Links = z.infer<typeof LINKS>;
