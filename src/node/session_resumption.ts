import type { Clock, FairShares } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import { checkStanza } from "../distribution/links/mod.ts";
import { Resumption } from "../distribution/resumption/mod.ts";
import type { FreezableSessions, RepeatMemory } from "../distribution/resumption/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import { resumptionOptions } from "./options.ts";

/** Dependencies for moving sessions between nodes. */
export interface SessionResumptionParts {
  /** This process's incarnation. */
  readonly process: number;
  readonly sessions: FreezableSessions;
  readonly memory: RepeatMemory;
  /** Returns the links to other datacenters and within this one. Empty before they are made. */
  links(): readonly LinkLayer[];
  /** Returns the links to other datacenters, or undefined before they are made. */
  mesh(): LinkLayer | undefined;
  isOtherLocalHost(domain: string): boolean;
  isComponentDomain(domain: string): boolean;
  isOwnProcess(process: number): boolean;
  readonly budget: FairShares;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Makes the part that moves sessions to and from other nodes. Undefined when stream management is
 * off.
 */
export function sessionResumption(
  config: Config,
  parts: SessionResumptionParts,
): Resumption | undefined {
  const options = resumptionOptions(config);
  if (options === undefined) return undefined;
  const { globalHost, localHost } = config.globalDistrib;
  const { process, sessions, memory, budget, metrics, log, clock } = parts;
  return new Resumption(options, {
    process,
    localHost,
    sessions,
    memory,
    peers: {
      hasEnded: ({ process, host, nodeName }) => {
        const isOurs = host === localHost;
        const place = isOurs ? nodeName : host;
        // A third party may have told us where another datacenter listens, and it may be wrong.
        return parts.links().some((layer) =>
          layer.hasEnded(place, process) || (isOurs && layer.isGone(place))
        );
      },
      // The nodes of one datacenter call each other anyway, and `hasEnded` is enough for them.
      seemsEnded: ({ process, host }) =>
        host !== localHost && parts.mesh()?.isNowhere(host, process) === true,
      call: ({ host }) => {
        if (host !== localHost) parts.mesh()?.call(host);
      },
      // Accounts of hosts other than the global host belong to this datacenter alone.
      mayHave: (account, host) => host === localHost || account.endsWith(`@${globalHost}`),
      mayBring: (fields) =>
        checkStanza(fields, {
          globalHost,
          localHost,
          isOwnProcess: (each) => parts.isOwnProcess(each),
          isLocalHost: (domain) => domain === localHost || parts.isOtherLocalHost(domain),
          isComponentDomain: (domain) => parts.isComponentDomain(domain),
        }) === undefined,
    },
    budget,
    metrics,
    log,
    clock,
  });
}
