import type { Config } from "../config/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import { checkStanza } from "../distribution/links/mod.ts";
import { Resumption } from "../distribution/resumption/mod.ts";
import type { FreezableSessions } from "../distribution/resumption/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import { resumptionOptions } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that move sessions between nodes. The links are read when a session moves. */
export interface ResumptionParts {
  readonly domains: Domains;
  readonly table: SessionTable;
  readonly router: Router;
  /** Undefined when stream management is off. */
  readonly management: FreezableSessions | undefined;
  /** Links to other datacenters. */
  readonly links: LinkLayer | undefined;
  /** Links to the other nodes of this datacenter. */
  readonly cluster: LinkLayer | undefined;
}

/**
 * Makes the part that moves sessions to and from other nodes. Undefined when stream management is
 * off.
 */
export function makeResumption(
  config: Config,
  parts: Surroundings & ResumptionParts,
): Resumption | undefined {
  const options = resumptionOptions(config);
  const { domains, table, management, metrics, log, clock } = parts;
  if (options === undefined || management === undefined) return undefined;
  const { globalHost, localHost } = domains;
  return new Resumption(options, {
    process: parts.process,
    localHost,
    sessions: management,
    memory: parts.router.memory,
    peers: {
      hasEnded: ({ process, host, nodeName }) => {
        const isOurs = host === localHost;
        const place = isOurs ? nodeName : host;
        // A third party may have told us where another datacenter listens, and it may be wrong.
        const hasEnded = (layer: LinkLayer | undefined) =>
          layer !== undefined &&
          (layer.hasEnded(place, process) || (isOurs && layer.isGone(place)));
        return hasEnded(parts.links) || hasEnded(parts.cluster);
      },
      // The nodes of one datacenter call each other anyway, and `hasEnded` is enough for them.
      seemsEnded: ({ process, host }) =>
        host !== localHost && parts.links?.isNowhere(host, process) === true,
      call: ({ host }) => {
        if (host !== localHost) parts.links?.call(host);
      },
      claimedEpoch: (jid, process) => table.claimedEpoch(jid, process),
      // Accounts of hosts other than the global host belong to this datacenter alone.
      mayHave: (account, host) => host === localHost || account.endsWith(`@${globalHost}`),
      mayBring: (fields) =>
        checkStanza(fields, {
          globalHost,
          localHost,
          isOwnProcess: (process) => table.isOwnProcess(process),
          isLocalHost: (domain) => domain === localHost || domains.isOtherLocalHost(domain),
          isComponentDomain: (domain) => table.lastKnown(parseJid(domain)) !== undefined,
        }) === undefined,
    },
    budget: parts.places["arriving-sessions"],
    metrics,
    log,
    clock,
  });
}
