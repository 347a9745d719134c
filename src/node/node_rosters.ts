import type { Config } from "../config/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { AccountCheck } from "../services/accounts/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import { RosterServer } from "../services/roster/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import type { RosterStore, Stores, UserStore } from "../storage/mod.ts";
import type { AccountFeature, SessionRegistry } from "../xmpp/mod.ts";
import { creationOf, currentCheck } from "./node_services.ts";
import { requestBounds, rosterBounds } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that rosters use. The last five are read when a stanza comes. */
export interface RosterParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly privacy: PrivacyServer;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
  readonly pep: PepServer;
  readonly accountCheck: AccountCheck;
}

/** Makes the rosters of this node's hosts, with their subscriptions and presence. */
export function makeRosters(config: Config, parts: Surroundings & RosterParts): RosterServer {
  const { stores, accounts, domains, metrics, log, clock } = parts;
  const { globalHost, localHost } = domains;
  const rosters = new Map<string, RosterStore>();
  for (const [host, { mod_roster: module }] of config.modules) {
    if (module !== false) rosters.set(host, stores.rosters(host));
  }
  return new RosterServer({
    process: parts.process,
    leaseMs: config.redis.expireAfterMs,
    hosts: {
      globalHost,
      localHost,
      store: (domain) => rosters.get(domain),
      isShared: (one, other) => stores.shareRosters(one, other),
      hasVersions: (domain) => rosterFeatures(config, domain).includes("roster-versions"),
    },
    sessions: {
      here: (account) => parts.sessions.ofAccount(account),
      all: () => parts.sessions.sessions(),
      hosts: () => parts.table.hosts(),
      liveProcesses: (hosts) => parts.table.liveProcesses(hosts),
      everywhere: (all) => parts.table.trySessionsOf(all),
    },
    routes: {
      route: (stanza) => parts.router.accept(stanza),
      sendTo: (host, stanza) => parts.router.sendTo(host, stanza),
      sendToNodes: (stanza) => parts.router.copy(stanza),
      deliver: (to, stanza) => parts.sessions.find(to)?.send(stanza) ?? false,
      offer: (to, stanza) => {
        const session = parts.sessions.find(to);
        return session !== undefined &&
          parts.sessions.deliverTo(session, stanza) === "delivered";
      },
    },
    privacy: {
      viewOf: (session) => parts.privacy.viewOf(session),
      refusesForAccount: (stanza) => parts.privacy.defaults.refusesForAccount(stanza),
      hiders: (all) => parts.privacy.defaults.hiders(all),
    },
    approved: (owner, contact) => parts.pep.approved(owner, contact),
    datacenterBack: () => parts.pep.datacenterBack(),
    creationOf: (account) => creationOf(account, accounts),
    isCurrent: (client, use) => currentCheck(client, use, parts),
    bounds: rosterBounds(config),
    maxRequestBytes: requestBounds(config).maxBytes,
    paced: parts.paced,
    metrics,
    log,
    clock,
  });
}

/** Returns the features of a host's rosters (RFC 6121 §2.6.1, §3.4). */
export function rosterFeatures(config: Config, host: string): readonly AccountFeature[] {
  const module = config.modules.get(host)?.mod_roster;
  if (module === undefined || module === false) return [];
  return module.hasVersions ? ["roster-versions", "pre-approval"] : ["pre-approval"];
}
