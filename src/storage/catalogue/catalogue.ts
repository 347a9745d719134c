/**
 * The catalogue of backends: who may hold which kind of data, and from which version of a server
 * on. This is the one place that says so. The checks of the configuration, `causeway backends list`
 * and docs/databases.md read it from here.
 */

/** Kinds of data, each with what it is. All but `sessions` are persistent. */
export const DATA_KINDS = {
  sessions: "sessions and where they are; transient, made anew when clients log in again",
  users: "accounts with their SCRAM keys",
  roster: "contacts and subscriptions",
  shared_roster: "contacts that an organisation gives to all its people",
  vcard: "vCards",
  private: "private XML storage",
  privacy: "privacy lists and the block list",
  last: "time of the last activity",
  offline: "messages that wait for their recipient",
  pep: "personal eventing: avatars, bookmarks, keys of devices",
  mam: "message archives",
  muc_light: "MUC Light rooms",
  muc: "Multi-User Chat rooms",
} as const;

/** One kind of data that a backend may hold. */
export type DataKind = keyof typeof DATA_KINDS;

/** A server program that a backend talks to. */
export interface ServerProduct {
  readonly id: ServerProductId;
  readonly name: string;
  /** Oldest version that is served, such as `5.5.14`. Absent: any version. */
  readonly minimumVersion?: string;
  /** Reason for the minimum, or what else an operator has to know. */
  readonly note?: string;
}

/** Names of the server programs, as `rdbms_server_type` and the commands spell them. */
export type ServerProductId =
  | "sqlite"
  | "redis"
  | "mysql"
  | "mariadb"
  | "pgsql"
  | "mssql"
  | "riak"
  | "elasticsearch"
  | "opensearch"
  | "ldap"
  | "cassandra";

/** One row of the catalogue. */
export interface BackendRow {
  /** Name of the backend in a configuration. */
  readonly id: BackendId;
  readonly name: string;
  /** Kind of its pools under `outgoing_pools`. Absent: it needs no pool. */
  readonly poolKind?: "redis" | "rdbms" | "riak" | "elastic" | "ldap" | "cassandra";
  readonly products: readonly ServerProduct[];
  readonly kinds: readonly DataKind[];
  /** True when the data can be read but not changed through this backend. */
  readonly isReadOnly?: true;
  readonly note?: string;
}

/** Names of the backends in a configuration. */
export type BackendId =
  | "internal"
  | "redis"
  | "rdbms"
  | "riak"
  | "elasticsearch"
  | "ldap"
  | "cassandra";

/** The rows of the catalogue, in the order in which pages and commands show them. */
export const CATALOGUE: readonly BackendRow[] = [
  {
    id: "internal",
    name: "built-in store",
    products: [{ id: "sqlite", name: "SQLite", note: "in the process, one file" }],
    kinds: Object.keys(DATA_KINDS) as DataKind[], // the keys of that very object
    note: "for trying things out: one file serves the nodes of one machine",
  },
  {
    id: "redis",
    name: "Redis",
    poolKind: "redis",
    products: [{ id: "redis", name: "Redis" }],
    kinds: ["sessions"],
  },
  {
    id: "rdbms",
    name: "SQL databases",
    poolKind: "rdbms",
    products: [
      { id: "mysql", name: "MySQL", minimumVersion: "5.5.14" },
      { id: "mariadb", name: "MariaDB", minimumVersion: "5.5.14" },
      {
        id: "pgsql",
        name: "PostgreSQL",
        minimumVersion: "9.6",
        note: "older servers cannot end a transaction whose client is gone",
      },
      {
        id: "mssql",
        name: "Microsoft SQL Server",
        minimumVersion: "11.0",
        note: "that is SQL Server 2012, and its cloud variant",
      },
    ],
    kinds: [
      ...["users", "vcard", "roster", "private", "privacy", "last", "mam", "muc_light"] as const,
      ...["pep", "offline", "muc"] as const,
    ],
  },
  {
    id: "riak",
    name: "Riak",
    poolKind: "riak",
    products: [{
      id: "riak",
      name: "Riak KV",
      minimumVersion: "2.0",
      note: "older servers have no data types",
    }],
    kinds: ["users", "vcard", "roster", "private", "privacy", "last", "mam", "offline"],
  },
  {
    id: "elasticsearch",
    name: "Elasticsearch, OpenSearch",
    poolKind: "elastic",
    products: [
      { id: "elasticsearch", name: "Elasticsearch", minimumVersion: "5.6" },
      { id: "opensearch", name: "OpenSearch", minimumVersion: "1.0" },
    ],
    kinds: ["mam"],
  },
  {
    id: "ldap",
    name: "LDAP",
    poolKind: "ldap",
    products: [{ id: "ldap", name: "LDAP" }],
    kinds: ["users", "shared_roster", "vcard"],
    isReadOnly: true,
    note: "attributes can be set to existing schemas",
  },
  {
    id: "cassandra",
    name: "Cassandra",
    poolKind: "cassandra",
    products: [{
      id: "cassandra",
      name: "Cassandra",
      minimumVersion: "3.11.9",
      note: "lightweight transactions of older servers can show what is taken back later",
    }],
    kinds: ["mam"],
  },
];

