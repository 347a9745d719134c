import { createRoute, z } from "@hono/zod-openapi";
import { carryOut, TRACE_PATH } from "./action_routes.ts";
import type { ActionOutcome } from "./admin_actions.ts";
import type { AdminApp } from "./admin_env.ts";
import { FAILURE, json } from "./answers.ts";
import type { AuditLog } from "../audit_log.ts";
import { TraceStream } from "../events/trace_stream.ts";
import { STEPS_MISSED, TRACE_BEGUN, TRACE_ENDED, TRACE_NODE, TRACE_STEP } from "./trace_schemas.ts";
import type { TraceNode, TraceStepAnswer } from "./trace_schemas.ts";

/** Seconds of a trace, unless the caller says more. */
const DEFAULT_SECONDS = 600;
const MAX_SECONDS = 3_600;

/** Receiver of what a trace finds. */
export interface AdminTraceListener {
  step(step: TraceStepAnswer): void;
  node(node: TraceNode): void;
  /** Called once, last. @param missed steps that were too many */
  ended(missed: number): void;
}

/** Traces, as the API begins them. */
export interface AdminTraces {
  /** Returns the normalised form of an address; undefined when it is none. */
  addressOf(text: string): string | undefined;
  /** True while no more traces may begin. */
  readonly isFull: boolean;
  /** @returns undefined when there are too many traces */
  open(
    request: { readonly address: string; readonly forMs: number; readonly who: string },
    listener: AdminTraceListener,
  ): { readonly endsAtMs: number; stop(): void } | undefined;
}

const TRACE_ROUTE = createRoute({
  method: "get",
  path: `${TRACE_PATH}{jid}` as const,
  tags: ["events"],
  summary: "What becomes of each stanza from and to an address, at every node, as it happens",
  description: "Needs the role `act`, and is noted in the audit log. Server-sent events: " +
    "`event: begun` has a `TraceBegun` in `data`, `event: node` a `TraceNode`, `event: step` a " +
    "`TraceStep`. `event: missed` has a `StepsMissed`: how many steps there were too many. " +
    "`event: ended` has a `TraceEnded` and is the last one. `event: full`, with an empty object, " +
    "is the only one where other traces have taken the last place meanwhile. The trace ends by " +
    "itself, and when the caller hangs up.",
  request: {
    params: z.object({
      jid: z.string().min(1).max(3071).openapi({
        description: "A bare JID with all its resources, a full JID, or the domain of a component",
        example: "alice@example.com",
      }),
    }),
    query: z.object({
      for: z.coerce.number().int().min(1).max(MAX_SECONDS).default(DEFAULT_SECONDS).openapi({
        description: "Seconds after which the trace ends",
      }),
    }),
  },
  responses: {
    200: {
      description: "A stream that ends with the trace",
      content: { "text/event-stream": { schema: z.string() } },
    },
    400: json(FAILURE, "The request is malformed"),
    403: json(FAILURE, "The caller's role does not allow it"),
    503: json(FAILURE, "There are too many traces already"),
  },
});

const STREAM_HEADERS = { "content-type": "text/event-stream", "x-accel-buffering": "no" };

/** Parts that the route uses. */
export interface TraceParts {
  readonly traces: AdminTraces;
  readonly audit: AuditLog;
}

/** Adds the route by which operators follow an address. */
export function addTraceRoutes(app: AdminApp, { traces, audit }: TraceParts): void {
  app.openAPIRegistry.register("TraceBegun", TRACE_BEGUN);
  app.openAPIRegistry.register("TraceNode", TRACE_NODE);
  app.openAPIRegistry.register("TraceStep", TRACE_STEP);
  app.openAPIRegistry.register("StepsMissed", STEPS_MISSED);
  app.openAPIRegistry.register("TraceEnded", TRACE_ENDED);
  app.openapi(TRACE_ROUTE, async (context) => {
    const address = traces.addressOf(context.req.valid("param").jid);
    if (address === undefined) {
      return context.json({ error: "bad-request", message: "The address is no JID" }, 400);
    }
    const seconds = context.req.valid("query").for;
    const deed = { action: "trace", role: "act", target: address } as const;
    const isHead = context.req.method === "HEAD"; // nobody reads the body, so nothing begins
    const outcome = await carryOut(context, deed, {
      audit,
      act: (): ActionOutcome =>
        isHead
          ? { outcome: "nothing-to-do", affected: 0, text: "HEAD begins no trace" }
          : traces.isFull
          ? { failure: "unavailable", text: "There are too many traces already" }
          : { outcome: "started", affected: 1, text: `${address} is traced for ${seconds} s` },
    });
    if ("refusal" in outcome) {
      return context.json({ error: "forbidden", message: outcome.refusal }, 403);
    }
    if ("failure" in outcome) {
      return context.json({ error: outcome.failure, message: outcome.text }, 503);
    }
    if (isHead) return context.body(null, 200, STREAM_HEADERS);
    const caller = context.get("caller");
    const from = context.env?.remoteAddress ?? "";
    let stop: (() => void) | undefined;
    const stream = new TraceStream({
      began: (begun) => {
        const trace = traces.open({ address, forMs: seconds * 1000, who: caller.who }, {
          step: (step) => begun.step(step),
          node: (node) => begun.say("node", node),
          ended: (missed) => {
            begun.missed(missed);
            begun.say("ended", { address });
            begun.end();
          },
        });
        if (trace === undefined) return false;
        stop = () => trace.stop();
        begun.begun({ address, endsAt: new Date(trace.endsAtMs).toISOString() });
        return true;
      },
      ended: (told) => {
        stop?.();
        const text = `${told} steps of stanzas of ${address} were shown`;
        audit.add({ ...caller, from, action: "trace", target: address, outcome: "done", text });
      },
    });
    return context.body(stream.body, 200, STREAM_HEADERS);
  });
}
