import type {
  CertificateFiles,
  ComponentListenConfig,
  Config,
  ConfigNote,
  GlobalDistribConfig,
  HostModulesConfig,
  LimitsConfig,
  RateConfig,
  RedisTlsConfig,
  StreamManagementConfig,
} from "./config.ts";
import type { FileConfig } from "./file_schema.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import type { SecretInput } from "./schema_words.ts";
import { Secret } from "./secret.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

/** Port of `connections.endpoints` when the option is left out. */
const DEFAULT_LINK_PORT = 5555;

/** Turns a file that breaks no rule into the configuration of the process. */
export function resolveConfig(
  file: FileConfig,
  fileName: string,
  surroundings: Surroundings,
): Config {
  const globalDistrib = resolveGlobalDistrib(file, surroundings);
  return deepFreeze({
    file: fileName,
    hosts: file.hosts.map(normalizeDomain),
    nodeName: file.node_name ?? `${surroundings.hostname() ?? ""}@${globalDistrib.localHost}`,
    listen: resolveListen(file, surroundings),
    auth: {
      backend: file.auth.backend,
      mechanisms: file.auth.mechanisms,
      scramIterations: file.auth.scram_iterations,
      enumerationSecret: file.auth.enumeration_secret === undefined ? undefined : resolveSecret(
        file.auth.enumeration_secret,
        ["auth", "enumeration_secret"],
        surroundings,
      ),
    },
    storage: { internal: { path: surroundings.absolute(file.storage.internal.path) } },
    log: file.log,
    limits: resolveLimits(
      file.limits,
      file.modules.mod_global_distrib.redis.expire_after,
    ),
    globalDistrib,
    streamManagement: resolveStreamManagementConfig(file),
    modules: resolveModules(file),
    globalDistribAddr: new Map(
      Object.entries(file.global_distrib_addr).map(([host, list]) => [normalizeDomain(host), list]),
    ),
    notes: collectNotes(),
  });
}

function resolveListen(file: FileConfig, surroundings: Surroundings): Config["listen"] {
  const { c2s, websocket, component, admin } = file.listen;
  return {
    c2s: c2s.map(({ host, port, tls, allow_plaintext: allowPlaintext }) => ({
      host,
      port,
      tls: tls.mode === "none" || tls.certfile === undefined
        ? { mode: "none" }
        : { mode: tls.mode, ...resolveCertificate(tls.certfile, tls.keyfile, surroundings) },
      allowPlaintext,
    })),
    websocket: websocket.map(({ host, port, tls, allow_plaintext: allowPlaintext, url }) => ({
      host,
      port,
      tls: tls && resolveCertificate(tls.certfile, tls.keyfile, surroundings),
      allowPlaintext,
      url,
    })),
    component: component.map(({ host, port, tls, domains }, position): ComponentListenConfig => ({
      host,
      port,
      tls: tls && resolveCertificate(tls.certfile, tls.keyfile, surroundings),
      domains: domains.map(({ name, secret, hidden }, domainPosition) => ({
        name: normalizeDomain(name),
        secret: resolveSecret(
          secret,
          ["listen", "component", position, "domains", domainPosition, "secret"],
          surroundings,
        ),
        isHidden: hidden,
      })),
    })),
    admin: {
      host: admin.host,
      port: admin.port,
      token: admin.token === undefined
        ? undefined
        : resolveSecret(admin.token, ["listen", "admin", "token"], surroundings),
    },
  };
}

function resolveGlobalDistrib(file: FileConfig, surroundings: Surroundings): GlobalDistribConfig {
  const module = file.modules.mod_global_distrib;
  const { connections, redis, cache, bounce } = module;
  const localHost = normalizeDomain(module.local_host);
  const tls = connections.tls_opts;
  const redisSecret = (key: "password" | "sentinel_password") => {
    const path = ["modules", "mod_global_distrib", "redis", key];
    const secret = resolveSecret(redis[key], path, surroundings);
    return secret.reveal() === "" ? undefined : secret;
  };
  return {
    globalHost: normalizeDomain(module.global_host),
    localHost,
    messageTtl: module.message_ttl,
    hostsRefreshIntervalMs: module.hosts_refresh_interval,
    connections: {
      endpoints: connections.endpoints ?? [{ host: localHost, port: DEFAULT_LINK_PORT }],
      advertisedEndpoints: connections.advertised_endpoints,
      connectionsPerEndpoint: connections.connections_per_endpoint,
      endpointRefreshIntervalMs: connections.endpoint_refresh_interval * 1000,
      endpointRefreshIntervalWhenEmptyMs: connections.endpoint_refresh_interval_when_empty * 1000,
      disabledGcIntervalMs: connections.disabled_gc_interval * 1000,
      rehomeAfterMs: connections.rehome_after_ms,
      rerouteAfterMs: connections.reroute_after_ms,
      seeds: connections.seeds,
      cluster: connections.cluster,
      tls: tls === false ? undefined : {
        ...resolveCertificate(tls.certfile, tls.keyfile, surroundings),
        cafile: surroundings.absolute(tls.cafile),
      },
    },
    redis: {
      host: redis.server,
      port: redis.port,
      username: redis.username,
      password: redisSecret("password"),
      tls: resolveRedisTls(redis.tls, surroundings),
      sentinels: redis.sentinels,
      sentinelName: redis.sentinel_name,
      sentinelUsername: redis.sentinel_username,
      sentinelPassword: redisSecret("sentinel_password"),
      cluster: redis.cluster,
      poolSize: redis.pool_size,
      replication: redis.replication,
      expireAfterMs: redis.expire_after * 1000,
      refreshAfterMs: redis.refresh_after * 1000,
      commandTimeoutMs: redis.command_timeout_ms,
    },
    cache: {
      cachesMissed: cache.cache_missed,
      domainLifetimeMs: cache.domain_lifetime_seconds * 1000,
      jidLifetimeMs: cache.jid_lifetime_seconds * 1000,
      maxJids: cache.max_jids,
    },
    bounce: bounce === false ? undefined : {
      resendAfterMs: bounce.resend_after_ms,
      maxRetries: bounce.max_retries,
      maxItems: bounce.max_items,
      maxBytes: bounce.max_bytes,
    },
  };
}