/** Returns the row of a backend. */
export function backendRow(backend: BackendId): BackendRow {
  const row = CATALOGUE.find(({ id }) => id === backend);
  if (row === undefined) throw new TypeError(`Cannot find the backend ${backend}: it has no row`);
  return row;
}

/** Returns the server program of that name. */
export function serverProduct(product: ServerProductId): ServerProduct {
  for (const { products } of CATALOGUE) {
    const found = products.find(({ id }) => id === product);
    if (found !== undefined) return found;
  }
  throw new TypeError(`Cannot find the server ${product}: the catalogue does not name it`);
}

/** Returns the kinds of a row as pages and messages show them. */
export function describeKinds({ kinds, isReadOnly }: BackendRow): string {
  const isEverything = kinds.length === Object.keys(DATA_KINDS).length;
  const text = isEverything ? "every kind" : kinds.join(", ");
  return isReadOnly === true ? `${text} (read only)` : text;
}

/**
 * Returns why `backend` may not hold data of this kind, with the backend's row and the backends that
 * may. Undefined when it may.
 */
export function kindProblem(backend: BackendId, kind: DataKind): string | undefined {
  const row = backendRow(backend);
  if (row.kinds.includes(kind)) return undefined;
  const others = CATALOGUE.filter(({ kinds }) => kinds.includes(kind)).map(({ id }) => id);
  return `${backend} may not hold ${kind}: ${row.name} may hold ${describeKinds(row)}; ` +
    `${kind} may be held by ${others.join(", ")}`;
}

/**
 * Returns why a server of this version is not served. Undefined when it is.
 *
 * @param version as the server gives it, such as `8.0.31-log`
 */
export function versionProblem(product: ServerProductId, version: string): string | undefined {
  const { name, minimumVersion } = serverProduct(product);
  if (minimumVersion === undefined || isAtLeast(version, minimumVersion)) return undefined;
  return `${name} ${version} is too old: ${name} ${minimumVersion} or newer is served`;
}

/**
 * Returns true when `version` is `minimum` or newer. Its leading numbers are compared one by one; a
 * version without a number is older than all.
 */
export function isAtLeast(version: string, minimum: string): boolean {
  const [own, other] = [numbersOf(version), numbersOf(minimum)];
  for (let i = 0; i < other.length; i++) {
    const difference = (own[i] ?? (i === 0 ? -1 : 0)) - other[i]!;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function numbersOf(version: string): number[] {
  return (/^\d+(\.\d+)*/.exec(version.trim())?.[0] ?? "").split(".").filter((part) => part !== "")
    .map(Number);
}
