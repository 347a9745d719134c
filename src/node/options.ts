import type { AdminOptions } from "../admin/mod.ts";
import type { Config } from "../config/mod.ts";
import type { LinksOptions } from "../distribution/links/mod.ts";
import type { ResumptionOptions } from "../distribution/resumption/mod.ts";
import type { RouterOptions } from "../distribution/routing/mod.ts";
import type { TableOptions } from "../distribution/table/mod.ts";
import type { ListenerLimits, WebSocketLimits } from "../net/mod.ts";
import { RESENDING_MS } from "../xmpp/mod.ts";
import type { EdgeRatesOptions, StreamManagementOptions } from "../xmpp/mod.ts";

// What a single option of the file sets is in `Config` under the name of its part. Here is the rest:
// options that several parts share, and those that follow from others.

/** Returns the options of the links. */
export function linksOptions({ links, redis, datacenter }: Config): LinksOptions {
  const { silenceTimeoutMs, inboundMemoryMs } = links;
  const { expireAfterMs } = redis;
  return {
    ...links,
    expireAfterMs,
    // Three questions fit into the silence that counts as death.
    pingIntervalMs: Math.max(1, Math.min(5000, Math.floor(silenceTimeoutMs / 3))),
    // Peers may come back for this long with the stanzas they hold.
    inboundMemoryMs: Math.max(inboundMemoryMs, expireAfterMs),
    maxDatacenterEndpoints: datacenter.maxEndpoints,
  };
}

/** Returns the options of routing, but for the domains. */
export function routerBounds(
  { router, bounce, lookupRates, memory, streamManagement }: Config,
): Omit<RouterOptions, "domains"> {
  return {
    ...router,
    bounce: bounce ?? false,
    lookupRates,
    // A client that is away for longer than its session waits does not resend.
    memory: {
      ...memory,
      resendLifetimeMs: (streamManagement?.resumeTimeoutMs ?? 0) + RESENDING_MS,
    },
  };
}

/** Returns the options of the session table. */
export function tableOptions(config: Config, incarnation: number): TableOptions {
  const { globalHost, localHost, redis: { password, tls, sentinelPassword } } =
    config.globalDistrib;
  return {
    ...config.table,
    globalHost,
    localHost,
    hosts: config.hosts,
    nodeName: config.nodeName,
    incarnation,
    redis: {
      ...config.redis,
      password: password?.reveal() ?? "",
      tls,
      sentinelPassword: sentinelPassword?.reveal() ?? "",
    },
    cache: config.cache,
    datacenter: config.datacenter,
  };
}

/** Returns the options of stream management, or undefined when it is off. */
export function managementOptions(
  { streamManagement, streams: { maxOwedBytes } }: Config,
): StreamManagementOptions | undefined {
  return streamManagement && { ...streamManagement, maxOwedBytes };
}

/**
 * Returns the options for moving sessions between nodes, or undefined when sessions cannot move.
 */
export function resumptionOptions(
  { resumption, streamManagement, streams, redis, links }: Config,
): ResumptionOptions | undefined {
  if (streamManagement === undefined) return undefined;
  const { resumeElsewhereTimeoutMs, maxItems, maxBytes } = streamManagement;
  return {
    ...resumption,
    timeoutMs: resumeElsewhereTimeoutMs,
    maxItems,
    maxBytes,
    maxOwedBytes: streams.maxOwedBytes,
    maxFrameBytes: links.maxFrameBytes,
    expireAfterMs: redis.expireAfterMs,
  };
}

/** Returns the limits of each port for clients or components. */
export function portLimits({ ports, streams, admission }: Config): ListenerLimits {
  return {
    ...ports,
    // The edge refuses stanzas earlier. A connection with more than twice that pending is cut in
    // any case.
    maxPendingBytes: 2 * streams.maxPendingBytes + streams.maxOwedBytes,
    handshakeTimeoutMs: Math.min(streams.negotiationTimeoutMs, ports.handshakeTimeoutMs),
    maxHandshakes: admission.maxUnauthenticated,
  };
}

/** Returns the limits of WebSocket ports that `portLimits` does not cover. */
export function webSocketLimits({ webSockets, streams }: Config): WebSocketLimits {
  return { ...webSockets, maxMessageBytes: streams.maxStanzaBytes };
}

/** Returns the options of the admin API, with the limits on its callers. */
export function adminOptions({ listen, admin }: Config): AdminOptions {
  const { host, port, socket, token, tokens, certificates } = listen.admin;
  const { wrongTokens, ...limits } = admin;
  return {
    host,
    port,
    limits,
    ...(socket === undefined ? {} : { socket }),
    ...(token === undefined ? {} : { token: token.reveal() }),
    ...(tokens.length === 0 ? {} : {
      tokens: tokens.map(({ name, role, token }) => ({ name, role, token: token.reveal() })),
    }),
    ...(certificates.length === 0 ? {} : { certificates }),
    ...(wrongTokens === undefined ? {} : { wrongTokens }),
  };
}

/**
 * Returns the rate of TLS handshakes of one address at a port. A handshake costs CPU time before
 * there is a stream to limit.
 */
export function handshakeRates(
  { edgeRates: { connectionsPerAddress } }: Config,
): EdgeRatesOptions {
  return connectionsPerAddress === undefined ? {} : { connectionsPerAddress };
}

/** Returns the options for keeping order between the nodes of this datacenter. */
export function handoverOptions({ handover }: Config): Config["handover"] {
  return handover;
}

/** Returns the bounds on the sessions of one account. */
export function sessionBounds({ sessions }: Config): Config["sessions"] {
  return sessions;
}

/** Returns the bounds on kept subscription requests. */
export function requestBounds({ requests }: Config): Config["requests"] {
  return requests;
}

/** Returns the bounds on rosters. */
export function rosterBounds({ rosters }: Config): Config["rosters"] {
  return rosters;
}

/** Returns the bounds on requests to the services of the datacenter. */
export function serviceBounds({ services }: Config): Config["services"] {
  return services;
}

/** Returns the options of the watch over the accounts with sessions here. */
export function accountWatchOptions({ accountWatch }: Config): Config["accountWatch"] {
  return accountWatch;
}
