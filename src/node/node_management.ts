import type { Config } from "../config/mod.ts";
import { Envelope, isUserHost } from "../distribution/mod.ts";
import type { Resumption } from "../distribution/resumption/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { MessageArchive } from "../services/archive/mod.ts";
import type { C2sSession } from "../xmpp/mod.ts";
import { StreamManagement } from "../xmpp/mod.ts";
import { managementOptions } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that stream management uses. The resumption is read when a client asks for it. */
export interface ManagementParts {
  readonly domains: Domains;
  readonly table: SessionTable;
  readonly router: Router;
  readonly resumption: Resumption | undefined;
  /** Undefined where no host has archives. */
  readonly archive: Pick<MessageArchive, "stamped"> | undefined;
}

/** Makes what all sessions with stream management share. Undefined when it is off. */
export function makeManagement(
  config: Config,
  parts: Surroundings & ManagementParts,
): StreamManagement<C2sSession> | undefined {
  const options = managementOptions(config);
  if (options === undefined) return undefined;
  const { domains, table, router, archive, metrics, clock, log } = parts;
  const { globalHost } = domains;
  return new StreamManagement<C2sSession>(options, {
    metrics,
    clock,
    log,
    process: parts.process,
    budget: parts.places.sessions,
    isUserHost: (domain) => isUserHost(domain, domains),
    // Where there is stream management, there is resumption.
    elsewhere: { fetch: (request, process) => parts.resumption!.fetch(request, process) },
    returned: (delivery, reason) => {
      // Only envelopes go back: the rest is what the session itself wrote to its client.
      if (delivery instanceof Envelope) router.returned(delivery, reason);
    },
    // The session's old node made the rest for its client.
    told: (delivery) =>
      delivery instanceof Envelope && delivery.stanza.kind === "message"
        ? archive?.stamped(delivery) ?? delivery.stanza
        : delivery.stanza,
    // No other datacenter serves another host.
    hasMoved: async (jid) => jid.domainpart === globalHost && await table.hasMoved(jid),
  });
}
