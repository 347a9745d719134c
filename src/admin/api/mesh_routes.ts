import { createRoute, z } from "@hono/zod-openapi";
import type { AdminApp } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { FAILURE, json } from "./answers.ts";
import {
  ALL_DATACENTER_LINKS,
  DATACENTER_DETAIL,
  DATACENTERS,
  ENDPOINTS,
  LANES,
  NODES,
} from "./mesh_schemas.ts";
import { PAGE_QUERY, pageOf } from "./paging.ts";
import { listRoute } from "./read_routes.ts";

/** Local host in a path or query, in any case. */
const DATACENTER_NAME = z.string().min(1).max(1023).toLowerCase().openapi({
  example: "dc2.example.com",
});

const OF_DATACENTER = PAGE_QUERY.extend({
  datacenter: DATACENTER_NAME.optional().openapi({ description: "Only those of this datacenter" }),
});

const DATACENTERS_ROUTE = listRoute("/api/v1/datacenters", {
  tag: "mesh",
  summary: "The datacenters of the mesh, this one first, and how this node is linked with them",
  query: PAGE_QUERY,
  answer: DATACENTERS,
  description: "The datacenters",
});

const DATACENTER_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/datacenters/{datacenter}",
  tags: ["mesh"],
  summary: "One datacenter with its endpoints and the lanes to it",
  request: { params: z.object({ datacenter: DATACENTER_NAME }) },
  responses: {
    200: json(DATACENTER_DETAIL, "The datacenter"),
    404: json(FAILURE, "No datacenter has this name"),
  },
});

const DATACENTER_LINKS_ROUTE = listRoute("/api/v1/datacenter-links", {
  tag: "mesh",
  summary: "The links between all datacenters, as each tells of its own: asks the other nodes",
  query: PAGE_QUERY,
  answer: ALL_DATACENTER_LINKS,
  description: "The datacenters with their links",
});

const NODES_ROUTE = listRoute("/api/v1/nodes", {
  tag: "mesh",
  summary: "The nodes of all datacenters",
  query: OF_DATACENTER,
  answer: NODES,
  description: "The nodes",
});

const ENDPOINTS_ROUTE = listRoute("/api/v1/endpoints", {
  tag: "mesh",
  summary: "The addresses of other nodes: enabled, connecting, disabled or paused, and why",
  query: OF_DATACENTER,
  answer: ENDPOINTS,
  description: "The endpoints",
});

const LANES_ROUTE = listRoute("/api/v1/lanes", {
  tag: "mesh",
  summary: "This node's links and their lanes: uptime, round-trip time, queue, last error",
  query: OF_DATACENTER,
  answer: LANES,
  description: "The lanes",
});

/** Adds the routes on datacenters, nodes, endpoints and lanes. */
export function addMeshRoutes(app: AdminApp, source: AdminSource): void {
  app.openapi(DATACENTERS_ROUTE, async (context) => {
    const range = context.req.valid("query");
    return context.json(pageOf(await source.datacenters(), range), 200);
  });
  app.openapi(DATACENTER_ROUTE, async (context) => {
    const { datacenter: name } = context.req.valid("param");
    const found = (await source.datacenters()).find(({ datacenter }) => datacenter === name);
    if (found === undefined) {
      return context.json({ error: "not-found", message: `No datacenter is named ${name}` }, 404);
    }
    return context.json({
      ...found,
      endpointList: source.endpoints(name),
      lanes: source.lanes(name),
    }, 200);
  });
  app.openapi(DATACENTER_LINKS_ROUTE, async (context) => {
    const range = context.req.valid("query");
    return context.json(pageOf(await source.datacenterLinks(), range), 200);
  });
  app.openapi(NODES_ROUTE, async (context) => {
    const { datacenter, ...range } = context.req.valid("query");
    const nodes = (await source.nodes())
      .filter((node) => datacenter === undefined || node.datacenter === datacenter);
    return context.json(pageOf(nodes, range), 200);
  });
  app.openapi(ENDPOINTS_ROUTE, (context) => {
    const { datacenter, ...range } = context.req.valid("query");
    return context.json(pageOf(source.endpoints(datacenter), range), 200);
  });
  app.openapi(LANES_ROUTE, (context) => {
    const { datacenter, ...range } = context.req.valid("query");
    return context.json(pageOf(source.lanes(datacenter), range), 200);
  });
}
