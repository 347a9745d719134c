import { createRoute, z } from "@hono/zod-openapi";
import { HOSTS_PATH } from "./api/action_routes.ts";
import { FAILURE, json } from "./api/answers.ts";
import { LINKS } from "./api/links_schemas.ts";
import { PART } from "./api/status_schemas.ts";

const HEALTH = z.object({
  node: z.string(),
  version: z.string(),
  parts: z.array(PART).readonly(),
}).openapi("Health");

const READINESS = z.object({
  ready: z.boolean(),
  reasons: z.array(z.string()).readonly().openapi({
    description: "Reasons why the node is not ready",
  }),
}).openapi("Readiness");

const COUNTER = z.object({
  count: z.number(),
  ratePerSec: z.number().openapi({ description: "Over the last minute" }),
});

const METRIC = z.union([
  COUNTER.extend({
    min: z.number(),
    mean: z.number(),
    p50: z.number(),
    p95: z.number(),
    p99: z.number(),
    "p99.9": z.number(),
    max: z.number(),
  }),
  COUNTER,
  z.object({ value: z.number() }),
]).openapi("Metric");

export const HEALTH_ROUTE = createRoute({
  method: "get",
  path: "/health",
  summary: "State of the process and its parts",
  responses: { 200: json(HEALTH, "It lives") },
});

export const READY_ROUTE = createRoute({
  method: "get",
  path: "/ready",
  summary: "Readiness: whether clients may be sent to this node",
  responses: {
    200: json(READINESS, "Every part is up"),
    503: json(READINESS, "A part is degraded, draining or down"),
  },
});

const PROBE = z.object({ ok: z.boolean() }).openapi("Probe");

export const LIVE_ROUTE = createRoute({
  method: "get",
  path: "/livez",
  summary: "For a liveness probe, without a token",
  security: [],
  responses: { 200: json(PROBE, "It lives") },
});

export const PROBED_READY_ROUTE = createRoute({
  method: "get",
  path: "/readyz",
  summary: "Like `/ready`, for a readiness probe: without a token, and without reasons",
  security: [],
  responses: {
    200: json(PROBE, "Every part is up"),
    503: json(PROBE, "A part is degraded, draining or down"),
  },
});

export const PROMETHEUS_ROUTE = createRoute({
  method: "get",
  path: "/metrics",
  summary: "All metrics in Prometheus' text format",
  responses: {
    200: {
      description: "The metrics",
      content: { "text/plain": { schema: z.string() } },
    },
  },
});

export const METRICS_ROUTE = createRoute({
  method: "get",
  path: "/api/metrics",
  summary: "Metrics by their classic names; a histogram's unit is part of its name",
  responses: { 200: json(z.record(z.string(), METRIC), "The metrics") },
});

export const METRIC_ROUTE = createRoute({
  method: "get",
  path: "/api/metrics/{name}",
  summary: "One metric by its classic name",
  request: { params: z.object({ name: z.string() }) },
  responses: {
    200: json(METRIC, "The metric"),
    404: json(FAILURE, "No metric has this name"),
  },
});

export const LINKS_ROUTE = createRoute({
  method: "get",
  path: "/api/links",
  summary: "Links to other nodes: datacenters, endpoints and lanes with their state and counts",
  responses: { 200: json(LINKS, "The links") },
});

export const SESSIONS_ROUTE = createRoute({
  method: "get",
  path: "/api/sessions",
  summary: "Number of sessions and components connected here",
  responses: { 200: json(z.record(z.string(), z.number()), "The counts") },
});

export const REMOVE_HOST_ROUTE = createRoute({
  method: "delete",
  path: `${HOSTS_PATH}{host}` as const,
  summary: "Remove a datacenter that will not come back, so that nobody connects to it any more",
  request: { params: z.object({ host: z.string() }) },
  responses: {
    403: json(FAILURE, "The caller's role does not allow it"),
    200: json(
      z.object({ removed: z.string() }),
      "All nodes of this datacenter have forgotten it",
    ),
    404: json(FAILURE, "Nothing is known of it"),
    409: json(FAILURE, "A node of it is linked with this one"),
    503: json(FAILURE, "The session table cannot be written now"),
  },
});

export const INDEX_ROUTE = createRoute({
  method: "get",
  path: "/",
  summary: "List of the paths; for browsers, the dashboard",
  responses: {
    200: {
      description: "The paths, or the dashboard where `Accept` names `text/html`",
      content: {
        "application/json": {
          schema: z.object({ node: z.string(), version: z.string(), paths: z.array(z.string()) }),
        },
        "text/html": { schema: z.string() },
      },
    },
  },
});
