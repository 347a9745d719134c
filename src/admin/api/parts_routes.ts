import type { AdminApp } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { CERTIFICATES, CONFIGURATION, DATABASES } from "./parts_schemas.ts";
import { readRoute } from "./read_routes.ts";

const DATABASES_ROUTE = readRoute("/api/v1/databases", {
  tag: "parts",
  summary: "Redis, the databases and directories, and this node's connections to them",
  answer: DATABASES,
  description: "The databases in use",
});

const CERTIFICATES_ROUTE = readRoute("/api/v1/certificates", {
  tag: "parts",
  summary: "The certificates in use, and the days that are left",
  answer: CERTIFICATES,
  description: "The certificates",
});

const CONFIGURATION_ROUTE = readRoute("/api/v1/config", {
  tag: "parts",
  summary: "The configuration in force, with secrets hidden",
  answer: CONFIGURATION,
  description: "The configuration",
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
