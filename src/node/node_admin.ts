import type { AdminServer, EventLog } from "../admin/mod.ts";
import { createAdmin } from "../admin/mod.ts";
import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import { adminTls } from "./admin/admin_tls.ts";
import { makeActions } from "./admin/node_actions.ts";
import { makeTraces } from "./admin/trace_view.ts";
import type { Tracing } from "../distribution/tracing/mod.ts";
import type { ActedParts, NodeControl } from "./admin/node_actions.ts";
import { makeSource } from "./admin/node_source.ts";
import type { NodeState, SourceParts } from "./admin/node_source.ts";
import type { TlsFiles } from "../net/mod.ts";
import { adminOptions } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Makes the admin API of a node. */
export function makeAdmin(
  config: Config,
  parts: Surroundings & SourceParts & ActedParts & {
    readonly events: EventLog;
    readonly tracing: Tracing;
  },
  state: NodeState & NodeControl,
): AdminServer {
  const { table, sessions, components, pressure, router, metrics, log, clock } = parts;
  const { tls } = config.listen.admin;
  return createAdmin(
    {
      node: config.nodeName,
      version: VERSION,
      metrics,
      parts: () => state.health(),
      links: () => ({
        ...parts.links?.snapshot(),
        cluster: parts.cluster?.snapshot(),
        replication: table.snapshot().replication,
      }),
      removeHost: (host) => table.removeHost(host.toLowerCase()),
      events: parts.events,
      traces: makeTraces(parts.tracing),
      source: makeSource(config, parts, state),
      actions: makeActions(parts, state, config.globalDistrib.localHost),
      sessions: () => ({
        sessions: sessions.count,
        components: components.count,
        heldBack: pressure.heldBack,
        bouncing: router.bouncing,
        waitingForLookup: router.queued,
      }),
    },
    adminOptions(config),
    {
      log,
      clock,
      tls: tls &&
        (async () => adminTls(await parts.certificates.load("listen.admin.tls", tlsFilesOf(tls)))),
      refused: (reason) => {
        metrics.counter({
          name: "causeway_connections_refused_total",
          help: "Connections turned away before they became a stream, by port and reason",
          labels: { port: "admin", reason },
        }).inc();
      },
    },
  );
}

function tlsFilesOf(
  { certfile, keyfile, cafile }: NonNullable<Config["listen"]["admin"]["tls"]>,
): TlsFiles {
  return { certfile, keyfile, ...(cafile !== undefined && { cafile }) };
}
