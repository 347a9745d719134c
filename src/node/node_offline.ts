import { randomBytes } from "node:crypto";
import type { Config } from "../config/mod.ts";
import { isUserHost } from "../distribution/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import { OfflineMessages } from "../services/offline/mod.ts";
import type { OfflineHostOptions } from "../services/offline/mod.ts";
import type { AccountCheck } from "../services/accounts/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import type { SessionRegistry } from "../xmpp/mod.ts";
import { creationOf, currentCheck, maySee } from "./node_services.ts";
import type { Surroundings } from "./surroundings.ts";
import type { WaitingBudget } from "./waiting_budget.ts";

/** Parts that offline messages use. The last three are read when a message comes. */
export interface OfflineParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly places: WaitingBudget["places"];
  readonly sessions: SessionRegistry;
  readonly rosters: RosterServer;
  readonly pep: PepServer;
  readonly router: Router;
  readonly accountCheck: AccountCheck;
}

/** Makes the messages that wait for accounts of this node's hosts (XEP-0160). */
export function makeOffline(config: Config, parts: Surroundings & OfflineParts): OfflineMessages {
  const { stores, accounts, domains, places, metrics, log, clock } = parts;
  const hosts = new Map<string, OfflineHostOptions>();
  for (const [host, { mod_offline: module }] of config.modules) {
    if (module !== false) hosts.set(host, module);
  }
  return new OfflineMessages({
    hosts,
    storeOf: (host) => stores.offlineMessages(host),
    creationOf: (account) => creationOf(account, accounts),
    maySee: (asker, account) => maySee(asker, account, parts),
    isUserHost: (domain) => isUserHost(domain, domains),
    hasRosters: (domain) => parts.rosters.serves(domain),
    sessionsOf: (account) => parts.sessions.ofAccount(account),
    isCurrent: (client) => currentCheck(client, "read", parts)(),
    revealed: (account) => parts.router.revealed(account),
    deliver: (to, message, { fate, number, sentAtMs }) => {
      const session = parts.sessions.find(to);
      if (session === undefined) return false;
      const envelope = parts.router.envelopKept(message, fate, number, sentAtMs);
      if (parts.sessions.refuses(to, message)) {
        // Its owner has blocked the sender. To refuse to keep it would have told the sender so.
        envelope.settle();
        return true;
      }
      if (!session.send(message, envelope)) return false;
      if (!envelope.isKept) envelope.settle(); // its client acknowledges nothing
      return true;
    },
    randomId: () => new Uint8Array(randomBytes(16)),
    budget: places.offline,
    metrics,
    logger: log,
    clock,
  });
}