function resolveLimits(
  limits: FileConfig["limits"],
  expireAfterSeconds: number,
): LimitsConfig {
  const rate = (perSec: number, burst: number): RateConfig | undefined =>
    perSec === 0 ? undefined : { perSec, burst, maxKeys: limits.rate_max_keys };
  return {
    maxStanzaBytes: limits.max_stanza_bytes,
    maxDepth: limits.max_depth,
    maxAttributes: limits.max_attributes,
    authenticationTimeoutMs: toMs(limits.authentication_timeout),
    maxConnections: limits.max_connections,
    tlsHandshakeTimeoutMs: toMs(limits.tls_handshake_timeout),
    closeTimeoutMs: toMs(limits.close_timeout),
    maxUnauthenticated: limits.max_unauthenticated,
    maxUnauthenticatedBytes: limits.max_unauthenticated_bytes,
    maxLateBytes: limits.max_late_bytes,
    maxConnectionsPerAddress: limits.max_connections_per_address,
    maxSessionsPerAccount: limits.max_sessions_per_account,
    maxDirectedPresence: limits.max_directed_presence,
    maxPendingRequests: limits.max_pending_requests,
    keptRequests: limits.kept_requests,
    keptRequestsPerSender: limits.kept_requests_per_sender,
    keptRequestsPerContact: limits.kept_requests_per_contact,
    keptRequestBytes: limits.kept_request_bytes,
    maxIqBytes: limits.max_iq_bytes,
    maxIqElements: limits.max_iq_elements,
    connectionsPerAddress: rate(
      limits.connection_rate_per_address,
      limits.connection_burst_per_address,
    ),
    loginsPerAddress: rate(limits.login_rate_per_address, limits.login_burst_per_address),
    failedLoginsPerAccount: rate(
      limits.failed_login_rate_per_account,
      limits.failed_login_burst_per_account,
    ),
    stanzasPerAccount: rate(limits.stanza_rate_per_account, limits.stanza_burst_per_account),
    stanzasPerAddress: rate(limits.stanza_rate_per_address, limits.stanza_burst_per_address),
    stanzasPerComponent: rate(
      limits.stanza_rate_per_component,
      limits.stanza_burst_per_component,
    ),
    wrongTokensPerAddress: rate(
      limits.wrong_token_rate_per_address,
      limits.wrong_token_burst_per_address,
    ),
    adminMaxConnections: limits.admin_max_connections,
    adminRequestTimeoutMs: toMs(limits.admin_request_timeout),
    adminMaxHeadBytes: limits.admin_max_head_bytes,
    adminMaxBodyBytes: limits.admin_max_body_bytes,
    saslAttempts: limits.sasl_attempts,
    maxPendingBytes: limits.max_pending_bytes,
    maxOwedBytes: limits.max_owed_bytes,
    slowReaderTimeoutMs: toMs(limits.slow_reader_timeout),
    websocketMaxFragments: limits.websocket_max_fragments,
    httpMaxHeadBytes: limits.http_max_head_bytes,
    keepaliveIntervalMs: toMs(limits.keepalive_interval),
    linkMaxFrameBytes: limits.link_max_frame_bytes,
    linkHandshakeTimeoutMs: toMs(limits.link_handshake_timeout),
    linkMaxConnections: limits.link_max_connections,
    linkMaxUnauthenticated: limits.link_max_unauthenticated,
    linkSilenceTimeoutMs: toMs(limits.link_silence_timeout),
    linkCreditBytes: limits.link_credit_bytes,
    linkMaxPendingBytes: limits.link_max_pending_bytes,
    linkMaxLanes: limits.link_max_lanes,
    linkLaneLifetimeMs: toMs(limits.link_lane_lifetime),
    datacenterMaxNodes: limits.datacenter_max_nodes,
    datacenterMaxEndpointsPerNode: limits.datacenter_max_endpoints_per_node,
    datacenterMaxEndpoints: limits.datacenter_max_endpoints,
    datacenterMaxClaims: limits.datacenter_max_claims,
    datacenterMaxClaimsPerAccount: limits.datacenter_max_claims_per_account,
    datacenterMaxDomains: limits.datacenter_max_domains,
    datacenterMaxLinks: limits.datacenter_max_links,
    datacenterMaxUnauthenticated: limits.datacenter_max_unauthenticated,
    datacenterMaxLanes: limits.datacenter_max_lanes,
    datacenterMaxLeaseMs: toMs(limits.datacenter_max_lease ?? expireAfterSeconds),
    linkMaxUnsettled: limits.link_max_unsettled,
    linkMaxSenders: limits.link_max_senders,
    laneMaxBytes: limits.lane_max_bytes,
    laneMaxItems: limits.lane_max_items,
    waitingMaxBytes: limits.waiting_max_bytes,
    lookupMaxItems: limits.lookup_max_items,
    lookupMaxBytes: limits.lookup_max_bytes,
    lookupsPerAccount: rate(limits.lookup_rate_per_account, limits.lookup_burst_per_account),
    lookupsPerComponent: rate(
      limits.lookup_rate_per_component,
      limits.lookup_burst_per_component,
    ),
    handoverMaxItems: limits.handover_max_items,
    handoverMaxBytes: limits.handover_max_bytes,
    repeatMaxPairs: limits.repeat_max_pairs,
    resendMaxMessages: limits.resend_max_messages,
    shutdownTimeoutMs: toMs(limits.shutdown_timeout),
  };
}

