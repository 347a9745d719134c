import { OpenAPIHono } from "@hono/zod-openapi";
import { HTTPException } from "hono/http-exception";
import { describeError } from "../base/mod.ts";
import type { Logger } from "../observe/mod.ts";
import type { TokenHolder, WrongTokens } from "./access.ts";
import {
  admitLocally,
  isLoopbackHost,
  requireJson,
  requireLocalName,
  requireSameSite,
  requireToken,
} from "./access.ts";
import type { AdminDeps, AdminOptions, PartHealth } from "./admin_deps.ts";
import {
  ACTIONS_PATH,
  addActionRoutes,
  carryOut,
  noteMalformed,
  noteStrangers,
} from "./api/action_routes.ts";
import type { ActionOutcome } from "./api/admin_actions.ts";
import type { AdminApp, AdminEnv } from "./api/admin_env.ts";
import type { AuditLog } from "./audit_log.ts";
import { apiDocument } from "./api_document.ts";
import type { Page } from "./docs_page.ts";
import { docsPage } from "./docs_page.ts";
import { addDashboard } from "./dashboard_routes.ts";
import { addEventRoutes } from "./api/event_routes.ts";
import type { EventHub } from "./events/event_hub.ts";
import { addMeshRoutes } from "./api/mesh_routes.ts";
import { addPartsRoutes } from "./api/parts_routes.ts";
import { addPeopleRoutes } from "./api/people_routes.ts";
import { addStatusRoutes } from "./api/status_routes.ts";
import { addTraceRoutes } from "./api/trace_routes.ts";
import {
  HEALTH_ROUTE,
  INDEX_ROUTE,
  LINKS_ROUTE,
  LIVE_ROUTE,
  METRIC_ROUTE,
  METRICS_ROUTE,
  PROBED_READY_ROUTE,
  PROMETHEUS_ROUTE,
  READY_ROUTE,
  REMOVE_HOST_ROUTE,
  SESSIONS_ROUTE,
} from "./admin_routes.ts";

/** Parts of the API besides its sources. */
export interface AdminAppParts {
  readonly log: Logger;
  readonly hub: EventHub;
  readonly audit: AuditLog;
  readonly wrongTokens?: WrongTokens | undefined;
}

const BEARER = { type: "http", scheme: "bearer" } as const;
const CLIENT_CERTIFICATE = { type: "mutualTLS" } as const;

/** Makes the API as an application that answers requests, independent of the transport. */
export function createAdminApp(
  deps: AdminDeps,
  options:
    & Required<Pick<AdminOptions, "host">>
    & Pick<AdminOptions, "token" | "tokens" | "certificates">,
  { log, hub, audit, wrongTokens }: AdminAppParts,
): AdminApp {
  const app = new OpenAPIHono<AdminEnv>({
    defaultHook: (result, context) => {
      if (result.success) return;
      const problems = result.error.issues.map(({ path, message }) =>
        `${path.join(".")}: ${message}`
      );
      return context.json({ error: "bad-request", message: problems.join("; ") }, 400);
    },
  });
  app.use(async (context, next) => {
    await next();
    context.header("cache-control", "no-store");
    context.header("x-content-type-options", "nosniff");
  });
  app.use(noteStrangers(audit));
  if (isLoopbackHost(options.host)) app.use(requireLocalName());
  addPages(app, deps);
  addDashboard(app);
  app.use(requireSameSite());
  // Programs that probe a node have no token. They learn no more than by logging in, and no names.
  app.openapi(LIVE_ROUTE, (context) => context.json({ ok: true }, 200));
  app.openapi(PROBED_READY_ROUTE, (context) => {
    const ok = deps.parts().every((part) => part.state === "up");
    return context.json({ ok }, ok ? 200 : 503);
  });
  const holders = { tokens: holdersOf(options), certificates: options.certificates ?? [] };
  const isGuarded = holders.tokens.length > 0 || holders.certificates.length > 0;
  app.use(isGuarded ? requireToken(holders, wrongTokens) : admitLocally());
  app.use(`${ACTIONS_PATH}*`, noteMalformed(audit), requireJson());

  app.openapi(HEALTH_ROUTE, (context) => {
    return context.json({ node: deps.node, version: deps.version, parts: deps.parts() }, 200);
  });
  app.openapi(READY_ROUTE, (context) => {
    const reasons = deps.parts().filter((part) => part.state !== "up").map(reasonOf);
    const ready = reasons.length === 0;
    return context.json({ ready, reasons }, ready ? 200 : 503);
  });
  app.openapi(PROMETHEUS_ROUTE, async (context) => {
    const text = await deps.metrics.prometheus();
    return context.text(text, 200, { "content-type": deps.metrics.contentType });
  });
  app.openapi(METRICS_ROUTE, (context) => context.json(deps.metrics.classic(), 200));
  app.openapi(METRIC_ROUTE, (context) => {
    const { name } = context.req.valid("param");
    const metrics = deps.metrics.classic();
    const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
    if (metric !== undefined) return context.json(metric, 200);
    return context.json({ error: "not-found", message: `No metric is named ${name}` }, 404);
  });
  app.openapi(LINKS_ROUTE, (context) => context.json(deps.links(), 200));
  app.openapi(SESSIONS_ROUTE, (context) => context.json({ ...deps.sessions() }, 200));
  app.openapi(REMOVE_HOST_ROUTE, async (context) => {
    const { host } = context.req.valid("param");
    const outcome = await carryOut(
      context,
      { action: "remove-datacenter", role: "admin", target: host },
      { audit, act: async () => removalOf(host, await deps.removeHost(host)) },
    );
    if ("refusal" in outcome) {
      return context.json({ error: "forbidden", message: outcome.refusal }, 403);
    }
    if (!("failure" in outcome)) return context.json({ removed: host }, 200);
    const { failure, text: message } = outcome;
    switch (failure) {
      case "not-found":
        return context.json({ error: failure, message }, 404);
      case "conflict":
        return context.json({ error: "live", message }, 409);
      case "unavailable":
        return context.json({ error: failure, message }, 503);
      default:
        return failure satisfies never;
    }
  });
  addStatusRoutes(app, deps.source);
  addMeshRoutes(app, deps.source);
  addPeopleRoutes(app, deps.source);
  addPartsRoutes(app, deps.source);
  addEventRoutes(app, deps.source, { hub, log: deps.events });
  addTraceRoutes(app, { traces: deps.traces, audit });
  addActionRoutes(app, { source: deps.source, actions: deps.actions, audit });
  const schemes = [
    ...(holders.tokens.length === 0 ? [] : [["token", BEARER] as const]),
    ...(holders.certificates.length === 0 ? [] : [["certificate", CLIENT_CERTIFICATE] as const]),
  ];
  for (const [name, scheme] of schemes) {
    app.openAPIRegistry.registerComponent("securitySchemes", name, scheme);
  }
  const security = schemes.map(([name]) => name);
  app.get("/openapi.json", (context) => {
    return context.json(apiDocument(app, { version: deps.version, security }));
  });

  const paths = [...new Set(app.routes.filter(({ method }) => method !== "ALL").map(pathOf))]
    .sort();
  // Browsers get the dashboard at `/`.
  app.openapi(INDEX_ROUTE, (context) => {
    return context.json({ node: deps.node, version: deps.version, paths }, 200);
  });

  app.notFound((context) => {
    const methods = methodsAt(app, context.req.path);
    if (methods.length > 0) {
      context.header("allow", methods.join(", "));
      const message = `${context.req.method} is not possible here: ${methods.join(", ")}`;
      return context.json({ error: "method-not-allowed", message }, 405);
    }
    return context.json({ error: "not-found", message: `Nothing is at ${context.req.path}` }, 404);
  });
  app.onError((error, context) => {
    if (error instanceof HTTPException && error.status === 400) {
      return context.json({ error: "bad-request", message: "The body is no JSON" }, 400);
    }
    log.error("admin.failed", { path: context.req.path, error: describeError(error) });
    return context.json({ error: "internal", message: "The request failed; see the log" }, 500);
  });
  return app;
}

