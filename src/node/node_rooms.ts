import type { Config } from "../config/mod.ts";
import type { Envelope } from "../distribution/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { MessageArchive } from "../services/archive/mod.ts";
import { MucServer } from "../services/muc/mod.ts";
import { CopyOrder, RoomServer } from "../services/muc_light/mod.ts";
import { RoomArchives } from "../services/rooms/mod.ts";
import type { RoomOutbox, RoomStore, Stores } from "../storage/mod.ts";
import type { FullJid, SessionRegistry, Stanza } from "../xmpp/mod.ts";
import type { LocalSide } from "./local_side.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that rooms use. The router is read when they use it. */
export interface RoomParts {
  readonly stores: Stores;
  readonly router: Router;
  readonly sessions: SessionRegistry;
}

/** Parts behind the order of messages. The last two are read when it uses them. */
export interface CopyOrderParts {
  readonly stores: { rooms(host: string, domain: string): Pick<RoomStore, "messages"> };
  local(): Pick<LocalSide, "deliverLate" | "deliverTo">;
  router(): Pick<Router, "returned" | "envelopCopy"> & {
    readonly memory: Pick<Router["memory"], "noteDelivered">;
  };
}

/** Options of the order of messages, as the configuration has them. */
export interface CopyOrderConfig {
  readonly mucLight?: Pick<NonNullable<Config["mucLight"]>, "domain"> | undefined;
  readonly globalDistrib: Pick<Config["globalDistrib"], "globalHost">;
}

/** Parts that Multi-User Chat uses besides. */
export interface MucParts extends Omit<RoomParts, "sessions"> {
  readonly sessions: Pick<SessionRegistry, "find" | "deliverTo">;
  readonly domains: Domains;
  readonly table: SessionTable;
  /** Undefined where no host has archives. */
  readonly archive: Pick<MessageArchive, "unclaimed"> | undefined;
  /** Undefined until they are made. */
  readonly links: Pick<LinkLayer, "localHosts"> | undefined;
}

/** Returns the domains of the rooms of the global host. */
export function roomDomainsOf({ mucLight, muc }: Config): readonly string[] {
  return [mucLight?.domain, muc?.domain].filter((domain) => domain !== undefined);
}

/** Makes the archives of the global host's rooms. Undefined where rooms or their archives are off. */
export function makeRoomArchives(
  config: Config,
  { stores, router, sessions, metrics, log, clock }: Surroundings & RoomParts,
): RoomArchives | undefined {
  const { mucLight, muc, roomArchives: options, globalDistrib: { globalHost }, redis } = config;
  const outboxes = new Map<string, RoomOutbox>();
  if (mucLight !== undefined) {
    outboxes.set(mucLight.domain, stores.rooms(globalHost, mucLight.domain));
  }
  if (muc !== undefined) outboxes.set(muc.domain, stores.muc(globalHost, muc.domain));
  if (options === undefined || outboxes.size === 0) return undefined;
  return new RoomArchives({
    options,
    outboxes,
    store: stores.roomArchives(globalHost),
    sweepWithinMs: redis.expireAfterMs,
    send: (to, message) => {
      const session = sessions.find(to);
      if (session !== undefined) return session.send(message);
      router.accept(message); // to a component
      return true;
    },
    metrics,
    logger: log,
    clock,
  });
}

/** Makes the MUC Light rooms of the global host. Undefined where they are off. */
export function makeRooms(
  config: Config,
  parts: Surroundings & RoomParts,
  archives: RoomArchives | undefined,
): RoomServer<Envelope> | undefined {
  const { mucLight, globalDistrib } = config;
  if (mucLight === undefined) return undefined;
  const { domain, ...options } = mucLight;
  const store = parts.stores.rooms(globalDistrib.globalHost, domain);
  return new RoomServer({
    services: new Map([[domain, { options, store, ...archives && { archives } }]]),
    send: (message, settled) =>
      parts.router.accept(message, settled === undefined ? undefined : { settle: settled }),
    answer: (reply, request) => parts.router.answer(reply, request),
    metrics: parts.metrics,
    logger: parts.log,
    clock: parts.clock,
  });
}

/** Makes the order of messages of MUC Light rooms at this node. Undefined where those are off. */
export function makeCopyOrder(
  { mucLight, globalDistrib: { globalHost } }: CopyOrderConfig,
  { stores, router, local, metrics, log, clock }:
    & Pick<Surroundings, "metrics" | "log" | "clock">
    & CopyOrderParts,
): CopyOrder<Envelope> | undefined {
  if (mucLight === undefined) return undefined;
  const store = stores.rooms(globalHost, mucLight.domain);
  return new CopyOrder<Envelope>({
    read: (room, page) => store.messages(room.text, page),
    give: (copy) => {
      if (local().deliverLate(copy)) return router().memory.noteDelivered(copy);
      router().returned(copy, "waited");
    },
    giveTo: (session, message) => local().deliverTo(session, message),
    giveMissing: (stanza) => local().deliverLate(router().envelopCopy(stanza)),
    drop: (copy) => {
      router().memory.noteDelivered(copy);
      copy.settle();
    },
    metrics,
    logger: log,
    clock,
  });
}

/**
 * Writes what a room of this node sends to a session here. Occupants write the content of messages, so
 * these pass the same check of ids as those that the router delivers (XEP-0359 §6).
 *
 * @returns false when this node has the session no longer
 */
export function deliverFromRoom(
  to: FullJid,
  stanza: Stanza,
  { sessions, archive }: Pick<MucParts, "sessions" | "archive">,
): boolean {
  const session = sessions.find(to);
  if (session === undefined) return false;
  const isMessage = stanza.kind === "message" && archive !== undefined;
  const clean = isMessage ? archive.unclaimed(stanza) : stanza;
  return sessions.deliverTo(session, clean) === "delivered";
}

/** Makes the Multi-User Chat rooms of the global host. Undefined where they are off. */
export function makeMuc(
  config: Config,
  parts: Surroundings & MucParts,
  archives: RoomArchives | undefined,
): MucServer<Envelope> | undefined {
  const { muc, globalDistrib } = config;
  if (muc === undefined) return undefined;
  const { domain, ...options } = muc;
  const { domains, sessions, table } = parts;
  return new MucServer({
    service: {
      domain,
      options,
      store: parts.stores.muc(globalDistrib.globalHost, domain),
      ...archives && { archives },
    },
    localHost: globalDistrib.localHost,
    process: parts.process,
    isLocalHost: (host) => host === domains.localHost || domains.isOtherLocalHost(host),
    isHere: (jid) => sessions.find(jid) !== undefined,
    isAway: (jid) => sessions.find(jid)?.isHibernating === true,
    deliver: (to, stanza) => deliverFromRoom(to, stanza, parts),
    send: (stanza, settled) =>
      parts.router.accept(stanza, settled === undefined ? undefined : { settle: settled }),
    sendToSessions: (messages, settled) =>
      parts.router.acceptForSessions(messages, { settle: settled }),
    answer: (reply, request) => parts.router.answer(reply, request),
    tell: (host, stanza) => parts.router.sendTo(host, stanza),
    hosts: () => table.hosts(),
    knownHosts: () => parts.links?.localHosts() ?? [],
    liveProcesses: (hosts) => table.liveProcesses(hosts),
    hasNeighbours: () => table.hasNeighbours,
    metrics: parts.metrics,
    logger: parts.log,
    clock: parts.clock,
  });
}
