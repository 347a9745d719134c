import type { Role } from "../admin/mod.ts";
import type { ArchiveHostOptions } from "../services/archive/mod.ts";
import type { MucOptions } from "../services/muc/mod.ts";
import type { RoomArchiveOptions } from "../services/rooms/mod.ts";
import type { RoomOptions } from "../services/muc_light/mod.ts";
import type { PrivacyBounds } from "../services/privacy/mod.ts";
import type { VcardSearchOptions } from "../services/vcard/mod.ts";
import type { IpRule } from "../services/accounts/mod.ts";
import type { PepBounds, PrivateBounds, StoresOptions } from "../storage/mod.ts";
import type { PartOptions } from "./part_options.ts";
import type { Secret } from "./secret.ts";
import type { Settings } from "./settings.ts";

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
  /** Absolute path of a Unix socket; undefined for none. */
  readonly socket: string | undefined;
  /** Bearer token that a request must present; undefined when none is required. */
  readonly token: Secret | undefined;
  readonly tokens: readonly {
    readonly name: string;
    readonly role: Role;
    readonly token: Secret;
  }[];
  /** Undefined: plain HTTP. `cafile` holds the authorities of client certificates. */
  readonly tls: (CertificateFiles & { readonly cafile: string | undefined }) | undefined;
  /** Names in client certificates. */
  readonly certificates: readonly { readonly name: string; readonly role: Role }[];
}

export type SaslMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-1" | "PLAIN";

/** `[auth]`. */
export interface AuthConfig {
  /** Offered in this order. */
  readonly mechanisms: readonly SaslMechanism[];
  /** True when clients may log in by XEP-0388 too. */
  readonly sasl2: boolean;
  /** True when SCRAM is offered with channel binding too. */
  readonly channelBinding: boolean;
  /** PBKDF2 rounds for passwords set from now on. */
  readonly scramIterations: number;
  /**
   * Secret from which credentials of nonexistent accounts are made; undefined for a secret of the
   * store.
   */
  readonly enumerationSecret: Secret | undefined;
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

/** Credentials of `modules.mod_global_distrib.redis`. */
export interface RedisConfig {
  readonly password: Secret | undefined;
  /** Undefined: plain TCP, or a Unix socket (`tls = false`). */
  readonly tls: RedisTlsConfig | undefined;
  readonly sentinelPassword: Secret | undefined;
}

/** `modules.mod_global_distrib`. */
export interface GlobalDistribConfig {
  readonly globalHost: string;
  readonly localHost: string;
  readonly connections: ConnectionsConfig;
  readonly redis: RedisConfig;
}

/** The Multi-User Chat rooms of the global host. */
export interface MucConfig extends MucOptions {
  /** Domain of the rooms. */
  readonly domain: string;
}

/** The MUC Light rooms of the global host. */
export interface MucLightConfig extends RoomOptions {
  /** Domain of the rooms. */
  readonly domain: string;
}

/**
 * The modules that answer for one host, with `host_config` applied; false for a module that is off.
 */
export interface HostModulesConfig {
  readonly mod_disco: false | { readonly usersCanSeeHiddenServices: boolean };
  readonly mod_carboncopy: boolean;
  readonly mod_ping: boolean;
  readonly mod_roster: false | { readonly hasVersions: boolean };
  readonly mod_time: boolean;
  readonly mod_version: boolean;
  readonly mod_last: boolean;
  readonly mod_mam: false | ArchiveHostOptions;
  readonly mod_blocking: boolean;
  readonly mod_privacy: false | PrivacyBounds;
  readonly mod_private: false | PrivateBounds;
  readonly mod_offline: false | {
    readonly maxMessages: number;
    readonly maxBytes: number;
    readonly lifetimeMs: number;
  };
  readonly mod_pubsub:
    | false
    | (PepBounds & { readonly maxItemsPerNode: number; readonly maxItemBytes: number });
  readonly mod_register: false | {
    readonly allowRemoval: boolean;
    /** Bits that a password has at least that people choose. */
    readonly passwordStrength: number;
    /** Undefined: nobody makes an account. */
    readonly registration: RegistrationConfig | undefined;
  };
  readonly mod_vcard: false | {
    readonly maxBytes: number;
    /** Undefined: nobody searches. */
    readonly search: VcardSearchOptions | undefined;
  };
}

/** Registration of accounts by strangers, at one host. */
export interface RegistrationConfig {
  readonly ipAccess: readonly IpRule[];
  readonly timeoutMs: number;
}

/** `[log]`. */
export interface LogConfig {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly format: "text" | "json";
}

/** `[observe.otlp]`. */
export interface OtlpConfig {
  readonly endpoint: string;
  readonly headers: ReadonlyMap<string, Secret>;
  /** Absolute path of a PEM file. */
  readonly cafile: string | undefined;
  readonly signals: readonly ("traces" | "metrics" | "logs")[];
  /** Share of the stanzas that enter here which are traced; 0 to 1. */
  readonly sampleRatio: number;
  /** Part of people's addresses that spans and log events show. */
  readonly addresses: "domain" | "bare" | "full";
  readonly resource: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly batchIntervalMs: number;
  readonly metricsIntervalMs: number;
  readonly maxQueued: number;
}

/** `[observe]`. */
export interface ObserveConfig {
  /** Undefined: no collector is told anything. */
  readonly otlp: OtlpConfig | undefined;
  readonly trace: {
    /** True when operators of other datacenters may follow an address through this node. */
    readonly fromOtherDatacenters: boolean;
  };
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
export interface Config extends PartOptions {
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
  /** The stores, and which of them holds the accounts of which host. */
  readonly storage: StoresOptions;
  readonly log: LogConfig;
  readonly observe: ObserveConfig;
  readonly globalDistrib: GlobalDistribConfig;
  /** By host, one entry for each of `hosts`. */
  readonly modules: ReadonlyMap<string, HostModulesConfig>;
  /** Undefined where rooms are off. */
  readonly mucLight: MucLightConfig | undefined;
  /** Undefined where Multi-User Chat is off. */
  readonly muc: MucConfig | undefined;
  /** Archives of the rooms of the global host; undefined where they are off. */
  readonly roomArchives: RoomArchiveOptions | undefined;
  /** Endpoints by remote local host. They replace the endpoints in the session table. */
  readonly globalDistribAddr: ReadonlyMap<string, readonly HostPort[]>;
  readonly notes: readonly ConfigNote[];
  /** The file that all of this comes from, for a comparison with a later one. */
  readonly settings: Settings;
}
