import type { z } from "zod";
import type { ArchiveHostOptions } from "../services/archive/mod.ts";
import type { PrivacyBounds } from "../services/privacy/mod.ts";
import type { RoomArchiveOptions } from "../services/rooms/mod.ts";
import type { DataPlace, PrivateBounds } from "../storage/mod.ts";
import type {
  CertificateFiles,
  ComponentListenConfig,
  Config,
  ConfigNote,
  GlobalDistribConfig,
  HostModulesConfig,
  MucConfig,
  MucLightConfig,
  OtlpConfig,
  RedisTlsConfig,
} from "./config.ts";
import { collectOptions } from "./collect_options.ts";
import type { FileConfig } from "./file_schema.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import {
  hasSharedRoster,
  plainDirectories,
  resolveLdapPools,
  resolveSharedRosters,
} from "./ldap_pools.ts";
import { archiveTable, mucLightTable, mucTable, roomDomainOf } from "./room_rules.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import type { PartOptions } from "./part_options.ts";
import { plainServers, resolveServerPools } from "./server_pools.ts";
import {
  isTlsDefault,
  resolveData,
  resolvePools,
  resolveUsers,
  STORING_MODULES,
} from "./rdbms_pools.ts";
import {
  MOD_MAM,
  MOD_PRIVACY,
  MOD_PRIVATE,
  MOD_PUBSUB,
  MOD_REGISTER,
  MOD_VCARD,
} from "./schema_modules.ts";
import type { SecretInput } from "./schema_words.ts";
import { Secret } from "./secret.ts";
import type { KeptFile } from "./settings.ts";
import { Settings } from "./settings.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

/** Port of `connections.endpoints` when the option is left out. */
const DEFAULT_LINK_PORT = 5555;

/** Turns a file that breaks no rule into the configuration of the process. */
export function resolveConfig(
  { written, file }: KeptFile,
  fileName: string,
  surroundings: Surroundings,
): Config {
  const globalDistrib = resolveGlobalDistrib(file, surroundings);
  const { globalHost } = globalDistrib;
  const rooms = { mucLight: resolveMucLight(file), muc: resolveMuc(file) };
  const modules = resolveModules(file);
  const storage = {
    internal: { path: surroundings.absolute(file.storage.internal.path) },
    pools: resolvePools(file, surroundings),
    users: resolveUsers(file),
    data: resolveData(file),
    ldapPools: resolveLdapPools(file, surroundings),
    serverPools: resolveServerPools(file, surroundings),
    sharedRosters: resolveSharedRosters(file),
  };
  return deepFreeze({
    ...resolveParts(file),
    file: fileName,
    hosts: file.hosts.map(normalizeDomain),
    nodeName: file.node_name ?? `${surroundings.hostname() ?? ""}@${globalDistrib.localHost}`,
    listen: resolveListen(file, surroundings),
    auth: {
      mechanisms: file.auth.mechanisms,
      sasl2: file.auth.sasl2,
      channelBinding: file.auth.channel_binding,
      scramIterations: file.auth.scram_iterations,
      enumerationSecret: file.auth.enumeration_secret === undefined ? undefined : resolveSecret(
        file.auth.enumeration_secret,
        ["auth", "enumeration_secret"],
        surroundings,
      ),
    },
    storage,
    log: file.log,
    observe: {
      trace: { fromOtherDatacenters: file.observe.trace.from_other_datacenters },
      otlp: resolveOtlp(file.observe.otlp, surroundings),
    },
    globalDistrib,
    modules,
    ...rooms,
    roomArchives: resolveRoomArchives(file),
    globalDistribAddr: new Map(
      Object.entries(file.global_distrib_addr).map(([host, list]) => [normalizeDomain(host), list]),
    ),
    notes: collectNotes(storage, globalHost, {
      ...modules.get(globalHost),
      mod_muc_light: rooms.mucLight ?? false,
      mod_muc: rooms.muc ?? false,
    }),
    // The last: by now everything that the file refers to has been read.
    settings: new Settings({
      written,
      file,
      references: surroundings.references,
      options: surroundings.options,
    }),
  });
}

