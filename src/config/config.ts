import type { Secret } from "./secret.ts";

/** A host name or IP address, and a port. */
export interface HostPort {
  readonly host: string;
  /** 0 asks the system for a free port. Only an address to listen on may have it. */
  readonly port: number;
}

/** A certificate chain and its private key, as absolute paths of PEM files. */
export interface CertificateFiles {
  readonly certfile: string;
  /** The same as `certfile` when that file holds the key too. */
  readonly keyfile: string;
}

/** Security of a client port: STARTTLS required, TLS from the first byte, or none. */
export type C2sTls =
  | ({ readonly mode: "starttls" | "direct" } & CertificateFiles)
  | { readonly mode: "none" };

/** One `[[listen.c2s]]`. */
export interface C2sListenConfig extends HostPort {
  readonly tls: C2sTls;
  /** True when the operator allows unencrypted clients off loopback on this port. */
  readonly allowPlaintext: boolean;
}

/** One `[[listen.websocket]]`; the path is always `/xmpp-websocket`. */
export interface WebSocketListenConfig extends HostPort {
  /** TLS from the first byte; undefined for `ws`. */
  readonly tls: CertificateFiles | undefined;
  /** True when the operator allows unencrypted clients off loopback on this port. */
  readonly allowPlaintext: boolean;
  /** URL of the port as clients are told; undefined for the scheme and host of their request. */
  readonly url: string | undefined;
}

/** One domain that a component may connect as (XEP-0114). */
export interface ComponentDomainConfig {
  /** Normalised domainpart. */
  readonly name: string;
  readonly secret: Secret;
  /** True when service discovery shows the component only to users who may see hidden services. */
  readonly isHidden: boolean;
}

/** One `[[listen.component]]`. */
export interface ComponentListenConfig extends HostPort {
  /** TLS from the first byte; undefined for plain TCP, which is what XEP-0114 describes. */
  readonly tls: CertificateFiles | undefined;
  readonly domains: readonly ComponentDomainConfig[];
}

/** `[listen.admin]`. */
export interface AdminListenConfig extends HostPort {
  /** Bearer token that a request must present; undefined when none is required. */
  readonly token: Secret | undefined;
}

export type SaslMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-1" | "PLAIN";

/** `[auth]`. */
export interface AuthConfig {
  readonly backend: "internal";
  /** Offered in this order. */
  readonly mechanisms: readonly SaslMechanism[];
  /** PBKDF2 rounds for passwords set from now on. */
  readonly scramIterations: number;
  /**
   * Secret from which credentials of nonexistent accounts are made; undefined for a secret of the
   * store.
   */
  readonly enumerationSecret: Secret | undefined;
}

/** A rate: `burst` times at once, `perSec` times a second in the long run. */
export interface RateConfig {
  readonly perSec: number;
  readonly burst: number;
  /** Addresses, accounts or components that are counted at once. */
  readonly maxKeys: number;
}

