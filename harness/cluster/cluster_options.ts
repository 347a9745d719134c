import type { DatabaseChoice } from "../databases/mod.ts";
import type { RedisChoice, RedisForm } from "../redis/mod.ts";
import { type Command, READY_WITHIN_MS, type Run } from "../process/mod.ts";
import {
  type CausewayConfiguration,
  type ComponentAccount,
  FREE_PORTS,
  type NodePorts,
} from "./causeway_configuration.ts";

/** An account at the global host, in the database that all datacenters share. */
export interface ClusterUser {
  readonly localpart: string;
  readonly password: string;
}

/** Which node something is about; both count from 0. */
export interface NodePlace {
  readonly datacenter: number;
  readonly node: number;
  /** `dc1` */
  readonly name: string;
  readonly localHost: string;
}

/** Options of a cluster. All have defaults. */
export interface ClusterOptions {
  /** Number of datacenters, 1 to 9, called `dc1`, `dc2` … @default 3 */
  readonly datacenters?: number;
  /** Nodes in each; 1 to 9. @default 1 */
  readonly nodes?: number;
  /** @default "auto" */
  readonly redis?: RedisChoice;
  /**
   * Form of a datacenter's Redis. All forms except "single" use local servers.
   * @default "single"
   */
  readonly redisForm?: RedisForm;
  /** Password of every Redis. @default "" */
  readonly redisPassword?: string;
  /** The database that all nodes share. @default "internal" */
  readonly database?: DatabaseChoice;
  /** Further arguments of that database's server. @default none: it is to take little memory */
  readonly databaseArgs?: readonly string[];
  /**
   * Statements, one line each, that the first user of that database's server runs before it answers
   * anybody. @default none
   */
  readonly databaseStatements?: readonly string[];
  /**
   * Puts a proxy between each datacenter and the database, a server, so that it can be cut off alone
   * (`Datacenter.databaseLink`). @default false
   */
  readonly databaseLinks?: boolean;
  /** Way in which the session table gets to other datacenters. @default "builtin" */
  readonly replication?: "external" | "builtin";
  /**
   * Archives of messages. Without them, a message to an account that is offline comes back as an
   * error, which most scenarios count on. @default false
   */
  readonly archives?: boolean;
  /** @default "example.com" */
  readonly globalHost?: string;
  /** @default alice, bob and carol */
  readonly users?: readonly ClusterUser[];
  /** Domains that may connect to any datacenter. @default echo, rooms and a hidden one */
  readonly components?: readonly ComponentAccount[];
  /** `proxied`: links run through `LinkProxy`; `direct`: endpoints come from Redis alone. @default "proxied" */
  readonly links?: "proxied" | "direct";
  /** @default free ones */
  readonly ports?: (place: NodePlace) => NodePorts;
  /** The last word on a node's configuration before its first start. */
  readonly configure?: (configuration: CausewayConfiguration, place: NodePlace) => void;
  /** Added to a node's environment. */
  readonly env?: (place: NodePlace) => Readonly<Record<string, string>>;
  /** The program of a node, given its configuration file. @default the task `serve` */
  readonly command?: (configFile: string) => Command;
  /**
   * The program that prepares the database and adds the accounts before the first node starts.
   * @default that of this build
   */
  readonly administration?: (args: readonly string[]) => Command;
  /**
   * Adds the accounts to the shared database before the first node starts.
   * @default `causeway users import`
   */
  readonly addUsers?: (users: UserImport) => Promise<void>;
  /** Milliseconds within which a node has to be ready. @default READY_WITHIN_MS */
  readonly readyWithinMs?: number;
  /** Called with what the start does next, for people who wait for it. @default nothing */
  readonly starting?: (step: string) => void;
  /** Gives up a start, or a run by `withCluster`; then nothing is kept of it. */
  readonly signal?: AbortSignal;
}

/** Arguments of `addUsers`. */
export interface UserImport {
  readonly configFile: string;
  /** An object on each line: `{"jid": "alice@example.com", "password": "…"}`. */
  readonly listFile: string;
  /** The `causeway` command that is to do it. */
  readonly command: (args: readonly string[]) => Command;
  /** The run that ends that command, if it is to end early. */
  readonly run: Run;
}

/** `ClusterOptions` with every default filled in, except what stays absent. */
export type ResolvedClusterOptions =
  & Required<Omit<ClusterOptions, WithoutDefault>>
  & Pick<ClusterOptions, WithoutDefault>;

type WithoutDefault =
  | "configure"
  | "env"
  | "command"
  | "administration"
  | "addUsers"
  | "starting"
  | "signal";

export const DEFAULT_USERS: readonly ClusterUser[] = [
  { localpart: "alice", password: "secret" },
  { localpart: "bob", password: "secret" },
  { localpart: "carol", password: "secret" },
];

const MAX_DATACENTERS = 9;
const MAX_NODES = 9;

/** @throws {RangeError} for what this version cannot do */
export function resolveClusterOptions(options: ClusterOptions): ResolvedClusterOptions {
  const globalHost = options.globalHost ?? "example.com";
  const datacenters = options.datacenters ?? 3;
  const nodes = options.nodes ?? 1;
  if (!Number.isInteger(datacenters) || datacenters < 1 || datacenters > MAX_DATACENTERS) {
    throw new RangeError(
      `Cannot start ${datacenters} datacenters: a whole number from 1 to ${MAX_DATACENTERS} is possible`,
    );
  }
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MAX_NODES) {
    throw new RangeError(
      `Cannot start ${nodes} nodes in a datacenter: a whole number from 1 to ${MAX_NODES} is possible`,
    );
  }
  if (options.replication === "external" && (options.redisPassword ?? "") !== "") {
    throw new RangeError(
      "Cannot use a password with replication external: Dynomite closes the connection at AUTH",
    );
  }
  const isSingle = (options.redisForm ?? "single") === "single";
  if (!isSingle && (options.replication === "external" || (options.redisPassword ?? "") !== "")) {
    throw new RangeError(
      `Cannot use replication external or a password with a Redis of the form ${options.redisForm}`,
    );
  }
  return {
    ...options,
    globalHost,
    datacenters,
    nodes,
    redis: options.redis ?? "auto",
    redisForm: options.redisForm ?? "single",
    database: options.database ?? "internal",
    databaseArgs: options.databaseArgs ?? [],
    databaseStatements: options.databaseStatements ?? [],
    databaseLinks: options.databaseLinks ?? false,
    redisPassword: options.redisPassword ?? "",
    replication: options.replication ?? "builtin",
    archives: options.archives ?? false,
    users: options.users ?? DEFAULT_USERS,
    components: options.components ?? [
      { name: `echo.${globalHost}`, secret: "secret" },
      { name: `rooms.${globalHost}`, secret: "secret" },
      { name: `hidden.${globalHost}`, secret: "secret", hidden: true },
    ],
    links: options.links ?? "proxied",
    ports: options.ports ?? (() => FREE_PORTS),
    readyWithinMs: options.readyWithinMs ?? READY_WITHIN_MS,
  };
}