/** Resolves what a single option sets, and `stale_h`, where two options set one. */
function resolveParts(file: FileConfig): PartOptions {
  const parts = collectOptions(FILE_SCHEMA, file);
  const { mod_stream_management: module } = file.modules;
  if (parts.streamManagement === undefined || module === false || module.stale_h.enabled) {
    return parts;
  }
  return { ...parts, streamManagement: { ...parts.streamManagement, staleHMs: 0 } };
}

function resolveOtlp(
  otlp: FileConfig["observe"]["otlp"],
  surroundings: Surroundings,
): OtlpConfig | undefined {
  if (otlp === undefined) return undefined;
  return {
    endpoint: otlp.endpoint,
    headers: new Map(
      Object.entries(otlp.headers).map(([name, value]) => [
        name,
        resolveSecret(value, ["observe", "otlp", "headers", name], surroundings),
      ]),
    ),
    cafile: otlp.cafile === undefined ? undefined : surroundings.absolute(otlp.cafile),
    signals: otlp.signals,
    sampleRatio: otlp.sample_ratio,
    addresses: otlp.addresses,
    resource: otlp.resource,
    timeoutMs: otlp.timeout * 1000,
    batchIntervalMs: otlp.batch_interval * 1000,
    metricsIntervalMs: otlp.metrics_interval * 1000,
    maxQueued: otlp.max_queued,
  };
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
      socket: admin.socket === undefined ? undefined : surroundings.absolute(admin.socket),
      token: admin.token === undefined
        ? undefined
        : resolveSecret(admin.token, ["listen", "admin", "token"], surroundings),
      tokens: admin.tokens.map(({ name, role, token }, position) => ({
        name,
        role,
        token: resolveSecret(
          token,
          ["listen", "admin", "tokens", position, "token"],
          surroundings,
        ),
      })),
      tls: admin.tls && {
        ...resolveCertificate(admin.tls.certfile, admin.tls.keyfile, surroundings),
        cafile: admin.tls.cafile === undefined
          ? undefined
          : surroundings.absolute(admin.tls.cafile),
      },
      certificates: admin.certificates.map(({ name, role }) => ({
        name: normalizeDomain(name),
        role,
      })),
    },
  };
}

function resolveGlobalDistrib(file: FileConfig, surroundings: Surroundings): GlobalDistribConfig {
  const module = file.modules.mod_global_distrib;
  const { connections, redis } = module;
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
    connections: {
      endpoints: connections.endpoints ?? [{ host: localHost, port: DEFAULT_LINK_PORT }],
      advertisedEndpoints: connections.advertised_endpoints,
      seeds: connections.seeds,
      cluster: connections.cluster,
      tls: tls === false ? undefined : {
        ...resolveCertificate(tls.certfile, tls.keyfile, surroundings),
        cafile: surroundings.absolute(tls.cafile),
      },
    },
    redis: {
      password: redisSecret("password"),
      tls: resolveRedisTls(redis.tls, surroundings),
      sentinelPassword: redisSecret("sentinel_password"),
    },
  };
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
      mod_carboncopy: tables.mod_carboncopy !== false,
      mod_ping: tables.mod_ping !== false,
      mod_time: tables.mod_time !== false,
      mod_version: tables.mod_version !== false,
      mod_last: tables.mod_last !== false,
      mod_mam: tables.mod_mam !== false && archiveOptions(tables.mod_mam),
      mod_blocking: tables.mod_blocking !== false,
      mod_privacy: tables.mod_privacy !== false && privacyBounds(tables.mod_privacy),
      mod_private: tables.mod_private !== false && privateBounds(tables.mod_private),
      mod_pubsub: tables.mod_pubsub !== false && pubsubLimits(tables.mod_pubsub),
      mod_roster: tables.mod_roster !== false && {
        // A version does not know of changes in a directory.
        hasVersions: (tables.mod_roster?.versioning ?? true) && !hasSharedRoster(file, host),
      },
      mod_offline: tables.mod_offline !== undefined && {
        maxMessages: tables.mod_offline.access_max_user_messages,
        maxBytes: tables.mod_offline.max_user_bytes,
        lifetimeMs: tables.mod_offline.expire_after * 1000,
      },
      mod_register: tables.mod_register !== false && registerOptions(tables.mod_register),
      mod_vcard: tables.mod_vcard !== false && vcardOptions(tables.mod_vcard),
    }];
  }));
}

