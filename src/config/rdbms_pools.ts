import { isIP } from "node:net";
import type {
  BackendId,
  DataKind,
  DataPlace,
  SqlAddress,
  SqlDriver,
  SqlPoolOptions,
} from "../storage/mod.ts";
import { backendRow, kindProblem } from "../storage/mod.ts";
import type { FileConfig } from "./file_schema.ts";
import { ldapPlaceOf } from "./ldap_pools.ts";
import { isLoopbackHost } from "./loopback.ts";
import { nearestKey } from "./nearest_key.ts";
import { normalizeDomain } from "./normalize_domain.ts";
import { MSSQL_PORT, ODBC_FILE, odbcServerOf } from "./odbc_entry.ts";
import { parseConnectionString, readOdbcEntry } from "./odbc_entry.ts";
import type { PartialFile } from "./partial_file.ts";
import { joinWords } from "./schema_walk.ts";
import { Secret } from "./secret.ts";
import type { Mistake } from "./shape_findings.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

const DEFAULT_PORTS: Readonly<Record<SqlDriver, number>> = {
  pgsql: 5432,
  mysql: 3306,
  mssql: MSSQL_PORT,
};
/** Engines that a URL can name. */
type UrlDriver = Exclude<SqlDriver, "mssql">;

const URL_SCHEMES: ReadonlyMap<string, Pick<Place, "product"> & { readonly driver: UrlDriver }> =
  new Map([
    ["postgresql:", { driver: "pgsql" }],
    ["postgres:", { driver: "pgsql" }],
    // It may be MariaDB: both are reached in the same way.
    ["mysql:", { driver: "mysql" }],
    ["mariadb:", { driver: "mysql", product: "mariadb" }],
  ]);
/** Tag of the pool that is used where none is named. */
const DEFAULT_TAG = "default";

/** Modules that keep data, with the kind of that data. */
export const STORING_MODULES = {
  mod_last: "last",
  mod_mam: "mam",
  mod_muc_light: "muc_light",
  mod_muc: "muc",
  mod_privacy: "privacy",
  mod_offline: "offline",
  mod_private: "private",
  mod_pubsub: "pep",
  mod_roster: "roster",
  mod_vcard: "vcard",
} as const satisfies Record<
  string,
  DataKind
>;

type StoringModule = keyof typeof STORING_MODULES;

type PartialPool = NonNullable<NonNullable<PartialFile["outgoing_pools"]>["rdbms"]>[string];
type PartialConnection = NonNullable<NonNullable<PartialPool>["connection"]>;

/** Server, database and login of a pool. */
interface Place {
  readonly driver: SqlDriver;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  /** Password of `url` or `server`; undefined when it has none. */
  readonly password: string | undefined;
  readonly tdsVersion?: string;
  readonly product?: "mariadb";
}

/** A mistake of one option; `problem` reads on from its path. */
type Note = (key: string, problem: string) => void;

/** Checks the pools of SQL databases, and which of them holds which data of which host. */
export function checkRdbms(file: PartialFile, surroundings: Surroundings): void {
  const { mistakes } = surroundings;
  for (const [tag, pool] of Object.entries(file.outgoing_pools?.rdbms ?? {})) {
    if (pool === undefined) continue;
    const path = ["outgoing_pools", "rdbms", tag];
    checkScope(file, pool, path, mistakes);
    if (pool.connection === undefined) continue;
    checkConnection(file, pool.connection, [...path, "connection"], surroundings);
  }
  for (const host of file.hosts ?? []) {
    checkPlace(file, host, { kind: "users", ...usersOf(file, host) }, mistakes);
    for (const module of storingModules()) {
      const own = dataOf(file, host, module);
      if (own !== undefined) {
        checkPlace(file, host, { kind: STORING_MODULES[module], ...own }, mistakes);
      }
    }
  }
}

