import { createRoute, z } from "@hono/zod-openapi";
import type { Context, MiddlewareHandler } from "hono";
import { mayAct } from "../access.ts";
import type { AuditLog } from "../audit_log.ts";
import type { Action, ActionResult, Role } from "./action_schemas.ts";
import { ACTIONS, AUDIT, CALLER, RESULT } from "./action_schemas.ts";
import type { ActionOutcome, AdminActions } from "./admin_actions.ts";
import type { AdminApp, AdminEnv } from "./admin_env.ts";
import type { AdminSource } from "./admin_source.ts";
import { FAILURE, json } from "./answers.ts";
import { PAGE_QUERY, pageOf } from "./paging.ts";
import { readRoute } from "./read_routes.ts";
import { DRAIN } from "./status_schemas.ts";

const DATACENTER = z.string().min(1).max(1023).openapi({ example: "dc2.example.com" });
const ADDRESS = z.string().min(1).max(3071).openapi({ example: "alice@example.com" });

const NOTHING = z.strictObject({});
const LINKS = z.strictObject({
  datacenter: DATACENTER,
  endpoint: z.string().min(1).max(512).optional().openapi({
    description: "Only the links to this endpoint",
    example: "10.0.0.2:5555",
  }),
});
const MAYBE_DATACENTER = z.strictObject({ datacenter: DATACENTER.optional() });

/** Beginning of the paths of actions. */
export const ACTIONS_PATH = "/api/v1/actions/";

/** Beginning of the paths of traces. */
export const TRACE_PATH = "/api/v1/trace/";

/** Beginning of the paths by which datacenters are removed. */
export const HOSTS_PATH = "/api/hosts/";

/** Describes an action. Its path is its name. */
function actionRoute<Name extends Action, Body extends z.ZodType>(
  name: Name,
  role: Role,
  { summary, body }: { readonly summary: string; readonly body: Body },
) {
  return createRoute({
    method: "post",
    path: `${ACTIONS_PATH}${name}` as const,
    tags: ["actions"],
    summary,
    description: `Needs the role \`${role}\`.`,
    request: { body: { required: true, content: { "application/json": { schema: body } } } },
    responses: {
      200: json(RESULT, "It is done, or there was nothing to do"),
      202: json(RESULT, "It has begun"),
      400: json(FAILURE, "The request is malformed"),
      403: json(FAILURE, "The caller's role does not allow it"),
      404: json(FAILURE, "The target does not exist"),
      409: json(FAILURE, "The state of the target does not allow it"),
      503: json(FAILURE, "It cannot be done now"),
    },
  });
}

const DRAIN_ACTION = actionRoute("drain", "admin", {
  summary: "Stop gracefully: hand over what is held here, then end the process",
  body: NOTHING,
});
const PAUSE = actionRoute("pause", "act", {
  summary: "Keep this node's links to a datacenter, or to one endpoint, down until `resume`",
  body: LINKS,
});
const RESUME = actionRoute("resume", "act", {
  summary: "End a pause",
  body: LINKS,
});
const RETRY = actionRoute("retry", "act", {
  summary: "Dial what is not connected now, without waiting for the next attempt",
  body: MAYBE_DATACENTER,
});
const REBALANCE = actionRoute("rebalance", "act", {
  summary: "Spread senders evenly over the lanes, as after an endpoint was added",
  body: MAYBE_DATACENTER,
});
const REFRESH = actionRoute("refresh", "act", {
  summary: "Write this node's entries in the session table anew",
  body: NOTHING,
});
const DROP_CACHE = actionRoute("drop-cache", "act", {
  summary: "Drop what the cache holds of an address, or of all, so that Redis is asked",
  body: z.strictObject({ jid: ADDRESS.optional() }),
});
const KICK = actionRoute("kick", "act", {
  summary: "End the sessions of a bare or full JID at this node; their clients may come back",
  body: z.strictObject({ jid: ADDRESS }),
});
const CHECK_ACCOUNT = actionRoute("check-account", "act", {
  summary: "Look up at all nodes with sessions of an account whether it still exists, as after " +
    "`causeway users remove`; if not, those sessions end",
  body: z.strictObject({ jid: ADDRESS }),
});
const RELOAD = actionRoute("reload", "admin", {
  summary: "Read the configuration and the certificates again, as SIGHUP does: all of it takes " +
    "effect, or nothing",
  body: NOTHING,
});

