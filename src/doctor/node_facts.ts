import type { AdminAnswer, AdminClient } from "../admin_client/mod.ts";
import type { Clock } from "../base/mod.ts";
import { CausewayError, describeError } from "../base/mod.ts";
import type { NodeSettings } from "./shared_settings.ts";
import { settingsIn } from "./shared_settings.ts";

/** A node as its admin API describes it. */
export type NodeFacts =
  | {
    readonly kind: "unreachable";
    /** Address of its admin API. */
    readonly place: string;
    readonly problem: string;
    /** True for the node of the configuration itself. */
    readonly isOwn: boolean;
  }
  | AnsweredNode;

export interface AnsweredNode {
  readonly kind: "answered";
  readonly place: string;
  /** Its name, `node1@dc1.example.com`. */
  readonly node: string;
  readonly version: string;
  /** Its datacenter; undefined where it does not say, as at a node of an earlier version. */
  readonly datacenter: { readonly localHost: string; readonly id: string } | undefined;
  readonly parts: readonly PartFacts[];
  /** Its wall-clock time, and ours in the middle of asking. */
  readonly time: { readonly theirMs: number; readonly ourMs: number } | undefined;
  /** Changes of the session table that are not applied yet. */
  readonly lags: readonly LagFacts[];
  /** Its SQL databases; none where it does not say. */
  readonly schemas: readonly SchemaFacts[];
  /** Its settings; undefined where it does not say. */
  readonly settings: NodeSettings | undefined;
}

/** Schema of an SQL database. */
export interface SchemaFacts {
  /** `internal`, or the kind of the pool and its tag: `rdbms.default`. */
  readonly pool: string;
  /** Its engine, such as `pgsql`: each counts its versions by itself. */
  readonly kind: string;
  readonly version: number;
}

export interface PartFacts {
  readonly name: string;
  readonly state: string;
  readonly reason: string | undefined;
}

/** Changes on their way between this node and another one. */
export interface LagFacts {
  /** `in`: theirs are not applied here. `out`: ours are not applied there. */
  readonly direction: string;
  readonly host: string;
  readonly node: string;
  readonly changes: number;
}

/** Returns the nodes that have answered. */
export function* answeredNodes(nodes: readonly NodeFacts[]): Generator<AnsweredNode> {
  for (const node of nodes) if (node.kind === "answered") yield node;
}

/** Asks a node about itself. Never rejects. */
export async function askNode(
  client: AdminClient,
  { isOwn, clock }: { readonly isOwn: boolean; readonly clock: Clock },
): Promise<NodeFacts> {
  const { place } = client;
  try {
    const { node, version, parts } = healthOf(await client.send("GET", "/health"));
    const metrics = await client.send("GET", "/metrics");
    const configuration = await client.get("/api/v1/config").catch(ifNotThere);
    const databases = await client.get("/api/v1/databases").catch(ifNotThere);
    const startedMs = clock.wallMs();
    const status = await client.get("/api/v1/status").catch(ifNotThere);
    const ourMs = (startedMs + clock.wallMs()) / 2;
    const theirMs = Date.parse(String((status as { now?: unknown } | undefined)?.now));
    return {
      kind: "answered",
      place,
      node,
      version,
      datacenter: datacenterIn(status),
      parts,
      time: Number.isNaN(theirMs) ? undefined : { theirMs, ourMs },
      lags: lagsOf(metrics.text),
      schemas: schemasIn(databases),
      settings: settingsIn(configuration, place),
    };
  } catch (thrown) {
    return { kind: "unreachable", place, problem: describeError(thrown), isOwn };
  }
}

/** A node of an earlier version has no such route. */
function ifNotThere(thrown: unknown): undefined {
  if (thrown instanceof CausewayError && thrown.code === "admin-client/not-found") return undefined;
  throw thrown;
}

function healthOf({ text }: AdminAnswer): Pick<AnsweredNode, "node" | "version" | "parts"> {
  const { node, version, parts } = JSON.parse(text) as Record<string, unknown>;
  if (typeof node !== "string" || typeof version !== "string" || !Array.isArray(parts)) {
    throw new CausewayError("doctor/no-node", "what answers there is no admin API of Causeway");
  }
  return {
    node,
    version,
    parts: (parts as readonly Record<string, unknown>[]).map(({ name, state, reason }) => ({
      name: String(name),
      state: String(state),
      reason: typeof reason === "string" ? reason : undefined,
    })),
  };
}

/** Reads the datacenter in an answer of `/api/v1/status`. */
function datacenterIn(answer: unknown): AnsweredNode["datacenter"] {
  const { datacenter: localHost, datacenterId: id } = (answer ?? {}) as Record<string, unknown>;
  return typeof localHost === "string" && typeof id === "string" ? { localHost, id } : undefined;
}

/** Reads an answer of `/api/v1/databases`. Databases without a version are left out. */
function schemasIn(answer: unknown): readonly SchemaFacts[] {
  const { items } = (answer ?? {}) as { readonly items?: unknown };
  if (!Array.isArray(items)) return [];
  return (items as readonly Record<string, unknown>[]).flatMap((item) => {
    const { pool, kind, schemaVersion: version } = item ?? {};
    return typeof pool === "string" && typeof kind === "string" && typeof version === "number"
      ? [{ pool, kind, version }]
      : [];
  });
}

const LAG = /^causeway_replication_lag_changes\{([^}]*)\} (\S+)$/gm;
const LABEL = /([a-z_]+)="([^"]*)"/g;

/** Reads the lags from metrics in Prometheus' text format. */
export function lagsOf(metrics: string): readonly LagFacts[] {
  return Array.from(metrics.matchAll(LAG), ([, labels, value]) => {
    const byName = new Map(Array.from(labels!.matchAll(LABEL), ([, name, text]) => [name, text]));
    return {
      direction: byName.get("direction") ?? "",
      host: byName.get("host") ?? "",
      node: byName.get("node") ?? "",
      changes: Number(value),
    };
  });
}
