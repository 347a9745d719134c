import type { Config } from "../config/mod.ts";
import type { Envelope } from "../distribution/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { MucServer } from "../services/muc/mod.ts";
import { RoomServer } from "../services/muc_light/mod.ts";
import type { Stores } from "../storage/mod.ts";
import type { SessionRegistry } from "../xmpp/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that rooms use. The router is read when they use it. */
export interface RoomParts {
  readonly stores: Stores;
  readonly router: Router;
}

/** Parts that Multi-User Chat uses besides. */
export interface MucParts extends RoomParts {
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
}

/** Returns the domains of the rooms of the global host. */
export function roomDomainsOf({ mucLight, muc }: Config): readonly string[] {
  return [mucLight?.domain, muc?.domain].filter((domain) => domain !== undefined);
}

/** Makes the MUC Light rooms of the global host. Undefined where they are off. */
export function makeRooms(
  config: Config,
  parts: Surroundings & RoomParts,
): RoomServer<Envelope> | undefined {
  const { mucLight, globalDistrib } = config;
  if (mucLight === undefined) return undefined;
  const { domain, ...options } = mucLight;
  const store = parts.stores.rooms(globalDistrib.globalHost, domain);
  return new RoomServer({
    services: new Map([[domain, { options, store }]]),
    send: (message, settled) =>
      parts.router.accept(message, settled === undefined ? undefined : { settle: settled }),
    answer: (reply, request) => parts.router.answer(reply, request),
    metrics: parts.metrics,
    logger: parts.log,
    clock: parts.clock,
  });
}

/** Makes the Multi-User Chat rooms of the global host. Undefined where they are off. */
export function makeMuc(
  config: Config,
  parts: Surroundings & MucParts,
): MucServer<Envelope> | undefined {
  const { muc, globalDistrib } = config;
  if (muc === undefined) return undefined;
  const { domain, ...options } = muc;
  const { domains, sessions, table } = parts;
  return new MucServer({
    service: { domain, options, store: parts.stores.muc(globalDistrib.globalHost, domain) },
    localHost: globalDistrib.localHost,
    process: parts.process,
    isLocalHost: (host) => host === domains.localHost || domains.isOtherLocalHost(host),
    isHere: (jid) => sessions.find(jid) !== undefined,
    deliver: (to, stanza) => {
      const session = sessions.find(to);
      return session !== undefined && sessions.deliverTo(session, stanza) === "delivered";
    },
    send: (stanza, settled) =>
      parts.router.accept(stanza, settled === undefined ? undefined : { settle: settled }),
    answer: (reply, request) => parts.router.answer(reply, request),
    tell: (host, stanza) => parts.router.sendTo(host, stanza),
    hosts: () => table.hosts(),
    liveProcesses: (hosts) => table.liveProcesses(hosts),
    hasNeighbours: () => table.hasNeighbours,
    metrics: parts.metrics,
    logger: parts.log,
    clock: parts.clock,
  });
}
