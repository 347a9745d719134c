import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { TokenHolder } from "../access.ts";
import { createAdmin } from "../admin_server.ts";
import type { AdminSource } from "../api/admin_source.ts";
import { EventLog } from "../events/event_log.ts";
import { modelMesh } from "./model_mesh.ts";
import { modelTraces } from "./model_traces.ts";
import { sampleDeps } from "./sample_app.ts";
import { sampleActions } from "./sample_source.ts";

/** Serves the API and the dashboard of a model on loopback, with one event in its log. */
export async function serveModel(
  mesh: number | AdminSource,
  { tokens = [], clock = new SystemClock(), calls = [] }: {
    readonly tokens?: readonly TokenHolder[];
    readonly clock?: Clock;
    /** Takes the actions that the page asks for. */
    readonly calls?: string[];
  } = {},
) {
  const events = new EventLog(() => clock.wallMs());
  events.add({
    kind: "link-lost",
    severity: "warning",
    text: "The link to node1@sto7.example.com is down: timeout",
    details: {},
  });
  const server = createAdmin(
    sampleDeps({
      source: typeof mesh === "number" ? modelMesh(mesh) : mesh,
      actions: sampleActions(calls),
      traces: modelTraces(),
      events,
    }),
    { port: 0, tokens },
    { clock },
  );
  await server.start();
  return {
    url: `http://${server.address}/`,
    events,
    [Symbol.asyncDispose]: () => server.close(),
  };
}
