import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import { createAdminApp } from "../admin_app.ts";
import type { AdminAppParts } from "../admin_app.ts";
import type { AdminDeps, AdminOptions } from "../admin_deps.ts";
import { AuditLog } from "../audit_log.ts";
import { EventHub } from "../events/event_hub.ts";
import { EventLog } from "../events/event_log.ts";
import { NO_TRACES, sampleActions, sampleSource } from "./sample_source.ts";

/** Returns the dependencies of the API of a node without any trouble; `parts` replace some. */
export function sampleDeps(parts: Partial<AdminDeps> = {}): AdminDeps {
  return {
    node: "node1@dc1.example.com",
    version: "1.2.3",
    metrics: new MetricsRegistry(new ManualClock()),
    parts: () => [],
    links: () => ({}),
    sessions: () => ({}),
    removeHost: () => Promise.resolve("removed"),
    source: sampleSource(),
    actions: sampleActions(),
    traces: NO_TRACES,
    events: new EventLog(() => 0),
    ...parts,
  };
}

/** Makes the hub of an application under test. */
export function hubOf(
  { events, source }: Pick<AdminDeps, "events" | "source">,
  clock = new ManualClock(),
): EventHub {
  return new EventHub({ log: events, overview: () => source.overview(), clock });
}

/** Makes the API without its port, its log, and a clock that stands still. */
export function sampleApp(
  deps: AdminDeps = sampleDeps(),
  options: Partial<Pick<AdminOptions, "host" | "token" | "tokens" | "certificates">> = {},
  { wrongTokens }: Pick<AdminAppParts, "wrongTokens"> = {},
) {
  const clock = new ManualClock(0);
  const log = new MemoryLogger();
  const audit = new AuditLog(log, clock);
  const hub = hubOf(deps, clock);
  const app = createAdminApp(deps, { host: "127.0.0.1", ...options }, {
    ...{ log, hub, audit, wrongTokens },
  });
  return { app, audit, clock, log };
}