const DRAIN_ROUTE = readRoute("/api/v1/drain", {
  tag: "actions",
  summary: "Progress of a graceful stop",
  answer: DRAIN,
  description: "The progress; `isDraining` is false before the stop",
});

const AUDIT_ROUTE = createRoute({
  method: "get",
  path: "/api/v1/audit",
  tags: ["actions"],
  summary: "The last 500 actions: who did what, and the outcome",
  description:
    "Needs the role `admin`. The node's log has all of them, as `admin.action`. Besides, " +
    "there are the last 50 that were refused to unknown callers, of which ten a minute have an " +
    "entry of their own and the others share one.",
  request: { query: PAGE_QUERY },
  responses: {
    200: json(AUDIT, "The actions, newest first"),
    403: json(FAILURE, "The caller's role does not allow it"),
  },
});

const CALLER_ROUTE = readRoute("/api/v1/caller", {
  tag: "status",
  summary: "Whom this node takes the caller for, and the caller's role",
  answer: CALLER,
  description: "The caller",
});

/** Parts that the routes on actions use. */
export interface ActionParts {
  readonly source: AdminSource;
  readonly actions: AdminActions;
  readonly audit: AuditLog;
}

const STATUSES = { "not-found": 404, "conflict": 409, "unavailable": 503 } as const;

/** An action, and its target. */
interface Deed {
  readonly action: Action;
  readonly role: Role;
  readonly target?: string | undefined;
}

/** Adds the routes by which operators act. */
export function addActionRoutes(
  app: AdminApp,
  { source, actions, audit }: ActionParts,
): void {
  const perform = async (
    context: Context<AdminEnv>,
    deed: Deed,
    act: () => ActionOutcome | Promise<ActionOutcome>,
  ) => {
    const outcome = await carryOut(context, deed, { audit, act });
    if ("refusal" in outcome) {
      return context.json({ error: "forbidden", message: outcome.refusal }, 403);
    }
    if ("failure" in outcome) {
      const { failure, text } = outcome;
      return context.json({ error: failure, message: text }, STATUSES[failure]);
    }
    const { action, target } = deed;
    const result: ActionResult = { action, ...(target !== undefined && { target }), ...outcome };
    return context.json(result, outcome.outcome === "started" ? 202 : 200);
  };
  app.openapi(
    DRAIN_ACTION,
    (context) => perform(context, { action: "drain", role: "admin" }, () => actions.drain()),
  );
  app.openapi(PAUSE, (context) => {
    const links = context.req.valid("json");
    return perform(
      context,
      { action: "pause", role: "act", target: nameOf(links) },
      () => actions.pause(links),
    );
  });
  app.openapi(RESUME, (context) => {
    const links = context.req.valid("json");
    return perform(
      context,
      { action: "resume", role: "act", target: nameOf(links) },
      () => actions.resume(links),
    );
  });
  app.openapi(RETRY, (context) => {
    const { datacenter: target } = context.req.valid("json");
    return perform(
      context,
      { action: "retry", role: "act", target },
      () => actions.retry(target),
    );
  });
  app.openapi(REBALANCE, (context) => {
    const { datacenter: target } = context.req.valid("json");
    return perform(
      context,
      { action: "rebalance", role: "act", target },
      () => actions.rebalance(target),
    );
  });
  app.openapi(
    REFRESH,
    (context) => perform(context, { action: "refresh", role: "act" }, () => actions.refresh()),
  );
  app.openapi(DROP_CACHE, (context) => {
    const { jid: target } = context.req.valid("json");
    return perform(
      context,
      { action: "drop-cache", role: "act", target },
      () => actions.dropCache(target),
    );
  });
  app.openapi(KICK, (context) => {
    const { jid: target } = context.req.valid("json");
    return perform(context, { action: "kick", role: "act", target }, () => actions.kick(target));
  });
  app.openapi(CHECK_ACCOUNT, (context) => {
    const { jid: target } = context.req.valid("json");
    return perform(
      context,
      { action: "check-account", role: "act", target },
      () => actions.checkAccount(target),
    );
  });
  app.openapi(
    RELOAD,
    (context) => perform(context, { action: "reload", role: "admin" }, () => actions.reload()),
  );
  app.openapi(DRAIN_ROUTE, (context) => context.json(source.status().drain, 200));
  app.openapi(AUDIT_ROUTE, (context) => {
    if (!mayAct(context.get("caller"), "admin")) {
      return context.json({ error: "forbidden", message: refusalOf("admin") }, 403);
    }
    const range = context.req.valid("query");
    return context.json(pageOf(audit.newest, range), 200);
  });
  app.openapi(CALLER_ROUTE, (context) => context.json(context.get("caller"), 200));
}

