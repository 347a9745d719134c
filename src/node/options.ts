import type { AdminOptions } from "../admin/mod.ts";
import type { Clock } from "../base/mod.ts";
import type { LinksOptions } from "../distribution/links/mod.ts";
import type { ResumptionOptions } from "../distribution/resumption/mod.ts";
import type { HandoverOrderOptions, RouterOptions } from "../distribution/routing/mod.ts";
import type { TableOptions } from "../distribution/table/mod.ts";
import type { Config } from "../config/mod.ts";
import type { ListenerLimits, WebSocketLimits } from "../net/mod.ts";
import type { HostServicesOptions } from "../services/mod.ts";
import type { SubscriptionRequestsOptions } from "../services/subscriptions/mod.ts";
import type { RequestBounds } from "../storage/mod.ts";
import { EdgeRates, RESENDING_MS } from "../xmpp/mod.ts";
import type {
  AdmissionLimits,
  C2sListenerOptions,
  EdgeRatesOptions,
  SessionRegistryOptions,
  StreamLimits,
  StreamManagementOptions,
} from "../xmpp/mod.ts";

/** What the configuration says about links, in their own words. */
export function linksOptions({ limits, globalDistrib }: Config): LinksOptions {
  const { connections, redis } = globalDistrib;
  const silenceTimeoutMs = limits.linkSilenceTimeoutMs;
  return {
    connectionsPerEndpoint: connections.connectionsPerEndpoint,
    hostsRefreshIntervalMs: globalDistrib.hostsRefreshIntervalMs,
    endpointRefreshIntervalMs: connections.endpointRefreshIntervalMs,
    endpointRefreshIntervalWhenEmptyMs: connections.endpointRefreshIntervalWhenEmptyMs,
    disabledGcIntervalMs: connections.disabledGcIntervalMs,
    rehomeAfterMs: connections.rehomeAfterMs,
    rerouteFirstMs: connections.rerouteAfterMs,
    expireAfterMs: redis.expireAfterMs,
    maxFrameBytes: limits.linkMaxFrameBytes,
    helloTimeoutMs: limits.linkHandshakeTimeoutMs,
    maxConnections: limits.linkMaxConnections,
    maxUnauthenticated: limits.linkMaxUnauthenticated,
    silenceTimeoutMs,
    // Three questions fit into the silence that counts as death.
    pingIntervalMs: Math.max(1, Math.min(5000, Math.floor(silenceTimeoutMs / 3))),
    creditBytes: limits.linkCreditBytes,
    maxPendingBytes: limits.linkMaxPendingBytes,
    maxInboundLanes: limits.linkMaxLanes,
    // As long as peers may still come back with what they hold.
    inboundMemoryMs: Math.max(limits.linkLaneLifetimeMs, redis.expireAfterMs),
    maxDatacenterLanes: limits.datacenterMaxLanes,
    maxDatacenterLinks: limits.datacenterMaxLinks,
    maxDatacenterUnauthenticated: limits.datacenterMaxUnauthenticated,
    maxDatacenterEndpoints: limits.datacenterMaxEndpoints,
    maxUnsettled: limits.linkMaxUnsettled,
    maxBindings: limits.linkMaxSenders,
    laneMaxBytes: limits.laneMaxBytes,
    laneMaxItems: limits.laneMaxItems,
  };
}

/** What the configuration says about what routing keeps. */
export function routerBounds(
  { limits, streamManagement }: Config,
): Required<Pick<RouterOptions, "maxQueued" | "maxQueuedBytes" | "lookupRates" | "memory">> {
  const { lookupsPerAccount: perAccount, lookupsPerComponent: perComponent } = limits;
  return {
    maxQueued: limits.lookupMaxItems,
    maxQueuedBytes: limits.lookupMaxBytes,
    lookupRates: { ...(perAccount && { perAccount }), ...(perComponent && { perComponent }) },
    memory: {
      maxPairs: limits.repeatMaxPairs,
      maxStanzas: limits.resendMaxMessages,
      // A client that comes back later than its session would have waited has given up.
      resendLifetimeMs: (streamManagement?.resumeTimeoutMs ?? 0) + RESENDING_MS,
    },
  };
}