/** Resolves the archives of the global host's rooms; undefined where they are off. */
function resolveRoomArchives(file: FileConfig): RoomArchiveOptions | undefined {
  const table = archiveTable(file);
  if (table === false) return undefined;
  const { muc, retention, ...people } = table ?? MOD_MAM.parse({});
  if (muc === false) return undefined;
  const maxLimit = muc.max_result_limit ?? people.max_result_limit;
  const maxAge = muc.retention.max_age ?? retention.max_age;
  return {
    defaultLimit: Math.min(muc.default_result_limit ?? people.default_result_limit, maxLimit),
    maxLimit,
    hasChatMarkers: muc.archive_chat_markers ?? people.archive_chat_markers,
    isSearched: people.full_text_search,
    maxAgeMs: maxAge === undefined ? Infinity : maxAge * 1000,
  };
}

/** Resolves the rooms of the global host; undefined where they are off. */
function resolveMucLight(file: FileConfig): MucLightConfig | undefined {
  const table = mucLightTable(file);
  if (table === undefined || table === false) return undefined;
  return {
    domain: roomDomainOf(table.host, file.modules.mod_global_distrib.global_host),
    areEqual: table.equal_occupants,
    canAllInvite: table.all_can_invite,
    canAllConfigure: table.all_can_configure,
    hasBlocking: table.blocking,
    maxOccupants: table.max_occupants,
    roomsPerUser: table.rooms_per_user,
    roomsPerPage: table.rooms_per_page,
    maxConfigBytes: table.max_config_bytes,
    fields: table.config_schema.map(({ field, string_value: defaultValue }) => ({
      name: field,
      defaultValue,
    })),
  };
}

/** Resolves the Multi-User Chat rooms of the global host; undefined where they are off. */
function resolveMuc(file: FileConfig): MucConfig | undefined {
  const table = mucTable(file);
  if (table === undefined || table === false) return undefined;
  const room = table.default_room;
  return {
    domain: roomDomainOf(table.host, file.modules.mod_global_distrib.global_host),
    historySize: table.history_size,
    maxUsers: table.max_users,
    maxCreatedRooms: table.max_created_rooms,
    maxUserConferences: table.max_user_conferences,
    maxRoomId: table.max_room_id,
    maxRoomName: table.max_room_name,
    maxRoomDescription: table.max_room_desc,
    maxAffiliations: table.max_affiliations,
    roomsPerPage: table.rooms_per_page,
    messagesPerSec: table.max_message_rate,
    defaultRoom: {
      title: room.title,
      description: room.description,
      persistent: room.persistent,
      public: room.public,
      moderated: room.moderated,
      membersOnly: room.members_only,
      membersByDefault: room.members_by_default,
      allowChangeSubject: room.allow_change_subj,
      allowUserInvites: room.allow_user_invites,
      allowPrivateMessages: room.allow_private_messages,
      passwordProtected: room.password_protected,
      password: room.password,
      anonymous: room.anonymous,
      maxUsers: Math.min(room.max_users, table.max_users),
    },
  };
}

function privacyBounds(table: z.output<typeof MOD_PRIVACY> = MOD_PRIVACY.parse({})): PrivacyBounds {
  return { maxLists: table.max_lists, maxItems: table.max_items, maxBytes: table.max_bytes };
}

