import type { Config } from "../config/mod.ts";
import type { StanzaTracer } from "../distribution/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import type { Resumption } from "../distribution/resumption/mod.ts";
import type { Domains } from "../distribution/routing/mod.ts";
import { DatacenterSide, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { Carbons } from "../services/carbons/mod.ts";
import type { MessageArchive } from "../services/archive/mod.ts";
import type { OfflineMessages } from "../services/offline/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import type { LocalSide } from "./local_side.ts";
import { handoverOptions, routerBounds } from "./options.ts";
import type { Pressure } from "./pressure.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts between which the router stands. The last four are read when a stanza is routed. */
export interface RouterParts {
  readonly domains: Domains;
  readonly table: SessionTable;
  readonly tracer: StanzaTracer;
  readonly local: LocalSide;
  readonly requests: SubscriptionRequests;
  readonly rosters: RosterServer;
  readonly carbons: Carbons;
  readonly offline: OfflineMessages;
  readonly archive: MessageArchive | undefined;
  readonly pressure: Pressure;
  readonly router: Router;
  readonly resumption: Resumption | undefined;
  readonly links: LinkLayer | undefined;
  readonly cluster: LinkLayer | undefined;
}

/** Makes the router, with this datacenter on one side of it and the links on the other. */
export function makeRouter(config: Config, parts: Surroundings & RouterParts): Router {
  const { domains, table, pressure, places, metrics, clock } = parts;
  const { localHost } = domains;
  return new Router({
    domains,
    ...routerBounds(config),
  }, {
    process: parts.process,
    outbound: {
      send: (host, envelope) => made(parts.links).send(host, envelope),
      bringCarbon: (host, sender, id) => made(parts.links).bringCarbon(host, sender, id),
    },
    locations: {
      // While a session moves to another node, its stanzas come to this node and follow it from
      // here. A shorter way would let later stanzas overtake them.
      cached: (jid) =>
        parts.resumption?.follows(jid.text) === undefined ? table.cached(jid) : localHost,
      locate: (jid) => table.locate(jid),
      locateAgain: (jids) => table.locateAgain(jids),
      learn: (jid, host) => table.learn(jid, host),
      spread: (jid) => table.spread(jid),
      isUnplaced: (jid) => table.isUnplaced(jid),
      forget: (jid) => table.forget(jid),
      expire: (jid) => table.expire(jid),
    },
    local: new DatacenterSide({
      domains,
      node: parts.local,
      placements: table,
      handover: {
        send: (node, envelope) => made(parts.cluster).send(node, envelope),
        isGone: (node) => made(parts.cluster).isGone(node),
        isGivenUp: (node) => made(parts.cluster).isGivenUp(node),
        reconsider: (node) => made(parts.cluster).reconsider(node),
      },
      returned: (envelope, reason) => parts.router.returned(envelope, reason),
      carbons: parts.carbons,
      metrics,
      budget: places.handover,
    }, handoverOptions(config)),
    carbons: parts.carbons,
    requests: parts.requests,
    offline: parts.offline,
    ...parts.archive !== undefined && { archive: parts.archive },
    presence: {
      serves: (domain) => parts.rosters.serves(domain),
      take: (envelope) => parts.rosters.take(envelope),
    },
    tracer: parts.tracer,
    clock,
    metrics,
    log: parts.log,
    budget: places,
    pressure: (sender, isOver) => pressure.changed(sender, isOver),
  });
}

/** Returns links that the start has made: no stanza comes in before. */
function made(links: LinkLayer | undefined): LinkLayer {
  if (links === undefined) throw new TypeError("Cannot send before the links are made");
  return links;
}