function resolveStreamManagementConfig(file: FileConfig): StreamManagementConfig | undefined {
  const module = file.modules.mod_stream_management;
  return module === false ? undefined : {
    bufferMax: module.buffer_max,
    bufferMaxBytes: module.buffer_max_bytes,
    unsettledMax: module.unsettled_max,
    ackFreq: module.ack_freq,
    ackDelayMs: module.ack_delay_ms,
    ackTimeoutMs: module.ack_timeout * 1000,
    resumeTimeoutMs: module.resume_timeout * 1000,
    resumeElsewhereTimeoutMs: module.resume_elsewhere_timeout * 1000,
    resumeElsewhereMax: module.resume_elsewhere_max,
    ackHoldMs: module.ack_hold_ms,
    endHoldMs: module.end_hold_ms,
    movedCheckMs: module.moved_check_ms,
    maxStreamEnds: module.stream_ends_max,
    suspectWithinMs: module.suspect_within_ms,
    staleHMs: module.stale_h.enabled ? module.stale_h.geriatric * 1000 : 0,
    maxStaleH: module.stale_h.max_items,
  };
}

/** Converts to whole milliseconds, the unit of every timer. */
function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}

/**
 * Resolves the modules of each host: those under `modules`, replaced by those of its `host_config`.
 */
function resolveModules(file: FileConfig): ReadonlyMap<string, HostModulesConfig> {
  const own = new Map(
    Object.entries(file.host_config).map(([host, { modules }]) => [normalizeDomain(host), modules]),
  );
  return new Map(file.hosts.map((host) => {
    const name = normalizeDomain(host);
    const tables = { ...file.modules, ...own.get(name) };
    const { mod_disco: disco } = tables;
    return [name, {
      mod_disco: disco !== false && {
        usersCanSeeHiddenServices: disco?.users_can_see_hidden_services ?? false,
      },
      mod_ping: tables.mod_ping !== false,
      mod_time: tables.mod_time !== false,
      mod_version: tables.mod_version !== false,
    }];
  }));
}

function collectNotes(): readonly ConfigNote[] {
  return [{
    path: "storage.internal",
    text: "accounts of a globally distributed host are kept in the built-in store, which is for " +
      "trying out: other nodes and datacenters do not see them",
  }];
}

function resolveCertificate(
  certfile: string,
  keyfile: string | undefined,
  surroundings: Surroundings,
): CertificateFiles {
  return {
    certfile: surroundings.absolute(certfile),
    keyfile: surroundings.absolute(keyfile ?? certfile),
  };
}

function resolveRedisTls(
  tls: FileConfig["modules"]["mod_global_distrib"]["redis"]["tls"],
  surroundings: Surroundings,
): RedisTlsConfig | undefined {
  if (tls === false) return undefined;
  const { cafile, certfile, keyfile, servername } = tls === true ? {} : tls;
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : surroundings.absolute(path);
  return {
    cafile: absolute(cafile),
    certfile: absolute(certfile),
    keyfile: absolute(keyfile ?? certfile),
    servername,
  };
}

function resolveSecret(input: SecretInput, path: KeyPath, surroundings: Surroundings): Secret {
  return new Secret(surroundings.secret(input, path) ?? "");
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  const inner = value instanceof Map ? [...value.values()] : Object.values(value);
  for (const item of inner) deepFreeze(item);
  return value;
}
