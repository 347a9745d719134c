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

/** Returns the options of the links. */
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
    // Peers may come back for this long with the stanzas they hold.
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

/** Returns the bounds of what routing keeps. */
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
      // A client that is away for longer than its session waits does not resend.
      resendLifetimeMs: (streamManagement?.resumeTimeoutMs ?? 0) + RESENDING_MS,
    },
  };
}

/** Returns the options for keeping order between the nodes of this datacenter. */
export function handoverOptions({ limits }: Config): Required<HandoverOrderOptions> {
  return { maxWaiting: limits.handoverMaxItems, maxWaitingBytes: limits.handoverMaxBytes };
}

/** Returns the options of the session table. */
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

/** Returns the options of stream management, or undefined when it is off. */
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

/**
 * Returns the options for moving sessions between nodes, or undefined when sessions cannot move.
 */
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

/** Returns the limits of client and component streams. */
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

/** Returns the limits of each port for clients or components. */
export function portLimits({ limits }: Config): ListenerLimits {
  return {
    maxConnections: limits.maxConnections,
    // The edge refuses stanzas earlier. A connection with more than twice that pending is cut in
    // any case.
    maxPendingBytes: 2 * limits.maxPendingBytes + limits.maxOwedBytes,
    lingerMs: limits.closeTimeoutMs,
    handshakeTimeoutMs: Math.min(limits.authenticationTimeoutMs, limits.tlsHandshakeTimeoutMs),
    maxHandshakes: limits.maxUnauthenticated,
  };
}

/** Returns the limits of WebSocket ports that `portLimits` does not cover. */
export function webSocketLimits({ limits }: Config): WebSocketLimits {
  return {
    maxMessageBytes: limits.maxStanzaBytes,
    maxFragments: limits.websocketMaxFragments,
    maxHeadBytes: limits.httpMaxHeadBytes,
  };
}

/** Returns the options of the admin API, with the limits on its callers. */
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

/** Returns the limits on admission at the ports for clients and components. */
export function admissionLimits({ limits }: Config): Required<AdmissionLimits> {
  return {
    maxUnauthenticated: limits.maxUnauthenticated,
    maxPerAddress: limits.maxConnectionsPerAddress,
  };
}

/** Returns the bounds of what a node remembers about one client. */
export function clientBounds(
  { limits }: Config,
): Required<Pick<C2sListenerOptions, "maxDirectedPresence">> {
  return { maxDirectedPresence: limits.maxDirectedPresence };
}

/** Returns the bounds on the sessions of one account. */
export function sessionBounds(
  { limits }: Config,
): Required<Pick<SessionRegistryOptions, "maxSessionsPerAccount">> {
  return { maxSessionsPerAccount: limits.maxSessionsPerAccount };
}

/** Returns the bounds on kept subscription requests. */
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

/** Returns the bounds on requests to the services of the datacenter. */
export function serviceBounds(
  { limits }: Config,
): Required<
  Pick<HostServicesOptions, "maxPendingRequests" | "maxIqBytes" | "maxIqElements">
> {
  const { maxPendingRequests, maxIqBytes, maxIqElements } = limits;
  return { maxPendingRequests, maxIqBytes, maxIqElements };
}

/** Returns the rates of clients and components. */
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

/**
 * Returns the rate of TLS handshakes of one address at a port. A handshake costs CPU time before
 * there is a stream to limit.
 */
export function handshakeRates({ limits }: Config, clock: Clock): EdgeRates {
  const { connectionsPerAddress } = limits;
  return new EdgeRates(connectionsPerAddress === undefined ? {} : { connectionsPerAddress }, clock);
}
