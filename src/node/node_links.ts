import type { Config } from "../config/mod.ts";
import type { LinkLayerEvents } from "../distribution/links/mod.ts";
import { LinkLayer } from "../distribution/links/mod.ts";
import type { Resumption } from "../distribution/resumption/mod.ts";
import type { Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { Surveys } from "../distribution/surveys/mod.ts";
import type { StanzaSpans, Tracing } from "../distribution/tracing/mod.ts";
import type { LinkTraffic, StanzaTracer } from "../distribution/mod.ts";
import { EdgeRates, parseJid } from "../xmpp/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { Certificates } from "./certificates.ts";
import { LINK_TLS } from "./link_tls.ts";
import { makeBroughtCarbons } from "./node_carbons.ts";
import { noteRefused } from "./node_tracing.ts";
import { handshakeRates, linksOptions } from "./options.ts";
import type { Pressure } from "./pressure.ts";
import { resolveEndpoints } from "./resolve_endpoints.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that the links of a node use, and that receive their frames. */
export interface LinkParts {
  readonly table: SessionTable;
  readonly tracing: Tracing;
  readonly spans: StanzaSpans | undefined;
  readonly tracer: StanzaTracer;
  readonly surveys: Surveys;
  readonly router: Router;
  readonly rosters: RosterServer;
  readonly resumption: Resumption | undefined;
  readonly certificates: Certificates;
  readonly pressure: Pressure;
}

/** The links of one node. They neither listen nor dial yet. */
export interface NodeLinks {
  /** To other datacenters. */
  readonly links: LinkLayer;
  /** To the other nodes of this datacenter. */
  readonly cluster: LinkLayer;
  /** Takes the options of another configuration while they run. */
  readonly change: (config: Config) => void;
}

/**
 * Makes the links of a node.
 * @throws CausewayError for an address or certificate that cannot be used
 */
export async function makeLinks(
  config: Config,
  parts: Surroundings & LinkParts,
): Promise<NodeLinks> {
  const { globalHost, localHost, connections } = config.globalDistrib;
  const { process, table, router, tracer, certificates, metrics, log, clock } = parts;
  const pressure: LinkLayerEvents["pressure"] = (sender, isOver) =>
    parts.pressure.changed(sender, isOver);
  const common = {
    identity: {
      globalHost,
      localHost,
      hosts: new Set(config.hosts),
      nodeName: config.nodeName,
      process,
      datacenterId: () => table.datacenterId,
    },
    tls: connections.tls && await certificates.load(LINK_TLS, connections.tls),
    budget: parts.places,
    metrics,
    log,
    clock,
  };
  const handshakes = new EdgeRates(handshakeRates(config), clock);
  const links = new LinkLayer({
    ...common,
    listen: await resolveEndpoints(connections.endpoints),
    overrides: Object.fromEntries(config.globalDistribAddr),
    endpoints: table,
    hosts: table,
    events: {
      received: (envelope, peerHost) => {
        envelope.arrived("link", peerHost);
        router.route(envelope);
      },
      refused: (envelope, peerHost, reason) => noteRefused(tracer, envelope, peerHost, reason),
      returned: (envelope, reason) => router.returned(envelope, reason),
      whereabouts: (to) => router.whereabouts(to),
      identityDoubted: () => table.reviewIdentity(),
      linkedAgain: (host, awayMs) => parts.rosters.linkedAgain(host, awayMs),
      lostPresence: (host, envelope) => parts.rosters.lost(host, envelope.stanza, envelope),
      missedPresence: (host) => parts.rosters.tellAgain(host),
      pressure,
    },
    options: linksOptions(config),
    mayHandshake: (peer) => handshakes.mayConnect(peer),
    isComponentDomain: (domain) => table.lastKnown(parseJid(domain)) !== undefined,
    findComponent: async (domain) => await table.locate(parseJid(domain)) !== undefined,
    isOwnProcess: (each) => table.isOwnProcess(each),
    traffic: trafficOf(table.traffic, parts),
    carbonOf: makeBroughtCarbons({ globalHost }),
    seeds: connections.seeds,
  });
  const cluster = new LinkLayer({
    ...common,
    scope: "datacenter",
    listen: await resolveEndpoints([connections.cluster]),
    endpoints: { endpoints: (node) => table.clusterEndpoints(node) },
    hosts: { hosts: () => table.clusterNodes() },
    events: {
      received: (envelope) => {
        envelope.arrived("handed-over");
        router.route(envelope);
      },
      returned: (envelope, reason) =>
        router.returned(envelope, reason === "peer-restarted" ? "node-gone" : reason),
      identityDoubted: () => table.reviewIdentity(),
      lostPresence: (_node, envelope) => parts.rosters.lost(localHost, envelope.stanza, envelope),
      missedPresence: () => parts.rosters.tellAgain(localHost),
      pressure,
    },
    traffic: trafficOf(table.clusterBus, parts),
    options: { ...linksOptions(config), connectionsPerEndpoint: 1 },
  });
  return {
    links,
    cluster,
    change: (newer) => {
      handshakes.change(handshakeRates(newer));
      links.change({
        options: linksOptions(newer),
        overrides: Object.fromEntries(newer.globalDistribAddr),
        seeds: newer.globalDistrib.connections.seeds,
      });
      cluster.change({ options: { ...linksOptions(newer), connectionsPerEndpoint: 1 } });
    },
  };
}

/**
 * Returns the receivers of frames other than stanzas: `inner`, session resumption, traces and surveys.
 * Contexts of distributed traces are ignored where there are none.
 */
function trafficOf(
  inner: LinkTraffic | undefined,
  { resumption, tracing, spans, surveys }: Pick<
    LinkParts,
    "resumption" | "tracing" | "spans" | "surveys"
  >,
): LinkTraffic {
  const traffic = tracing.traffic(surveys.traffic(resumption?.traffic(inner) ?? inner));
  return spans?.traffic(traffic) ?? traffic;
}