/** Resolves the pools of a file without mistakes, by tag. */
export function resolvePools(
  file: FileConfig,
  surroundings: Surroundings,
): ReadonlyMap<string, SqlPoolOptions> {
  return new Map(
    Object.entries(file.outgoing_pools.rdbms).map(([tag, pool]) => {
      const { connection } = pool;
      const path = ["outgoing_pools", "rdbms", tag, "connection"];
      // The checks have found no mistake, so there is a place.
      const { driver, password, ...address } = placeOf(
        file,
        connection,
        path,
        surroundings,
        () => {},
      )!;
      const given = surroundings.secret(connection.password, [...path, "password"]);
      return [tag, {
        scope: pool.scope,
        host: pool.host === undefined ? undefined : normalizeDomain(pool.host),
        driver,
        address: {
          ...address,
          password: new Secret(given ?? password ?? ""),
          tls: resolveTls(connection.tls ?? isTlsDefault(address.host), surroundings),
        },
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

/** Resolves the place of each host's accounts. */
export function resolveUsers(file: FileConfig): ReadonlyMap<string, DataPlace> {
  return new Map(file.hosts.map((host): [string, DataPlace] => {
    return [normalizeDomain(host), placeIn(file, host, { kind: "users", ...usersOf(file, host) })];
  }));
}

/** Resolves the places of data that a module keeps elsewhere than with the accounts. */
export function resolveData(
  file: FileConfig,
): ReadonlyMap<DataKind, ReadonlyMap<string, DataPlace>> {
  return new Map(
    storingModules().map((module) => {
      const kind = STORING_MODULES[module];
      const places = file.hosts.flatMap((host): [string, DataPlace][] => {
        const own = dataOf(file, host, module);
        const name = normalizeDomain(host);
        if (own !== undefined) return [[name, placeIn(file, host, { kind, ...own })]];
        return mayHold(usersOf(file, host).backend, kind) ? [] : [[name, { backend: "internal" }]];
      });
      return [kind, new Map(places)];
    }),
  );
}

function placeIn(
  file: FileConfig,
  host: string,
  { kind, backend, tag }: NamedPlace & { readonly kind: DataKind },
): DataPlace {
  if (backend === "ldap") return ldapPlaceOf(file, host, kind === "users" ? kind : "vcard");
  // The checks have found no mistake, so no data are in Redis.
  return backend === "internal" || backend === "redis"
    ? { backend: "internal" }
    : { backend, pool: tag };
}

/**
 * True for data that are with the accounts unless their module says otherwise. A directory is read
 * alone, so it holds none of them.
 */
function mayHold(accounts: BackendId, kind: DataKind): boolean {
  return accounts !== "ldap" && kindProblem(accounts, kind) === undefined;
}

function storingModules(): StoringModule[] {
  return Object.keys(STORING_MODULES) as StoringModule[]; // the keys of that very object
}

function checkScope(
  file: PartialFile,
  { scope, host }: NonNullable<PartialPool>,
  path: KeyPath,
  mistakes: Mistake[],
): void {
  if (scope === "single_host" && host === undefined) {
    mistakes.push({
      path: [...path, "host"],
      problem: 'missing; the scope "single_host" needs it',
    });
  }
  if (host === undefined) return;
  if (scope !== "single_host") {
    const problem = 'not allowed without scope = "single_host"';
    mistakes.push({ path: [...path, "host"], problem });
    return;
  }
  const names = (file.hosts ?? []).map(normalizeDomain);
  if (file.hosts === undefined || names.includes(normalizeDomain(host))) return;
  const allowed = joinWords(names.map((name) => `"${name}"`));
  const problem = `expected one of hosts (${allowed}), found "${host}"`;
  mistakes.push({ path: [...path, "host"], problem });
}

function checkConnection(
  file: PartialFile,
  connection: PartialConnection,
  path: KeyPath,
  surroundings: Surroundings,
): void {
  const note: Note = (key, problem) => {
    surroundings.mistakes.push({ path: [...path, ...key.split(".")], problem });
  };
  const { tls } = connection;
  surroundings.secret(connection.password, [...path, "password"]);
  if (typeof tls === "object") {
    for (const key of ["cafile", "certfile", "keyfile"] as const) {
      surroundings.checkFile(tls[key], [...path, "tls", key]);
    }
    if (tls.keyfile !== undefined && tls.certfile === undefined) {
      note("tls.keyfile", "not allowed without certfile, to which it belongs");
    }
  }
  const place = placeOf(file, connection, path, surroundings, note);
  if (place === undefined) return;
  const { driver, host } = place;
  if (tls !== undefined && tls !== false && host.startsWith("/")) {
    note("tls", `not allowed with a Unix socket, found "${host}"`);
  }
  if (driver === "mssql" && host.startsWith("/")) {
    note("host", `expected a host name or an IP address, found "${host}"`);
  }
  const isEncrypted = tls === undefined ? isTlsDefault(host) : tls !== false;
  if (isEncrypted && driver === "mysql" && isIP(host) !== 0) {
    const key = connection.url === undefined ? "host" : "url";
    note(
      key,
      `expected a host name, found "${host}": with TLS, the driver compares certificates of MySQL ` +
        "and MariaDB with names alone",
    );
  }
}

/** Returns the server and login of a connection; undefined, and notes why, when they are unclear. */
function placeOf(
  file: PartialFile,
  connection: PartialConnection,
  path: KeyPath,
  surroundings: Surroundings,
  note: Note,
): Place | undefined {
  if (connection.server !== undefined) {
    return placeOfServer(file, connection, path, surroundings, note);
  }
  if (connection.odbc_file !== undefined) note("odbc_file", "not allowed without server");
  if (connection.url === undefined) return placeOfFields(file, connection, note);
  for (const key of ["driver", "host", "port", "database", "username"] as const) {
    if (connection[key] !== undefined) note(key, "not allowed together with url, which says it");
  }
  const url = surroundings.secret(connection.url, [...path, "url"]);
  if (url === undefined) return undefined;
  const place = placeOfUrl(url);
  if (place === undefined) {
    // The URL may hold a password, so it is not shown.
    note(
      "url",
      "expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE or mysql://… without further " +
        "parameters",
    );
    return undefined;
  }
  if (place.password !== undefined && connection.password !== undefined) {
    note("password", "not allowed together with the password in url");
  }
  const serverType = file.rdbms_server_type;
  if (serverType !== undefined && serverType !== place.driver) {
    note("url", `contradicts rdbms_server_type = "${serverType}": it names ${place.driver}`);
  }
  return place;
}

function placeOfFields(
  file: PartialFile,
  { driver: ownDriver, host = "localhost", port, database, username }: PartialConnection,
  note: Note,
): Place | undefined {
  const serverType = file.rdbms_server_type;
  const driver = ownDriver ?? serverType;
  if (ownDriver !== undefined && serverType !== undefined && ownDriver !== serverType) {
    note("driver", `contradicts rdbms_server_type = "${serverType}"`);
  }
  if (driver === undefined) note("driver", "missing; so are url and rdbms_server_type");
  if (database === undefined) note("database", "missing; so is url");
  if (username === undefined) note("username", "missing; so is url");
  if (driver === undefined || database === undefined || username === undefined) return undefined;
  const address = { host, port: port ?? DEFAULT_PORTS[driver], database, username };
  return { driver, ...address, password: undefined };
}

/** Looks up the data source that `server` names, as a driver of ODBC would. */
function placeOfServer(
  file: PartialFile,
  { server, odbc_file: odbcFile = ODBC_FILE, password, ...others }: PartialConnection,
  path: KeyPath,
  surroundings: Surroundings,
  note: Note,
): Place | undefined {
  for (const key of ["url", "host", "port", "database", "username"] as const) {
    if (others[key] !== undefined) note(key, "not allowed together with server, which says it");
  }
  const driver = others.driver ?? file.rdbms_server_type;
  if (driver !== "mssql") {
    const found = driver === undefined ? "missing" : `"${driver}"`;
    note("server", `needs rdbms_server_type = "mssql", which is ${found}`);
  }
  const text = surroundings.secret(server, [...path, "server"]);
  if (text === undefined) return undefined;
  const login = parseConnectionString(text);
  if (login === undefined) {
    // The text may hold a password, so it is not shown.
    note("server", 'expected "DSN=<name>;UID=<user>;PWD=<password>" without anything else');
    return undefined;
  }
  if (login.password !== undefined && password !== undefined) {
    note("password", "not allowed together with PWD in server");
  }
  const entries = surroundings.text(odbcFile, [...path, "odbc_file"]);
  if (entries === undefined) return undefined;
  const entry = readOdbcEntry(entries, login.dsn);
  if (entry === undefined) {
    note("server", `there is no entry [${login.dsn}] in ${surroundings.absolute(odbcFile)}`);
    return undefined;
  }
  const { server: address, problems } = odbcServerOf(entry);
  for (const problem of problems) note("server", `the entry [${login.dsn}] is wrong: ${problem}`);
  if (address === undefined) return undefined;
  return { ...address, driver: "mssql", username: login.username, password: login.password };
}

function placeOfUrl(text: string): (Place & { readonly driver: UrlDriver }) | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, pathname, username, password, search, hash } = new URL(text);
  const scheme = URL_SCHEMES.get(protocol);
  if (scheme === undefined || hostname === "" || username === "") return undefined;
  if (search !== "" || hash !== "" || !/^\/[^/]+$/.test(pathname)) return undefined;
  try {
    return {
      ...scheme,
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? DEFAULT_PORTS[scheme.driver] : Number(port),
      database: decodeURIComponent(pathname.slice(1)),
      username: decodeURIComponent(username),
      password: password === "" ? undefined : decodeURIComponent(password),
    };
  } catch {
    return undefined; // a % that is no escape
  }
}

/**
 * Returns driver and address that a URL names, as `outgoing_pools.rdbms.TAG.connection.url` does;
 * undefined for another text.
 */
export function sqlAddressOf(
  url: string,
  { password, cafile }: {
    /** Password that the URL does not show. */
    readonly password?: string | undefined;
    /** Authorities of the server's certificate. @default those that the runtime trusts */
    readonly cafile?: string | undefined;
  } = {},
): { readonly driver: UrlDriver; readonly address: SqlAddress } | undefined {
  const place = placeOfUrl(url);
  if (place === undefined) return undefined;
  const { driver, password: own, ...address } = place;
  const isEncrypted = cafile !== undefined || isTlsDefault(address.host);
  return {
    driver,
    address: {
      ...address,
      password: new Secret(password ?? own ?? ""),
      tls: isEncrypted ? { cafile } : undefined,
    },
  };
}

/** True for servers to which connections are encrypted unless the file says otherwise. */
export function isTlsDefault(host: string): boolean {
  return !host.startsWith("/") && !isLoopbackHost(host);
}

function resolveTls(
  tls: boolean | NonNullable<PartialConnection["tls"]>,
  surroundings: Surroundings,
) {
  if (tls === false) return undefined;
  const { cafile, certfile, keyfile } = tls === true ? {} : tls;
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : surroundings.absolute(path);
  return {
    cafile: absolute(cafile),
    certfile: absolute(certfile),
    keyfile: absolute(keyfile ?? certfile),
  };
}

/** Backend and pool of some data of a host, with the paths of the options that say so. */
interface NamedPlace {
  readonly backend: BackendId;
  readonly backendPath: KeyPath;
  readonly tag: string;
  readonly tagPath: KeyPath;
}

/** Returns the entry of a host in `host_config`, with its name as written. */
function hostConfigOf(file: PartialFile, host: string) {
  const name = normalizeDomain(host);
  const [written, config] = Object.entries(file.host_config ?? {})
    .find(([each]) => normalizeDomain(each) === name) ?? [];
  return { written: written ?? host, config };
}

/** Returns the place of a host's accounts. */
function usersOf(file: PartialFile, host: string): NamedPlace {
  const { written, config } = hostConfigOf(file, host);
  const own = config?.auth;
  const ownPath = ["host_config", written, "auth"];
  return {
    backend: own?.backend ?? file.auth?.backend ?? "internal",
    backendPath: own?.backend === undefined ? ["auth", "backend"] : [...ownPath, "backend"],
    tag: own?.pool_tag ?? file.auth?.pool_tag ?? DEFAULT_TAG,
    tagPath: own?.pool_tag === undefined ? ["auth", "pool_tag"] : [...ownPath, "pool_tag"],
  };
}

/**
 * Returns the place that a host's module names for its data. Undefined where it names none, so that
 * the data is with the accounts.
 */
function dataOf(file: PartialFile, host: string, module: StoringModule): NamedPlace | undefined {
  const { written, config } = hostConfigOf(file, host);
  const own = config?.modules?.[module];
  const options = own ?? file.modules?.[module];
  const path = own === undefined
    ? ["modules", module]
    : ["host_config", written, "modules", module];
  if (options === undefined || options === false) return undefined;
  if (options.backend === undefined && options.pool_tag === undefined) return undefined;
  const users = usersOf(file, host);
  const { backend = users.backend, pool_tag: tag } = options;
  const ownTagPath = [...path, "pool_tag"];
  return {
    backend,
    backendPath: options.backend === undefined ? users.backendPath : [...path, "backend"],
    // Another backend has pools of its own, and the accounts' tag is none of them.
    ...(tag === undefined && backend === users.backend
      ? { tag: users.tag, tagPath: users.tagPath }
      : { tag: tag ?? DEFAULT_TAG, tagPath: ownTagPath }),
  };
}

/** Checks that a backend may hold this kind of data, and that its pool exists and is for the host. */
function checkPlace(
  file: PartialFile,
  host: string,
  { kind, backend, backendPath, tag, tagPath }: NamedPlace & { readonly kind: DataKind },
  mistakes: Mistake[],
): void {
  const problem = kindProblem(backend, kind);
  if (problem !== undefined) return void mistakes.push({ path: backendPath, problem });
  if (backend === "internal" || backend === "ldap") return; // `ldap_pools.ts` checks directories
  const poolKind = backendRow(backend).poolKind as "rdbms" | "elastic" | "cassandra" | "riak";
  const pools = file.outgoing_pools?.[poolKind] ?? {};
  const pool = pools[tag];
  if (pool === undefined) {
    const nearest = nearestKey(tag, Object.keys(pools));
    const question = nearest === undefined ? "" : `, did you mean "${nearest}"?`;
    const missing = `there is no pool outgoing_pools.${poolKind}.${tag}${question}`;
    return void mistakes.push({ path: tagPath, problem: missing });
  }
  if (pool.scope !== "single_host" || !("host" in pool) || pool.host === undefined) return;
  if (normalizeDomain(pool.host) === normalizeDomain(host)) return;
  const why = `outgoing_pools.rdbms.${tag} is for the host "${pool.host}" alone, and ` +
    `"${host}" would use it too`;
  mistakes.push({ path: tagPath, problem: why });
}