/** Adds the pages that anybody may see: they hold no data of this node. */
function addPages(app: AdminApp, deps: AdminDeps): void {
  let docs: Page | undefined;
  app.get("/docs", (context) => {
    const { version } = deps;
    docs ??= docsPage(apiDocument(app, { version, security: [] }));
    return context.html(docs.html, 200, { "content-security-policy": docs.policy });
  });
  for (const { path, contentType, body, headers = {} } of deps.pages ?? []) {
    app.get(
      path,
      (context) => context.body(body, 200, { "content-type": contentType, ...headers }),
    );
  }
}

function holdersOf(
  { token, tokens = [] }: Pick<AdminOptions, "token" | "tokens">,
): readonly TokenHolder[] {
  const admin = token === undefined ? [] : [{ name: "admin", role: "admin", token } as const];
  return [...admin, ...tokens];
}

function removalOf(
  host: string,
  outcome: Awaited<ReturnType<AdminDeps["removeHost"]>>,
): ActionOutcome {
  switch (outcome) {
    case "removed":
      return { outcome: "done", affected: 1, text: `${host} is removed` };
    case "unknown":
      return { failure: "not-found", text: `Nothing is known of ${host}` };
    case "live":
      return {
        failure: "conflict",
        text: `${host} is alive: a node of it is linked with this one`,
      };
    case "unavailable":
      return { failure: "unavailable", text: "Redis is away; try again" };
    default:
      return outcome satisfies never;
  }
}

function reasonOf({ name, state, reason }: PartHealth): string {
  return reason === undefined ? `${name} is ${state}` : `${name} is ${state}: ${reason}`;
}

function pathOf(route: { readonly path: string }): string {
  return route.path;
}

/** Returns the methods of `path`; empty when there is no such path. */
function methodsAt({ routes }: AdminApp, path: string): readonly string[] {
  const found = new Set<string>();
  for (const { method, path: pattern } of routes) {
    // Routes for all methods are middleware, not endpoints.
    if (method === "ALL" || !isMatch(pattern.split("/"), path.split("/"))) continue;
    found.add(method);
    if (method === "GET") found.add("HEAD");
  }
  return [...found].sort();
}

function isMatch(pattern: readonly string[], path: readonly string[]): boolean {
  return pattern.length === path.length &&
    pattern.every((part, i) => part.startsWith(":") ? path[i] !== "" : part === path[i]);
}
