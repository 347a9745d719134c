import type { AdminApp } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { readRoute } from "./read_routes.ts";
import { STATUS } from "./status_schemas.ts";

const STATUS_ROUTE = readRoute("/api/v1/status", {
  tag: "status",
  summary: "The process: its build, its parts, its counts, and the progress of a drain",
  answer: STATUS,
  description: "The process as it is now",
});

/** Adds the routes on the process itself. */
export function addStatusRoutes(app: AdminApp, source: AdminSource): void {
  app.openapi(STATUS_ROUTE, (context) => context.json(source.status(), 200));
}