/** `[limits]`: bounds on what clients, components and peers may cost. */
export interface LimitsConfig {
  readonly maxStanzaBytes: number;
  readonly maxDepth: number;
  readonly maxAttributes: number;
  readonly authenticationTimeoutMs: number;
  readonly maxConnections: number;
  readonly tlsHandshakeTimeoutMs: number;
  readonly closeTimeoutMs: number;
  readonly maxUnauthenticated: number;
  readonly maxUnauthenticatedBytes: number;
  readonly maxLateBytes: number;
  readonly maxConnectionsPerAddress: number;
  readonly maxSessionsPerAccount: number;
  readonly maxDirectedPresence: number;
  readonly maxPendingRequests: number;
  readonly keptRequests: number;
  readonly keptRequestsPerSender: number;
  readonly keptRequestsPerContact: number;
  readonly keptRequestBytes: number;
  readonly maxIqBytes: number;
  readonly maxIqElements: number;
  /** Undefined: not limited. */
  readonly connectionsPerAddress: RateConfig | undefined;
  readonly loginsPerAddress: RateConfig | undefined;
  readonly failedLoginsPerAccount: RateConfig | undefined;
  readonly stanzasPerAccount: RateConfig | undefined;
  readonly stanzasPerAddress: RateConfig | undefined;
  readonly stanzasPerComponent: RateConfig | undefined;
  readonly wrongTokensPerAddress: RateConfig | undefined;
  readonly adminMaxConnections: number;
  readonly adminRequestTimeoutMs: number;
  readonly adminMaxHeadBytes: number;
  readonly adminMaxBodyBytes: number;
  readonly saslAttempts: number;
  readonly maxPendingBytes: number;
  readonly maxOwedBytes: number;
  readonly slowReaderTimeoutMs: number;
  readonly websocketMaxFragments: number;
  readonly httpMaxHeadBytes: number;
  readonly keepaliveIntervalMs: number;
  readonly linkMaxFrameBytes: number;
  readonly linkHandshakeTimeoutMs: number;
  readonly linkMaxConnections: number;
  readonly linkMaxUnauthenticated: number;
  readonly linkSilenceTimeoutMs: number;
  readonly linkCreditBytes: number;
  readonly linkMaxPendingBytes: number;
  readonly linkMaxLanes: number;
  readonly linkLaneLifetimeMs: number;
  readonly datacenterMaxNodes: number;
  readonly datacenterMaxEndpointsPerNode: number;
  readonly datacenterMaxEndpoints: number;
  readonly datacenterMaxClaims: number;
  readonly datacenterMaxClaimsPerAccount: number;
  readonly datacenterMaxDomains: number;
  readonly datacenterMaxLinks: number;
  readonly datacenterMaxUnauthenticated: number;
  readonly datacenterMaxLanes: number;
  readonly datacenterMaxLeaseMs: number;
  readonly linkMaxUnsettled: number;
  readonly linkMaxSenders: number;
  readonly laneMaxBytes: number;
  readonly laneMaxItems: number;
  readonly waitingMaxBytes: number;
  readonly lookupMaxItems: number;
  readonly lookupMaxBytes: number;
  /** Undefined: not limited. */
  readonly lookupsPerAccount: RateConfig | undefined;
  readonly lookupsPerComponent: RateConfig | undefined;
  readonly handoverMaxItems: number;
  readonly handoverMaxBytes: number;
  readonly repeatMaxPairs: number;
  readonly resendMaxMessages: number;
  /** Milliseconds that a whole graceful stop may take. */
  readonly shutdownTimeoutMs: number;
}

/**
 * `connections.tls_opts`, absolute paths; `cafile` holds the CA that issued the peers'
 * certificates.
 */
export interface LinkTlsConfig extends CertificateFiles {
  readonly cafile: string;
}

/** `modules.mod_global_distrib.connections`. */
export interface ConnectionsConfig {
  readonly endpoints: readonly HostPort[];
  /** Undefined: `endpoints` as resolved and bound. */
  readonly advertisedEndpoints: readonly HostPort[] | undefined;
  readonly connectionsPerEndpoint: number;
  readonly endpointRefreshIntervalMs: number;
  readonly endpointRefreshIntervalWhenEmptyMs: number;
  readonly disabledGcIntervalMs: number;
  readonly rehomeAfterMs: number;
  readonly rerouteAfterMs: number;
  readonly seeds: readonly HostPort[];
  readonly cluster: HostPort;
  /** Undefined: plain TCP (`tls_opts = false`). */
  readonly tls: LinkTlsConfig | undefined;
}

/** `redis.tls`; files are absolute paths. */
export interface RedisTlsConfig {
  /** Undefined: the authorities that the runtime trusts. */
  readonly cafile: string | undefined;
  readonly certfile: string | undefined;
  /** The same as `certfile` when the key is in there. */
  readonly keyfile: string | undefined;
  readonly servername: string | undefined;
}

/** `modules.mod_global_distrib.redis`; `host` is the path of a Unix socket when it begins with `/`. */
export interface RedisConfig extends HostPort {
  /** Undefined: Redis' default user. */
  readonly username: string | undefined;
  readonly password: Secret | undefined;
  /** Undefined: plain TCP, or a Unix socket (`tls = false`). */
  readonly tls: RedisTlsConfig | undefined;
  /** In place of `host` and `port` unless empty; the same is true of `cluster`. */
  readonly sentinels: readonly HostPort[];
  readonly sentinelName: string;
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: Secret | undefined;
  readonly cluster: readonly HostPort[];
  readonly poolSize: number;
  readonly replication: "builtin" | "external";
  readonly expireAfterMs: number;
  readonly refreshAfterMs: number;
  readonly commandTimeoutMs: number;
}

