import type { Config } from "../config/mod.ts";
import type { Severity } from "./finding.ts";

/** A setting that all datacenters of a mesh should have alike. */
export interface SharedSetting {
  /** Key in the file. */
  readonly path: string;
  readonly severity: Severity;
  /** Consequence of a difference. */
  readonly consequence: string;
  /** Value as text, for comparison and messages. */
  of(config: Config): string;
}

/** Settings of one node, by key, and the node that they belong to. */
export interface NodeSettings {
  /** A file, or the address of an admin API. */
  readonly source: string;
  readonly nodeName: string;
  readonly localHost: string;
  readonly values: ReadonlyMap<string, string>;
}

const DISTRIBUTION = "modules.mod_global_distrib";

export const SHARED_SETTINGS: readonly SharedSetting[] = [
  {
    path: `${DISTRIBUTION}.global_host`,
    severity: "error",
    consequence: "they are two meshes: nobody in one reaches anybody in the other",
    of: ({ globalDistrib }) => globalDistrib.globalHost,
  },
  {
    path: `${DISTRIBUTION}.connections.tls_opts`,
    severity: "error",
    consequence: "a link with TLS and one without never understand each other",
    of: ({ globalDistrib }) => globalDistrib.connections.tls === undefined ? "off" : "on",
  },
  {
    path: `${DISTRIBUTION}.redis.replication`,
    severity: "error",
    consequence: "sessions of one datacenter do not reach the other's table, or reach it twice",
    of: ({ table }) => table.replication ?? "builtin",
  },
  {
    path: `${DISTRIBUTION}.redis.expire_after`,
    severity: "warning",
    consequence: "the datacenters disagree on when a dead node's people are gone",
    of: ({ redis }) => `${redis.expireAfterMs / 1000} s`,
  },
  {
    path: `${DISTRIBUTION}.message_ttl`,
    severity: "warning",
    consequence: "a stanza that follows a moving person gets more tries from one datacenter than " +
      "from another",
    of: ({ router }) => String(router.messageTtl),
  },
  {
    path: `${DISTRIBUTION}.bounce`,
    severity: "warning",
    consequence: "a stanza for somebody who is just logging in survives at one datacenter only",
    of: ({ bounce }) => bounce === undefined ? "off" : "on",
  },
  {
    path: "limits.max_stanza_bytes",
    severity: "warning",
    consequence: "a stanza that one datacenter accepts may be refused by another",
    of: ({ streams }) => `${streams.maxStanzaBytes} bytes`,
  },
  {
    path: "auth.mechanisms",
    severity: "warning",
    consequence: "a client that logs in at one datacenter may fail at another",
    of: ({ auth }) => auth.mechanisms.join(", "),
  },
  {
    path: "modules at the global host",
    severity: "warning",
    consequence: "people have a feature at one datacenter that they miss at another",
    of: ({ modules, globalDistrib }) => {
      const those = Object.entries(modules.get(globalDistrib.globalHost) ?? {});
      return those.filter(([, value]) => value !== false).map(([name]) => name).toSorted()
        .join(", ");
    },
  },
  {
    path: "auth.backend of the global host",
    severity: "warning",
    consequence: "an account that exists at one datacenter may not exist at another",
    of: ({ storage, globalDistrib }) => storage.users.get(globalDistrib.globalHost)?.backend ?? "",
  },
];

/** Returns the values of `SHARED_SETTINGS` in a configuration. */
export function settingsOf(config: Config, source: string): NodeSettings {
  return {
    source,
    nodeName: config.nodeName,
    localHost: config.globalDistrib.localHost,
    values: new Map(SHARED_SETTINGS.map((setting) => [setting.path, setting.of(config)])),
  };
}

/**
 * Returns the values of `SHARED_SETTINGS` in an answer of `/api/v1/config`, which is a configuration
 * in JSON. A setting that this program does not find there, as at a node of another version, is left
 * out. Undefined for something else than a configuration.
 */
export function settingsIn(answer: unknown, source: string): NodeSettings | undefined {
  const { values: shown } = (answer ?? {}) as { readonly values?: unknown };
  if (typeof shown !== "object" || shown === null) return undefined;
  const json = shown as Record<string, unknown>;
  // In JSON a map has become an object; the settings read these two.
  const storage = json["storage"] as Record<string, unknown> | undefined;
  const config = {
    ...json,
    modules: mapOf(json["modules"]),
    storage: { ...storage, users: mapOf(storage?.["users"]) },
  } as unknown as Config; // each setting that does not find its own is left out
  const values = new Map<string, string>();
  for (const { path, of } of SHARED_SETTINGS) {
    try {
      const value = of(config);
      if (!value.includes("undefined") && !value.includes("NaN")) values.set(path, value);
    } catch {
      // A node of another version keeps this setting elsewhere.
    }
  }
  const { nodeName, globalDistrib } = config;
  if (typeof nodeName !== "string" || typeof globalDistrib?.localHost !== "string") {
    return undefined;
  }
  return { source, nodeName, localHost: globalDistrib.localHost, values };
}

function mapOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === "object" && value !== null ? Object.entries(value) : []);
}