function vcardOptions(table: z.output<typeof MOD_VCARD> = MOD_VCARD.parse({})) {
  return {
    maxBytes: table.max_bytes,
    search: table.search
      ? { matches: table.matches, findsAll: table.search_finds === "all" }
      : undefined,
  };
}

function registerOptions(table: z.output<typeof MOD_REGISTER> = MOD_REGISTER.parse({})) {
  return {
    allowRemoval: table.allow_removal,
    passwordStrength: table.password_strength,
    registration: table.allow_registration
      ? {
        ipAccess: table.ip_access,
        timeoutMs: table.registration_timeout * 1000,
      }
      : undefined,
  };
}

function archiveOptions(
  table: z.output<typeof MOD_MAM> = MOD_MAM.parse({}),
): false | ArchiveHostOptions {
  return table.pm !== false && {
    defaultLimit: Math.min(table.default_result_limit, table.max_result_limit),
    maxLimit: table.max_result_limit,
    hasChatMarkers: table.archive_chat_markers,
    hasGroupchats: table.pm.archive_groupchats,
    hasStanzaIds: !table.no_stanzaid_element,
    isSearched: table.full_text_search,
    maxAgeMs: table.retention.max_age === undefined ? Infinity : table.retention.max_age * 1000,
  };
}

function privateBounds(table: z.output<typeof MOD_PRIVATE> = MOD_PRIVATE.parse({})): PrivateBounds {
  return { maxElements: table.max_elements, maxBytes: table.max_bytes };
}

function pubsubLimits(table: z.output<typeof MOD_PUBSUB> = MOD_PUBSUB.parse({})) {
  return {
    maxNodes: table.max_nodes,
    maxItemsPerNode: table.max_items_node,
    maxItemBytes: table.max_payload_size,
    maxBytes: table.max_bytes,
  };
}

function collectNotes(
  { pools, ldapPools = new Map(), serverPools = new Map(), users, data = new Map() }:
    Config["storage"],
  globalHost: string,
  /** Modules of the global host; false for those that it does without. */
  modules: { readonly [Module in keyof typeof STORING_MODULES]?: unknown },
): readonly ConfigNote[] {
  const plain = [...pools].filter(([, { address }]) =>
    address.tls === undefined && isTlsDefault(address.host)
  ).map(([tag, { address }]): ConfigNote => ({
    path: `outgoing_pools.rdbms.${tag}.connection.tls`,
    text: `passwords and data go to ${address.host} without encryption`,
  }));
  const plainLdap = plainDirectories(ldapPools).map(([tag, host]): ConfigNote => ({
    path: `outgoing_pools.ldap.${tag}.connection.encrypt`,
    text: `passwords of people go to ${host} without encryption`,
  }));
  const plainOthers = plainServers(serverPools).map(([pool, host]): ConfigNote => ({
    path: `outgoing_pools.${pool}.connection.tls`,
    text: `passwords and data go to ${host} without encryption`,
  }));
  const isBuiltIn = (places: ReadonlyMap<string, DataPlace> | undefined) =>
    places?.get(globalHost)?.backend === "internal";
  const kinds = Object.entries(STORING_MODULES)
    .filter(([module, kind]) =>
      modules[module as keyof typeof modules] !== false && isBuiltIn(data.get(kind))
    )
    .map(([, kind]) => kind);
  const kept = isBuiltIn(users)
    ? ["accounts"]
    : kinds.length > 0
    ? [`data (${kinds.join(", ")})`]
    : [];
  return [
    ...plain,
    ...plainLdap,
    ...plainOthers,
    ...kept.map((what): ConfigNote => ({
      path: "storage.internal",
      text: `${what} of a globally distributed host are kept in the built-in store, which is ` +
        "for one machine only: nodes of other machines do not see them",
    })),
  ];
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
