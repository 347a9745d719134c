import type { AdminServer, PartHealth } from "../admin/mod.ts";
import { createAdmin } from "../admin/mod.ts";
import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import type { Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { ComponentRegistry, SessionRegistry } from "../xmpp/mod.ts";
import { adminOptions } from "./options.ts";
import type { Pressure } from "./pressure.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that the admin API shows. The links are read with each request. */
export interface AdminParts {
  readonly table: SessionTable;
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  readonly pressure: Pressure;
  readonly router: Router;
  readonly links: LinkLayer | undefined;
  readonly cluster: LinkLayer | undefined;
}

/**
 * Makes the admin API of a node.
 * @param health returns the state of each part
 */
export function makeAdmin(
  config: Config,
  parts: Surroundings & AdminParts,
  health: () => readonly PartHealth[],
): AdminServer {
  const { table, sessions, components, pressure, router, metrics, log, clock } = parts;
  return createAdmin(
    {
      node: config.nodeName,
      version: VERSION,
      metrics,
      parts: health,
      links: () => ({
        ...parts.links?.snapshot(),
        cluster: parts.cluster?.snapshot(),
        replication: table.snapshot().replication,
      }),
      removeHost: (host) => table.removeHost(host.toLowerCase()),
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