/** What the configuration says about keeping order between the nodes of this datacenter. */
export function handoverOptions({ limits }: Config): Required<HandoverOrderOptions> {
  return { maxWaiting: limits.handoverMaxItems, maxWaitingBytes: limits.handoverMaxBytes };
}

/** What the configuration says about the session table. */
export function tableOptions(config: Config, incarnation: number): TableOptions {
  const { limits, globalDistrib: { globalHost, localHost, redis, cache } } = config;
  return {
    globalHost,
    localHost,
    hosts: config.hosts,
    nodeName: config.nodeName,
    incarnation,
    replication: redis.replication,
    redis: {
      server: redis.host,
      port: redis.port,
      username: redis.username ?? "",
      password: redis.password?.reveal() ?? "",
      tls: redis.tls,
      sentinels: redis.sentinels,
      sentinelName: redis.sentinelName,
      sentinelUsername: redis.sentinelUsername ?? "",
      sentinelPassword: redis.sentinelPassword?.reveal() ?? "",
      cluster: redis.cluster,
      poolSize: redis.poolSize,
      expireAfterMs: redis.expireAfterMs,
      refreshAfterMs: redis.refreshAfterMs,
      commandTimeoutMs: redis.commandTimeoutMs,
    },
    cache: {
      cacheMissed: cache.cachesMissed,
      domainLifetimeMs: cache.domainLifetimeMs,
      jidLifetimeMs: cache.jidLifetimeMs,
      maxJids: cache.maxJids,
    },
    datacenter: {
      maxNodes: limits.datacenterMaxNodes,
      maxEndpointsPerNode: limits.datacenterMaxEndpointsPerNode,
      maxEndpoints: limits.datacenterMaxEndpoints,
      maxClaims: limits.datacenterMaxClaims,
      maxClaimsPerAccount: limits.datacenterMaxClaimsPerAccount,
      maxDomains: limits.datacenterMaxDomains,
      maxLeaseMs: limits.datacenterMaxLeaseMs,
    },
  };
}

/** What the configuration says about stream management; undefined when it is off. */
export function managementOptions({ streamManagement, limits }: Config):
  | StreamManagementOptions
  | undefined {
  if (streamManagement === undefined) return undefined;
  const { bufferMax, bufferMaxBytes, unsettledMax, resumeElsewhereMax: _, ...rest } =
    streamManagement;
  return {
    maxItems: bufferMax,
    maxBytes: bufferMaxBytes,
    maxUnsettled: unsettledMax,
    maxOwedBytes: limits.maxOwedBytes,
    ...rest,
  };
}

/** What the configuration says about sessions that go from one node to another; undefined when none do. */
export function resumptionOptions({ streamManagement, globalDistrib, limits }: Config):
  | ResumptionOptions
  | undefined {
  if (streamManagement === undefined) return undefined;
  const { resumeElsewhereTimeoutMs, resumeElsewhereMax, bufferMax, bufferMaxBytes } =
    streamManagement;
  return {
    timeoutMs: resumeElsewhereTimeoutMs,
    maxItems: bufferMax,
    maxBytes: bufferMaxBytes,
    maxOwedBytes: limits.maxOwedBytes,
    maxGivings: resumeElsewhereMax,
    expireAfterMs: globalDistrib.redis.expireAfterMs,
  };
}

/** What the configuration says about the streams of clients and components. */
export function streamLimits({ limits }: Config): StreamLimits {
  return {
    maxStanzaBytes: limits.maxStanzaBytes,
    maxDepth: limits.maxDepth,
    maxAttributes: limits.maxAttributes,
    negotiationTimeoutMs: limits.authenticationTimeoutMs,
    maxUnauthenticatedBytes: limits.maxUnauthenticatedBytes,
    maxLateBytes: limits.maxLateBytes,
    maxAuthFailures: limits.saslAttempts,
    maxPendingBytes: limits.maxPendingBytes,
    maxOwedBytes: limits.maxOwedBytes,
    slowReaderMs: limits.slowReaderTimeoutMs,
    keepaliveIntervalMs: limits.keepaliveIntervalMs,
  };
}

