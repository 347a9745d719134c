import type { Config } from "../config/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { DEFAULT_PRIVACY_BOUNDS, PrivacyServer } from "../services/privacy/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { PrivacyStore, Stores } from "../storage/mod.ts";
import type { SessionRegistry } from "../xmpp/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that privacy lists use. All but the first two are read when a stanza comes. */
export interface PrivacyParts {
  readonly stores: Stores;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
  readonly rosters: RosterServer;
}

/** Makes the privacy lists and block lists of this node's hosts. */
export function makePrivacy(
  { modules }: Config,
  parts: Surroundings & PrivacyParts,
): PrivacyServer {
  const { stores, domains, metrics, log, clock } = parts;
  const lists = new Map<string, PrivacyStore>();
  for (const [host, { mod_blocking, mod_privacy }] of modules) {
    if (mod_blocking || mod_privacy !== false) lists.set(host, stores.privacyLists(host));
  }
  return new PrivacyServer({
    process: parts.process,
    hosts: {
      globalHost: domains.globalHost,
      localHost: domains.localHost,
      store: (domain) => lists.get(domain),
      rosters: (domain) => {
        const module = modules.get(domain)?.mod_roster;
        return module === undefined || module === false ? undefined : stores.rosters(domain);
      },
      bounds: (domain) => modules.get(domain)?.mod_privacy || DEFAULT_PRIVACY_BOUNDS,
    },
    everywhere: (accounts) => parts.table.sessionsOf(accounts),
    route: (stanza) => parts.router.accept(stanza),
    deliver: (to, stanza) => void parts.sessions.find(to)?.send(stanza),
    changed: (session, change) => parts.rosters.privacyChanged(session, change),
    metrics,
    log,
    clock,
  });
}
