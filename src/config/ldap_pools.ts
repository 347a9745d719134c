import type { z } from "zod";
import type {
  LdapPlace,
  LdapPoolOptions,
  SharedRosterPlace,
  VcardMapping,
} from "../storage/mod.ts";
import { DEFAULT_VCARD_MAP } from "../storage/mod.ts";
import type { FileConfig } from "./file_schema.ts";
import { isLoopbackHost } from "./loopback.ts";
import { nearestKey } from "./nearest_key.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import type { PartialFile } from "./partial_file.ts";
import type { MOD_SHARED_ROSTER_LDAP, VCARD_LDAP } from "./schema_ldap.ts";
import { AUTH_LDAP } from "./schema_ldap.ts";
import { Secret } from "./secret.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

type Accounts = z.output<typeof AUTH_LDAP>;
type SharedRoster = z.output<typeof MOD_SHARED_ROSTER_LDAP>;
type PartialConnection = NonNullable<
  NonNullable<NonNullable<PartialFile["outgoing_pools"]>["ldap"]>[string]
>["connection"];

const DEFAULT_TAG = "default";
/** Tag of the pool that checks passwords where none is named, if it exists. */
const BIND_TAG = "bind";

/** Checks the pools of directories, and what each host keeps there. */
export function checkLdap(file: PartialFile, surroundings: Surroundings): void {
  for (const [tag, pool] of Object.entries(file.outgoing_pools?.ldap ?? {})) {
    if (pool === undefined) continue;
    checkConnection(pool.connection, ["outgoing_pools", "ldap", tag, "connection"], surroundings);
  }
  for (const host of file.hosts ?? []) checkHost(file, host, surroundings);
}

/** Resolves the pools of a file without mistakes, by tag. */
export function resolveLdapPools(
  file: FileConfig,
  surroundings: Surroundings,
): ReadonlyMap<string, LdapPoolOptions> {
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : surroundings.absolute(path);
  return new Map(
    Object.entries(file.outgoing_pools.ldap).map(([tag, pool]) => {
      const { connection } = pool;
      const { servers, port, tls } = connection;
      const encryption = encryptionOf(connection);
      const path = ["outgoing_pools", "ldap", tag, "connection", "password"];
      return [tag, {
        servers,
        port: port ?? (encryption === "tls" ? 636 : 389),
        encryption,
        tls: {
          cafile: absolute(tls.cafile),
          certfile: absolute(tls.certfile),
          keyfile: absolute(tls.keyfile ?? tls.certfile),
        },
        rootDn: connection.rootdn,
        password: new Secret(surroundings.secret(connection.password, path) ?? ""),
        connectIntervalMs: connection.connect_interval,
        bounds: {
          workers: pool.workers,
          maxWaiting: pool.max_waiting,
          waitTimeoutMs: pool.call_timeout,
          connectTimeoutMs: connection.connect_timeout,
          statementTimeoutMs: connection.query_timeout,
        },
      }];
    }),
  );
}

/** Resolves the place of a host's accounts, or of their vCards, in a directory. */
export function ldapPlaceOf(file: FileConfig, host: string, kind: "users" | "vcard"): LdapPlace {
  const own = kind === "vcard" ? vcardOf(file, host)?.ldap : undefined;
  const accounts = accountsOf(file, host);
  // The whole file has its defaults filled in.
  const map = own?.vcard_map as z.output<typeof VCARD_LDAP>["vcard_map"];
  // The checks have found no mistake, so there is a base.
  const whole = {
    ...AUTH_LDAP.parse({ base: "dc=none" }),
    ...accounts,
    ...defined(own ?? {}),
  } as Accounts;
  const { filter, local_filter: local, deref, base, uids, id_attribute: idAttribute } = whole;
  const pool = whole.pool_tag ?? DEFAULT_TAG;
  return {
    backend: "ldap",
    pool,
    bindPool: bindTagOf(file, whole) ?? pool,
    accounts: {
      base,
      uids: uids.map(({ attr, format }) => ({ attribute: attr, format })),
      filter,
      localFilter: local,
      deref,
      idAttribute,
    },
    vcardMap: map?.map((each): VcardMapping => ({
      field: each.vcard_field,
      pattern: each.ldap_pattern,
      attribute: each.ldap_field ?? "",
    })) ?? DEFAULT_VCARD_MAP,
  };
}