/** What the configuration says about every port for clients or components. */
export function portLimits({ limits }: Config): ListenerLimits {
  return {
    maxConnections: limits.maxConnections,
    // The edge refuses stanzas before; what is past twice as much is cut, whatever it is.
    maxPendingBytes: 2 * limits.maxPendingBytes + limits.maxOwedBytes,
    lingerMs: limits.closeTimeoutMs,
    handshakeTimeoutMs: Math.min(limits.authenticationTimeoutMs, limits.tlsHandshakeTimeoutMs),
    maxHandshakes: limits.maxUnauthenticated,
  };
}

/** What the configuration says about WebSockets, besides what it says about every port. */
export function webSocketLimits({ limits }: Config): WebSocketLimits {
  return {
    maxMessageBytes: limits.maxStanzaBytes,
    maxFragments: limits.websocketMaxFragments,
    maxHeadBytes: limits.httpMaxHeadBytes,
  };
}

/** What the configuration says about the admin API, and about what its callers may cost. */
export function adminOptions({ listen, limits }: Config): AdminOptions {
  const { host, port, token } = listen.admin;
  const { wrongTokensPerAddress: wrongTokens } = limits;
  return {
    host,
    port,
    limits: {
      maxConnections: limits.adminMaxConnections,
      requestTimeoutMs: limits.adminRequestTimeoutMs,
      maxHeadBytes: limits.adminMaxHeadBytes,
      maxBodyBytes: limits.adminMaxBodyBytes,
    },
    ...(token === undefined ? {} : { token: token.reveal() }),
    ...(wrongTokens === undefined ? {} : { wrongTokens }),
  };
}

/** What the configuration says about who is let in at the ports for clients and components. */
export function admissionLimits({ limits }: Config): Required<AdmissionLimits> {
  return {
    maxUnauthenticated: limits.maxUnauthenticated,
    maxPerAddress: limits.maxConnectionsPerAddress,
  };
}

/** What the configuration says about how much of one client is remembered. */
export function clientBounds(
  { limits }: Config,
): Required<Pick<C2sListenerOptions, "maxDirectedPresence">> {
  return { maxDirectedPresence: limits.maxDirectedPresence };
}

/** What the configuration says about the sessions of one account. */
export function sessionBounds(
  { limits }: Config,
): Required<Pick<SessionRegistryOptions, "maxSessionsPerAccount">> {
  return { maxSessionsPerAccount: limits.maxSessionsPerAccount };
}

/** What the configuration says about requests for subscriptions that are kept. */
export function requestBounds(
  { limits }: Config,
): Required<RequestBounds & Pick<SubscriptionRequestsOptions, "maxBytes">> {
  return {
    maxPerSender: limits.keptRequestsPerSender,
    maxPerContact: limits.keptRequestsPerContact,
    maxRequests: limits.keptRequests,
    maxBytes: limits.keptRequestBytes,
  };
}

/** What the configuration says about requests to the services of the datacenter. */
export function serviceBounds(
  { limits }: Config,
): Required<
  Pick<HostServicesOptions, "maxPendingRequests" | "maxIqBytes" | "maxIqElements">
> {
  const { maxPendingRequests, maxIqBytes, maxIqElements } = limits;
  return { maxPendingRequests, maxIqBytes, maxIqElements };
}

/** What the configuration says about how often clients and components may do something. */
export function edgeRates({ limits }: Config): EdgeRatesOptions {
  const {
    connectionsPerAddress,
    loginsPerAddress,
    failedLoginsPerAccount,
    stanzasPerAccount,
    stanzasPerAddress,
    stanzasPerComponent,
  } = limits;
  return {
    ...(connectionsPerAddress && { connectionsPerAddress }),
    ...(loginsPerAddress && { loginsPerAddress }),
    ...(failedLoginsPerAccount && { failedLoginsPerAccount }),
    ...(stanzasPerAccount && { stanzasPerAccount }),
    ...(stanzasPerAddress && { stanzasPerAddress }),
    ...(stanzasPerComponent && { stanzasPerComponent }),
  };
}

/** How often one address may begin TLS at a port: a handshake costs us before anybody is a stream. */
export function handshakeRates({ limits }: Config, clock: Clock): EdgeRates {
  const { connectionsPerAddress } = limits;
  return new EdgeRates(connectionsPerAddress === undefined ? {} : { connectionsPerAddress }, clock);
}
