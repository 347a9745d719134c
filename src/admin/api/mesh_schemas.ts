import { z } from "@hono/zod-openapi";
import { AMOUNT, COUNT, TIME } from "./answers.ts";
import { pageSchema } from "./paging.ts";

/** The last reason why a link ended or could not be made. */
export const LINK_ERROR = z.object({
  reason: z.string().openapi({ example: "unreachable" }),
  detail: z.string(),
  at: TIME,
}).openapi("LinkError");

const SCOPE = z.enum(["mesh", "datacenter"]).openapi({
  description: "`mesh`: to another datacenter; `datacenter`: to another node of this one",
});

/** One of this node's links, with its lane. */
export const LANE = z.object({
  lane: z.int(),
  scope: SCOPE,
  datacenter: z.string(),
  endpoint: z.string().openapi({ example: "10.0.0.2:5555" }),
  node: z.string().optional().openapi({ description: "Node at the other end" }),
  state: z.enum(["open", "connecting", "waiting", "paused", "idle", "stopped"]),
  upSince: TIME.optional(),
  uptimeMs: AMOUNT.optional(),
  timesOpened: COUNT,
  roundTripMs: AMOUNT.optional().openapi({ description: "Last measured round trip" }),
  senders: COUNT.openapi({ description: "Senders bound to the lane" }),
  heldItems: COUNT.openapi({ description: "Stanzas that the other side has not settled" }),
  heldBytes: COUNT.openapi({ description: "Memory allocated for them" }),
  queuedItems: COUNT.openapi({ description: "Those that are not written yet" }),
  unacknowledgedItems: COUNT.openapi({
    description: "Those that the peer has not reported as received, written or not",
  }),
  unacknowledgedBytes: COUNT.openapi({ description: "Bytes of their frames" }),
  unacknowledgedForMs: AMOUNT.optional().openapi({ description: "Age of the oldest of them" }),
  lastError: LINK_ERROR.optional(),
  nextAttemptInMs: AMOUNT.optional(),
}).openapi("Lane");

/** One address of another node, and whether this node uses it. */
export const ENDPOINT = z.object({
  endpoint: z.string().openapi({ example: "10.0.0.2:5555" }),
  scope: SCOPE,
  datacenter: z.string(),
  node: z.string().optional(),
  state: z.enum(["enabled", "connecting", "disabled", "paused"]).openapi({
    description: "`enabled`: at least one link is open; `connecting`: it is listed, but no link " +
      "is open; `disabled`: it is no longer listed; `paused`: by an operator",
  }),
  reason: z.string().optional().openapi({ description: "Why it is not enabled" }),
  links: COUNT,
  openLinks: COUNT,
  heldItems: COUNT,
  lastError: LINK_ERROR.optional(),
}).openapi("Endpoint");

/** A datacenter of the mesh, as this node sees it. */
export const DATACENTER = z.object({
  datacenter: z.string().openapi({ description: "Its local host" }),
  isOwn: z.boolean(),
  state: z.enum(["own", "linked", "degraded", "paused", "unreachable"]).openapi({
    description: "`degraded`: some links are open and some are not; `unreachable`: none is open",
  }),
  reason: z.string().optional(),
  nodes: z.array(z.string()).readonly().openapi({
    description: "Nodes that hold a lease or are linked",
  }),
  endpoints: COUNT,
  links: COUNT,
  openLinks: COUNT,
  incomingLinks: COUNT.openapi({ description: "Links of its nodes to this node" }),
  roundTripMs: AMOUNT.optional().openapi({ description: "The shortest of its lanes" }),
  senders: COUNT,
  heldItems: COUNT,
  heldBytes: COUNT,
  parkedItems: COUNT.openapi({ description: "Stanzas that wait for an endpoint to appear" }),
  lastError: LINK_ERROR.optional(),
}).openapi("Datacenter");

/** A datacenter with its endpoints and lanes. */
export const DATACENTER_DETAIL = z.object({
  ...DATACENTER.shape,
  endpointList: z.array(ENDPOINT).readonly(),
  lanes: z.array(LANE).readonly(),
}).openapi("DatacenterDetail");

/** The links of all nodes of one datacenter to another one. */
const LINKS_TO = z.object({
  datacenter: z.string().openapi({ description: "Local host of the other datacenter" }),
  state: z.enum(["linked", "degraded", "paused", "unreachable"]),
  links: COUNT,
  openLinks: COUNT,
  roundTripMs: AMOUNT.optional().openapi({ description: "The shortest of them" }),
  sentPerSec: AMOUNT.optional().openapi({
    description: "Stanzas to it, between the last two answers; absent after the first",
  }),
  receivedPerSec: AMOUNT.optional().openapi({ description: "Stanzas from it" }),
}).openapi("LinksTo");

/** Troubles that a node tells of itself. */
const TROUBLE = z.object({
  node: z.string(),
  trouble: z.enum(["redis-away", "stopping"]),
}).openapi("Trouble");

/** A datacenter, and its links to others as its own nodes tell of them. */
export const DATACENTER_LINKS = z.object({
  datacenter: z.string(),
  isOwn: z.boolean(),
  nodes: COUNT.openapi({ description: "Nodes of it that this node has asked" }),
  answers: COUNT.openapi({
    description: "Nodes that have told of their links in the last 15 seconds; without any, the " +
      "state of the links is not known",
  }),
  ageMs: AMOUNT.optional().openapi({ description: "Age of the oldest of these answers" }),
  links: z.array(LINKS_TO).readonly(),
  troubles: z.array(TROUBLE).readonly().openapi({
    description: "What its nodes say to be wrong with themselves",
  }),
}).openapi("DatacenterLinks");

/** A node of any datacenter. */
export const NODE = z.object({
  node: z.string(),
  datacenter: z.string(),
  isSelf: z.boolean(),
  hasLease: z.boolean().openapi({
    description: "The session table lists it as alive, as last read",
  }),
  openLinks: COUNT.openapi({ description: "Open links of this node to it" }),
  incomingLinks: COUNT.openapi({ description: "Open links of it to this node" }),
  remoteAddresses: z.array(z.string()).readonly(),
}).openapi("Node");

export const DATACENTERS = pageSchema(DATACENTER).openapi("Datacenters");
export const ALL_DATACENTER_LINKS = pageSchema(DATACENTER_LINKS).openapi("AllDatacenterLinks");
export const NODES = pageSchema(NODE).openapi("Nodes");
export const ENDPOINTS = pageSchema(ENDPOINT).openapi("Endpoints");
export const LANES = pageSchema(LANE).openapi("Lanes");

export type LinkError = z.infer<typeof LINK_ERROR>;
export type LaneState = z.infer<typeof LANE>;
export type Endpoint = z.infer<typeof ENDPOINT>;
export type Datacenter = z.infer<typeof DATACENTER>;
export type DatacenterDetail = z.infer<typeof DATACENTER_DETAIL>;
export type DatacenterLinks = z.infer<typeof DATACENTER_LINKS>;
export type LinksTo = z.infer<typeof LINKS_TO>;
export type MeshNode = z.infer<typeof NODE>;