/** Resolves the shared rosters, by host. */
export function resolveSharedRosters(file: FileConfig): ReadonlyMap<string, SharedRosterPlace> {
  return new Map(file.hosts.flatMap((host): [string, SharedRosterPlace][] => {
    const table = sharedRosterOf(file, host) as SharedRoster | undefined;
    if (table === undefined) return [];
    return [[normalizeDomain(host), sharedRosterPlace(table, accountsOf(file, host)?.base)]];
  }));
}

/** Returns the addresses of directories to which passwords go without encryption, by tag. */
export function plainDirectories(
  pools: ReadonlyMap<string, LdapPoolOptions>,
): readonly (readonly [tag: string, host: string])[] {
  return [...pools].flatMap(([tag, { servers, encryption }]) => {
    const remote = servers.find((host) => !isLoopbackHost(host));
    return encryption === "none" && remote !== undefined ? [[tag, remote] as const] : [];
  });
}

/** True for a host that has a shared roster. */
export function hasSharedRoster(file: PartialFile, host: string): boolean {
  return sharedRosterOf(file, host) !== undefined;
}

function sharedRosterPlace(table: SharedRoster, base: string | undefined): SharedRosterPlace {
  const expression = table.memberattr_format_re;
  return {
    pool: table.pool_tag ?? DEFAULT_TAG,
    options: {
      base: table.base ?? base ?? "",
      deref: table.deref,
      groupAttribute: table.groupattr,
      groupDescription: table.groupdesc ?? table.groupattr,
      userDescription: table.userdesc,
      userUid: table.useruid,
      memberAttribute: table.memberattr,
      memberFormat: table.memberattr_format,
      memberExpression: expression === "" ? undefined : new RegExp(expression, "iu"),
      rosterFilter: table.rfilter,
      groupFilter: table.gfilter,
      userFilter: table.ufilter,
      filter: table.filter,
      checksAccounts: table.auth_check,
      hasOwnRoster: table.own_roster,
      accounts: {
        maxValues: table.user_cache_size,
        lifetimeMs: table.user_cache_validity * 1000,
      },
      groups: {
        maxValues: table.group_cache_size,
        lifetimeMs: table.group_cache_validity * 1000,
      },
    },
  };
}

function checkConnection(
  connection: PartialConnection,
  path: KeyPath,
  surroundings: Surroundings,
): void {
  if (connection === undefined) return;
  const { rootdn = "", password, tls = {} } = connection;
  const note = (key: KeyPath, problem: string) => {
    surroundings.mistakes.push({ path: [...path, ...key], problem });
  };
  const given = surroundings.secret(password, [...path, "password"]);
  if (rootdn !== "" && password === undefined) note(["password"], "missing; rootdn needs it");
  // RFC 4513 §5.1.2: a server takes it for no login at all.
  else if (rootdn !== "" && given === "") {
    note(["password"], "expected a password, found an empty string");
  }
  if (rootdn === "" && password !== undefined) note(["password"], "not allowed without rootdn");
  for (const key of ["cafile", "certfile", "keyfile"] as const) {
    surroundings.checkFile(tls[key], [...path, "tls", key]);
  }
  if (tls.keyfile !== undefined && tls.certfile === undefined) {
    note(["tls", "keyfile"], "not allowed without certfile, to which it belongs");
  }
}

