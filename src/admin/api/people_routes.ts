import { createRoute, z } from "@hono/zod-openapi";
import type { AdminApp } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { FAILURE, json } from "./answers.ts";
import { PAGE_QUERY, pageOf, toAnswer } from "./paging.ts";
import { BOUNCES, COMPONENTS, SESSIONS, WHERE } from "./people_schemas.ts";
import { listRoute } from "./read_routes.ts";

/** The longest JID: three parts of 1023 bytes each, `@` and `/`. */
const MAX_JID_LENGTH = 3071;

const SESSIONS_ROUTE = listRoute("/api/v1/sessions", {
  tag: "people",
  summary: "The clients that are connected to this node",
  query: PAGE_QUERY.extend({
    account: z.string().min(1).max(MAX_JID_LENGTH).optional().openapi({
      description: "Only those of this bare JID",
      example: "alice@example.com",
    }),
  }),
  answer: SESSIONS,
  description: "The sessions, in the order in which they came",
});

const COMPONENTS_ROUTE = listRoute("/api/v1/components", {
  tag: "people",
  summary: "The components of all datacenters",
  query: PAGE_QUERY,
  answer: COMPONENTS,
  description: "The components",
});

const BOUNCE_ROUTE = listRoute("/api/v1/bounce", {
  tag: "people",
  summary: "The addresses that stanzas wait for at this node, as nobody knows where they are",
  query: PAGE_QUERY,
  answer: BOUNCES,
  description: "The addresses",
});

const WHERE_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/where/{jid}",
  tags: ["people"],
  summary: "Where an address is, according to this node, its cache, and Redis",
  request: {
    params: z.object({
      jid: z.string().min(1).max(MAX_JID_LENGTH).openapi({
        description: "A bare or full JID, or a domain; percent-encoded",
        example: "alice@example.com",
      }),
    }),
  },
  responses: {
    200: json(WHERE, "What each place says, and how old it is"),
    400: json(FAILURE, "This is no JID"),
  },
});

/** Adds the routes on sessions, components, bounces and places. */
export function addPeopleRoutes(app: AdminApp, source: AdminSource): void {
  app.openapi(SESSIONS_ROUTE, (context) => {
    const { account, ...range } = context.req.valid("query");
    return context.json(toAnswer(source.sessions(range, account), range), 200);
  });
  app.openapi(COMPONENTS_ROUTE, async (context) => {
    const range = context.req.valid("query");
    return context.json(pageOf(await source.components(), range), 200);
  });
  app.openapi(BOUNCE_ROUTE, (context) => {
    const range = context.req.valid("query");
    const page = source.bounces(range);
    return context.json({ ...toAnswer(page, range), stanzas: page.stanzas }, 200);
  });
  app.openapi(WHERE_ROUTE, async (context) => {
    const found = await source.where(context.req.valid("param").jid);
    if (found === undefined) {
      return context.json({ error: "bad-request", message: "The address is no JID" }, 400);
    }
    return context.json(found, 200);
  });
}
