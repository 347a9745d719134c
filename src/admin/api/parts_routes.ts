import { createRoute } from "@hono/zod-openapi";
import type { AdminApp } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { json } from "./answers.ts";
import { CERTIFICATES, CONFIGURATION, DATABASES } from "./parts_schemas.ts";

const DATABASES_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/databases",
  tags: ["parts"],
  summary: "Redis, the databases and directories, and this node's connections to them",
  responses: { 200: json(DATABASES, "The databases in use") },
});

const CERTIFICATES_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/certificates",
  tags: ["parts"],
  summary: "The certificates in use, and the days that are left",
  responses: { 200: json(CERTIFICATES, "The certificates") },
});

const CONFIGURATION_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/config",
  tags: ["parts"],
  summary: "The configuration in force, with secrets hidden",
  responses: { 200: json(CONFIGURATION, "The configuration") },
});

/** Adds the routes on databases, certificates and the configuration. */
export function addPartsRoutes(app: AdminApp, source: AdminSource): void {
  app.openapi(
    DATABASES_ROUTE,
    async (context) => context.json({ items: await source.databases() }, 200),
  );
  app.openapi(CERTIFICATES_ROUTE, (context) => context.json({ items: source.certificates() }, 200));
  app.openapi(CONFIGURATION_ROUTE, (context) => context.json(source.configuration(), 200));
}
