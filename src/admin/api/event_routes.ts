import { createRoute, z } from "@hono/zod-openapi";
import { mayAct } from "../access.ts";
import type { AdminApp } from "./admin_env.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { EventLog } from "../events/event_log.ts";
import type { Caller } from "./action_schemas.ts";
import type { AdminSource } from "./admin_source.ts";
import { FAILURE, json } from "./answers.ts";
import type { AdminEvent } from "./event_schemas.ts";
import { EVENTS, EVENTS_MISSED, OVERVIEW } from "./event_schemas.ts";
import { PAGE_QUERY, pageOf } from "./paging.ts";

const OVERVIEW_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/overview",
  tags: ["events"],
  summary: "What flows where: rates, round-trip times and the state of the links",
  description: "A rate covers the time since the overview before, or since the start.",
  responses: { 200: json(OVERVIEW, "The overview") },
});

const EVENT_LOG_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/event-log",
  tags: ["events"],
  summary: "The last 500 events of this node, newest first",
  description: "Only the role `admin` gets events of the kind `action`.",
  request: { query: PAGE_QUERY },
  responses: { 200: json(EVENTS, "The events") },
});

const EVENTS_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/events",
  tags: ["events"],
  summary: "Overviews and events as they come, as server-sent events",
  description: "`event: overview` has an `Overview` in `data`, every two seconds. `event: event` " +
    "has an `Event`. `event: missed` has an `EventsMissed`: how many events this client was too " +
    "slow for. `event: full`, with an empty object, is the only one where other clients have " +
    "taken the last place meanwhile. The header `Last-Event-ID`, or `after`, asks for the events " +
    "after that one first. Only the role `admin` gets events of the kind `action`.",
  request: {
    query: z.object({
      after: z.coerce.number().int().min(0).optional().openapi({
        description: "Number of the last event that the client has; 0: all that are kept",
      }),
    }),
  },
  responses: {
    200: {
      description: "A stream without an end",
      content: { "text/event-stream": { schema: z.string() } },
    },
    503: json(FAILURE, "Too many clients listen already"),
  },
});

/** Parts that the routes on events use. */
export interface EventParts {
  readonly hub: EventHub;
  readonly log: EventLog;
}

/** Adds the routes on what happens. */
export function addEventRoutes(
  app: AdminApp,
  source: AdminSource,
  { hub, log }: EventParts,
): void {
  app.openAPIRegistry.register("EventsMissed", EVENTS_MISSED);
  app.openapi(OVERVIEW_ROUTE, (context) => context.json(source.overview(), 200));
  app.openapi(EVENT_LOG_ROUTE, (context) => {
    const range = context.req.valid("query");
    const shown = log.newest.filter(sightOf(context.get("caller")));
    return context.json(pageOf(shown, range), 200);
  });
  app.openapi(EVENTS_ROUTE, (context) => {
    const last = context.req.header("last-event-id");
    const isNumber = last !== undefined && /^\d{1,16}$/.test(last);
    const after = isNumber ? Number(last) : context.req.valid("query").after;
    const stream = hub.open(after, sightOf(context.get("caller")));
    if (stream === undefined) {
      return context.json({ error: "unavailable", message: "Too many clients listen" }, 503);
    }
    return context.body(stream.body, 200, {
      "content-type": "text/event-stream",
      "x-accel-buffering": "no",
    });
  });
}

/** Returns which events a caller may see: as with the audit log, actions are for the role `admin`. */
function sightOf(caller: Caller): (event: AdminEvent) => boolean {
  const seesActions = mayAct(caller, "admin");
  return ({ kind }) => seesActions || kind !== "action";
}