/** `modules.mod_global_distrib.cache`. */
export interface CacheConfig {
  readonly cachesMissed: boolean;
  readonly domainLifetimeMs: number;
  readonly jidLifetimeMs: number;
  readonly maxJids: number;
}

/** `modules.mod_global_distrib.bounce`. */
export interface BounceConfig {
  readonly resendAfterMs: number;
  readonly maxRetries: number;
  readonly maxItems: number;
  readonly maxBytes: number;
}

/** `modules.mod_global_distrib`. */
export interface GlobalDistribConfig {
  readonly globalHost: string;
  readonly localHost: string;
  readonly messageTtl: number;
  readonly hostsRefreshIntervalMs: number;
  readonly connections: ConnectionsConfig;
  readonly redis: RedisConfig;
  readonly cache: CacheConfig;
  /** Undefined: stanzas without a route are answered at once (`bounce = false`). */
  readonly bounce: BounceConfig | undefined;
}

/** `modules.mod_stream_management`. */
export interface StreamManagementConfig {
  readonly bufferMax: number;
  readonly bufferMaxBytes: number;
  readonly unsettledMax: number;
  readonly ackFreq: number;
  readonly ackDelayMs: number;
  readonly ackTimeoutMs: number;
  /** 0: sessions cannot be resumed. */
  readonly resumeTimeoutMs: number;
  /** Milliseconds in which a session of another node must arrive here. */
  readonly resumeElsewhereTimeoutMs: number;
  /** Sessions that may move to other nodes at the same time. */
  readonly resumeElsewhereMax: number;
  readonly ackHoldMs: number;
  readonly endHoldMs: number;
  readonly movedCheckMs: number;
  /** 0: a stanza is sent again each time. */
  readonly maxStreamEnds: number;
  readonly suspectWithinMs: number;
  /** 0: nothing is remembered of sessions that are over. */
  readonly staleHMs: number;
  readonly maxStaleH: number;
}

/**
 * The modules that answer for one host, with `host_config` applied; false for a module that is off.
 */
export interface HostModulesConfig {
  readonly mod_disco: false | { readonly usersCanSeeHiddenServices: boolean };
  readonly mod_ping: boolean;
  readonly mod_time: boolean;
  readonly mod_version: boolean;
}

/** `[log]`. */
export interface LogConfig {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly format: "text" | "json";
}

/** A hint for the operator that is no mistake. `check` prints it, `serve` logs it. */
export interface ConfigNote {
  readonly path: string;
  readonly text: string;
}

/**
 * The configuration of one process, checked, with every default filled in: names are normalised,
 * file paths absolute, durations milliseconds. Deeply frozen.
 */
export interface Config {
  /** Path of the configuration file, as given. */
  readonly file: string;
  readonly hosts: readonly string[];
  readonly nodeName: string;
  readonly listen: {
    readonly c2s: readonly C2sListenConfig[];
    readonly websocket: readonly WebSocketListenConfig[];
    readonly component: readonly ComponentListenConfig[];
    readonly admin: AdminListenConfig;
  };
  readonly auth: AuthConfig;
  readonly storage: { readonly internal: { readonly path: string } };
  readonly log: LogConfig;
  readonly limits: LimitsConfig;
  readonly globalDistrib: GlobalDistribConfig;
  /** Undefined: stream management is not offered (`mod_stream_management = false`). */
  readonly streamManagement: StreamManagementConfig | undefined;
  /** By host, one entry for each of `hosts`. */
  readonly modules: ReadonlyMap<string, HostModulesConfig>;
  /** Endpoints by remote local host. They replace the endpoints in the session table. */
  readonly globalDistribAddr: ReadonlyMap<string, readonly HostPort[]>;
  readonly notes: readonly ConfigNote[];
}