/** Carries an action out if the caller may, and notes it in the audit log either way. */
export async function carryOut<T extends ActionOutcome>(
  context: Context<AdminEnv>,
  { action, role, target }: Deed,
  { audit, act }: { readonly audit: AuditLog; readonly act: () => T | Promise<T> },
): Promise<T | { readonly refusal: string }> {
  const caller = context.get("caller");
  const note = (outcome: string, text: string) =>
    audit.add({
      ...caller,
      from: context.env?.remoteAddress ?? "",
      action,
      ...(target !== undefined && { target }),
      outcome,
      text,
    });
  if (!mayAct(caller, role)) {
    const refusal = refusalOf(role);
    note("refused", refusal);
    return { refusal };
  }
  try {
    const outcome = await act();
    note("failure" in outcome ? outcome.failure : outcome.outcome, outcome.text);
    return outcome;
  } catch (thrown) {
    note("failed", "It failed; see the log");
    throw thrown;
  }
}

/** Notes actions that nobody carried out because the request for them is malformed. */
export function noteMalformed(audit: AuditLog): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    await next();
    const { req, res: { status } } = context;
    const action = actionAt(req.path);
    if (req.method !== "POST" || action === undefined || (status !== 400 && status !== 415)) return;
    audit.add({
      ...context.get("caller"),
      from: context.env?.remoteAddress ?? "",
      action,
      outcome: "malformed",
      text: "The request is malformed",
    });
  };
}

/** Reasons of a refusal before the caller is known, by the status of the answer. */
const REFUSALS: Readonly<Record<number, string>> = {
  401: "no token or certificate, or a wrong one",
  403: "the request comes from another site, or under a foreign name",
  429: "too many wrong tokens from this address",
};

/** Notes actions that were refused before the caller was known. */
export function noteStrangers(audit: AuditLog): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    await next();
    const { req: { method, path }, res: { status } } = context;
    const reason = REFUSALS[status];
    if (reason === undefined || context.get("caller") !== undefined) return;
    const action = method === "POST"
      ? actionAt(path)
      : method === "DELETE" && path.startsWith(HOSTS_PATH)
      ? "remove-datacenter"
      : (method === "GET" || method === "HEAD") && path.startsWith(TRACE_PATH)
      ? "trace"
      : undefined;
    if (action === undefined) return;
    // The caller has chosen the rest of the path, so it is not written down.
    audit.addStranger({
      action,
      from: context.env?.remoteAddress ?? "",
      text: `${method} ${routeOf(action)} was answered with ${status}: ${reason}`,
    });
  };
}

function actionAt(path: string): Action | undefined {
  return ACTIONS.find((name) => path === `${ACTIONS_PATH}${name}`);
}

function routeOf(action: Action): string {
  if (action === "trace") return `${TRACE_PATH}{jid}`;
  if (action === "remove-datacenter") return `${HOSTS_PATH}{host}`;
  return `${ACTIONS_PATH}${action}`;
}

function refusalOf(role: Role): string {
  return `This needs the role ${role}`;
}

function nameOf({ datacenter, endpoint }: z.infer<typeof LINKS>): string {
  return endpoint === undefined ? datacenter : `${datacenter} ${endpoint}`;
}
