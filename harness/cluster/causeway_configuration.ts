import type { CertificateFiles } from "../certificates.ts";
import type { DatabaseSections } from "../databases/mod.ts";
import type { Target } from "../faults/mod.ts";
import type { RedisAddress } from "../redis/mod.ts";

/** A domain that an external component may serve. */
export interface ComponentAccount {
  readonly name: string;
  readonly secret: string;
  readonly hidden?: boolean;
}

/** Security of a node's client ports, in the order of its listeners. */
export const CLIENT_SECURITIES = ["starttls", "direct", "none"] as const;
export type Security = typeof CLIENT_SECURITIES[number];

/** Security of a node's WebSocket ports, `ws` and `wss`, in the order of its listeners. */
export const WEBSOCKET_SECURITIES = ["none", "direct"] as const;
export type WebSocketSecurity = typeof WEBSOCKET_SECURITIES[number];

/** Ports that a node is to listen on; 0 takes a free one. */
export interface NodePorts {
  readonly starttls: number;
  readonly direct: number;
  readonly none: number;
  readonly ws: number;
  readonly wss: number;
  readonly component: number;
  readonly links: number;
  readonly admin: number;
}

export const FREE_PORTS: NodePorts = {
  starttls: 0,
  direct: 0,
  none: 0,
  ws: 0,
  wss: 0,
  component: 0,
  links: 0,
  admin: 0,
};

/** `modules.mod_global_distrib` as the harness writes it; a test adds what it needs. */
export interface DistributionConfiguration {
  global_host: string;
  local_host: string;
  connections: {
    endpoints: Target[];
    tls_opts: { certfile: string; keyfile: string; cafile: string } | false;
    [option: string]: unknown;
  };
  redis: { server: string; port: number; password: string; [option: string]: unknown };
  [option: string]: unknown;
}

/** A node's configuration file, typed as far as the harness fills it in. */
export interface CausewayConfiguration {
  hosts: string[];
  node_name: string;
  listen: {
    c2s: Record<string, unknown>[];
    websocket: Record<string, unknown>[];
    component: Record<string, unknown>[];
    admin: Record<string, unknown>;
    [kind: string]: unknown;
  };
  storage: { internal: { path: string } };
  modules: { mod_global_distrib: DistributionConfiguration; [module: string]: unknown };
  global_distrib_addr: Record<string, Target[]>;
  [section: string]: unknown;
}

type RedisPlace = Pick<DistributionConfiguration["redis"], "server" | "port">;

/** Inputs of a configuration. */
export interface ConfigurationFacts {
  readonly globalHost: string;
  readonly localHost: string;
  readonly nodeName: string;
  readonly ports: NodePorts;
  readonly components: readonly ComponentAccount[];
  readonly certificate: CertificateFiles;
  readonly cafile: string;
  /** Sections that name the database. */
  readonly database: DatabaseSections;
  readonly redis: RedisAddress;
  /** Options that say where Redis is, in place of a server and a port. */
  readonly redisPlace: Readonly<Record<string, unknown>> | undefined;
  readonly replication: "builtin" | "external";
  readonly hasArchives: boolean;
  /** Nodes of other datacenters that tell of the mesh. */
  readonly seeds: readonly Target[];
  /** Addresses to use instead of the advertised ones, by remote local host. */
  readonly addresses: Readonly<Record<string, readonly Target[]>>;
}

/** The configuration of one node on loopback. */
export function causewayConfiguration(facts: ConfigurationFacts): CausewayConfiguration {
  const { ports, certificate, redis } = facts;
  const host = "127.0.0.1";
  return {
    hosts: [facts.globalHost, facts.localHost],
    node_name: facts.nodeName,
    listen: {
      c2s: CLIENT_SECURITIES.map((mode) => ({
        host,
        port: ports[mode],
        tls: mode === "none" ? { mode } : { mode, ...certificate },
      })),
      websocket: WEBSOCKET_SECURITIES.map((security) =>
        security === "none"
          ? { host, port: ports.ws }
          : { host, port: ports.wss, tls: { ...certificate } }
      ),
      component: facts.components.length === 0 ? [] : [{
        host,
        port: ports.component,
        domains: facts.components.map((component) => ({ ...component })),
      }],
      admin: { host, port: ports.admin },
    },
    // A copy for each node, which a scenario may change.
    ...structuredClone(facts.database),
    modules: {
      mod_mam: facts.hasArchives ? {} : false,
      mod_global_distrib: {
        global_host: facts.globalHost,
        local_host: facts.localHost,
        connections: {
          endpoints: [{ host, port: ports.links }],
          seeds: [...facts.seeds],
          tls_opts: { ...certificate, cafile: facts.cafile },
        },
        redis: {
          // A scenario that asks for another place does not read these two.
          ...(facts.redisPlace ?? { server: redis.host, port: redis.port }) as RedisPlace,
          password: redis.password,
          replication: facts.replication,
        },
      },
    },
    global_distrib_addr: Object.fromEntries(
      Object.entries(facts.addresses).map(([localHost, list]) => [localHost, [...list]]),
    ),
  };
}
