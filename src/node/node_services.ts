import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import { isUserHost } from "../distribution/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { HostServices } from "../services/mod.ts";
import type { IqService } from "../services/mod.ts";
import { privateStorage } from "../services/private/mod.ts";
import { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import { vcards } from "../services/vcard/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import type { SessionRegistry } from "../xmpp/mod.ts";
import type { LocalSide } from "./local_side.ts";
import { requestBounds, serviceBounds } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that the services of the node's hosts use. Each is read when they use it. */
export interface ServiceParts {
  readonly stores: Stores;
  readonly table: SessionTable;
  readonly local: LocalSide;
}

/** Makes the services that answer for this node's hosts and for its users' accounts. */
export function makeServices(config: Config, parts: Surroundings & ServiceParts): HostServices {
  const { metrics, log, clock } = parts;
  return new HostServices({
    software: { name: "Causeway", version: VERSION },
    hasModule: (host, module) => config.modules.get(host)?.[module] !== false,
    publicDomains: (host) => {
      const disco = config.modules.get(host)?.mod_disco;
      return disco !== undefined && disco !== false && disco.usersCanSeeHiddenServices
        ? parts.table.allDomains()
        : parts.table.publicDomains();
    },
    reply: (answer, request) => parts.local.answered(answer, request),
    services: storedServices(config, parts.stores),
    ...serviceBounds(config),
    metrics,
    logger: log,
    clock,
  });
}

/** Makes the services whose answers come from the stores. */
function storedServices({ modules }: Config, stores: Stores): readonly IqService[] {
  return [
    ...privateStorage({
      storeOf: (host) => stores.privateStorage(host),
      boundsOf: (host) => moduleOf(modules.get(host)?.mod_private),
    }),
    ...vcards({
      storeOf: (host) => stores.vcards(host),
      maxBytesOf: (host) => moduleOf(modules.get(host)?.mod_vcard).maxBytes,
    }),
  ];
}

/** Returns the options of a module that is on: nobody asks a service that is off. */
function moduleOf<T>(module: T | false | undefined): T {
  if (module === undefined || module === false) {
    throw new TypeError("Cannot use a module: it is off");
  }
  return module;
}

/** Parts that the keeper of requests uses. The last three are read when it uses them. */
export interface RequestParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
}

/** Makes the keeper of requests for subscriptions to this node's accounts (RFC 6121 §3.1.3). */
export function makeRequests(
  config: Config,
  parts: Surroundings & RequestParts,
): SubscriptionRequests {
  const { stores, accounts, domains, metrics, log, clock } = parts;
  const { maxBytes, ...bounds } = requestBounds(config);
  return new SubscriptionRequests({
    store: stores.subscriptionRequests(bounds),
    exists: async (jid) => await accounts.get(jid.domainpart)?.exists(jid.localpart) ?? false,
    isHere: (contact) => parts.sessions.ofAccount(contact).length > 0,
    locate: (contact) => parts.table.locate(contact),
    route: (request, kept, entry) => parts.router.acceptKept(request, kept, entry),
    deliver: (to, request) => parts.sessions.find(to)?.send(request) ?? false,
    senderOf: ({ text, domainpart }) =>
      isUserHost(domainpart, domains) || domains.isOtherLocalHost(domainpart) ? text : domainpart,
    maxBytes,
    metrics,
    logger: log,
    clock,
  });
}