function checkHost(file: PartialFile, host: string, { mistakes }: Surroundings): void {
  const { config, written } = hostConfigOf(file, host);
  const pathOf = (isOwn: boolean, ...path: KeyPath) =>
    isOwn ? ["host_config", written, ...path] : path;
  const accounts = accountsOf(file, host);
  const authPath = pathOf(config?.auth?.ldap !== undefined, "auth", "ldap");
  if ((config?.auth?.backend ?? file.auth?.backend) === "ldap") {
    if (accounts === undefined) {
      const path = pathOf(config?.auth?.backend !== undefined, "auth", "ldap");
      mistakes.push({ path, problem: 'missing; the backend "ldap" needs it' });
    } else {
      checkTag(file, accounts.pool_tag, [...authPath, "pool_tag"], mistakes);
      checkTag(file, bindTagOf(file, accounts), [...authPath, "bind_pool_tag"], mistakes);
    }
    if (file.auth?.mechanisms?.includes("PLAIN") === false) {
      const problem = `expected PLAIN among them: the accounts of "${host}" are in a directory, ` +
        "which checks a password and knows no keys";
      mistakes.push({ path: ["auth", "mechanisms"], problem });
    }
    const register = config?.modules?.mod_register ?? file.modules?.mod_register;
    if (register !== undefined && register !== false && register.allow_registration === true) {
      const isOwn = config?.modules?.mod_register !== undefined;
      mistakes.push({
        path: pathOf(isOwn, "modules", "mod_register", "allow_registration"),
        problem: `not allowed: the accounts of "${host}" are in a directory, which is only read`,
      });
    }
  }
  const vcard = vcardOf(file, host);
  if (vcard?.backend === "ldap") {
    const isOwn = config?.modules?.mod_vcard !== undefined;
    const path = pathOf(isOwn, "modules", "mod_vcard", "ldap");
    needBase(vcard.ldap?.base ?? accounts?.base, [...path, "base"], mistakes);
    checkTag(file, vcard.ldap?.pool_tag ?? accounts?.pool_tag, [...path, "pool_tag"], mistakes);
    for (const [at, each] of (vcard.ldap?.vcard_map ?? []).entries()) {
      const isNeeded = each.vcard_field === "PHOTO" || (each.ldap_pattern ?? "%s").includes("%s");
      if (!isNeeded || each.ldap_field !== undefined) continue;
      mistakes.push({ path: [...path, "vcard_map", at, "ldap_field"], problem: "missing" });
    }
  }
  const shared = sharedRosterOf(file, host);
  if (shared === undefined) return;
  const isOwn = config?.modules?.mod_shared_roster_ldap !== undefined;
  const path = pathOf(isOwn, "modules", "mod_shared_roster_ldap");
  needBase(shared.base ?? accounts?.base, [...path, "base"], mistakes);
  checkTag(file, shared.pool_tag, [...path, "pool_tag"], mistakes);
}

function needBase(
  base: string | undefined,
  path: KeyPath,
  mistakes: Surroundings["mistakes"],
): void {
  if (base === undefined) mistakes.push({ path, problem: "missing; so is auth.ldap.base" });
}

function checkTag(
  file: PartialFile,
  tag: string = DEFAULT_TAG,
  path: KeyPath,
  mistakes: Surroundings["mistakes"],
): void {
  const pools = file.outgoing_pools?.ldap ?? {};
  if (Object.hasOwn(pools, tag)) return;
  const nearest = nearestKey(tag, Object.keys(pools));
  const question = nearest === undefined ? "" : `, did you mean "${nearest}"?`;
  mistakes.push({ path, problem: `there is no pool outgoing_pools.ldap.${tag}${question}` });
}

function bindTagOf(
  file: PartialFile,
  { bind_pool_tag: bind, pool_tag: own }: {
    readonly bind_pool_tag?: string | undefined;
    readonly pool_tag?: string | undefined;
  },
): string | undefined {
  const hasBind = Object.hasOwn(file.outgoing_pools?.ldap ?? {}, BIND_TAG);
  return bind ?? (hasBind ? BIND_TAG : own);
}

function encryptionOf(
  { encrypt, servers }: FileConfig["outgoing_pools"]["ldap"][string]["connection"],
): "none" | "tls" | "starttls" {
  return encrypt ?? (servers.every(isLoopbackHost) ? "none" : "tls");
}

/** Returns the entry of a host in `host_config`, with its name as written. */
function hostConfigOf(file: PartialFile, host: string) {
  const name = normalizeDomain(host);
  const [written, config] = Object.entries(file.host_config ?? {})
    .find(([each]) => normalizeDomain(each) === name) ?? [];
  return { written: written ?? host, config };
}

function accountsOf(file: PartialFile, host: string) {
  return hostConfigOf(file, host).config?.auth?.ldap ?? file.auth?.ldap;
}

function vcardOf(file: PartialFile, host: string) {
  const table = hostConfigOf(file, host).config?.modules?.mod_vcard ?? file.modules?.mod_vcard;
  return table === false ? undefined : table;
}

function sharedRosterOf(file: PartialFile, host: string) {
  const own = hostConfigOf(file, host).config?.modules?.mod_shared_roster_ldap;
  const table = own ?? file.modules?.mod_shared_roster_ldap;
  return table === false ? undefined : table;
}

/** Returns the entries of a table that have a value. */
function defined<T extends object>(table: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(table).filter(([, value]) => value !== undefined),
  ) as Partial<T>; // fewer of the same entries
}
