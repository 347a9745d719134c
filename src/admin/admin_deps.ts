import type { RateLimitOptions } from "../base/mod.ts";
import type { CertificateHolder, TokenHolder } from "./access.ts";
import type { AdminActions } from "./api/admin_actions.ts";
import type { AdminTraces } from "./api/trace_routes.ts";
import type { EventLog } from "./events/event_log.ts";
import type { AdminSource } from "./api/admin_source.ts";
import type { Links } from "./api/links_schemas.ts";
import type { ClassicMetric } from "../observe/mod.ts";

/**
 * State of a part of the process: `up`, `degraded` (it serves less than it should, for example
 * without Redis), `draining` (it accepts nothing new) or `down`.
 */
export type PartState = "up" | "degraded" | "draining" | "down";

/** One part of the process, as `/health` and `/ready` show it. */
export interface PartHealth {
  /** Name, such as `redis`, `links`, `c2s`. */
  readonly name: string;
  readonly state: PartState;
  /** Reason why the part is not up. */
  readonly reason?: string;
}

/** The metrics that the API shows; `MetricsRegistry` is one. */
export interface AdminMetrics {
  readonly contentType: string;
  classic(): Readonly<Record<string, ClassicMetric>>;
  prometheus(): Promise<string>;
}

/**
 * Sources of the API's answers in the process. Each request calls them, so they should be cheap.
 */
export interface AdminDeps {
  /** Name of this node, `node1@dc1.example.com`. */
  readonly node: string;
  readonly version: string;
  readonly metrics: AdminMetrics;
  parts(): readonly PartHealth[];
  /** Returns the links to other nodes, as from `LinkLayer.snapshot`. */
  links(): Links;
  /**
   * Removes a datacenter that will not come back from everything this one knows. `live`: it still
   * answers; `unavailable`: the session table cannot be written now.
   */
  removeHost(host: string): Promise<"removed" | "live" | "unknown" | "unavailable">;
  /** Events at this node. */
  readonly events: EventLog;
  /** Actions that operators can ask this node for. */
  readonly actions: AdminActions;
  /** Traces of one address. */
  readonly traces: AdminTraces;
  /** Sources of what is under `/api/v1`. */
  readonly source: AdminSource;
  /** Pages that need no token, beside `/docs`. @default none */
  readonly pages?: readonly StaticPage[];
  /** Returns counts by kind: sessions, components … … */
  sessions(): Readonly<Record<string, number>>;
}

/** A page that anybody may see who can connect: it holds no data of the node. */
export interface StaticPage {
  /** Path, such as `/` or `/assets/app.js`. */
  readonly path: string;
  readonly contentType: string;
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Address of the API, and its access control. */
export interface AdminOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** 0 lets the system choose. @default 8088 */
  readonly port?: number;
  /** Path of a Unix socket to listen on besides. Its callers need no token. @default none */
  readonly socket?: string;
  /** Bearer token of the role `admin`. Off loopback a token is needed, this one or another. */
  readonly token?: string;
  /** Bearer tokens with a name and a role. Every request must carry a token once there is one. */
  readonly tokens?: readonly TokenHolder[];
  /** Names in client certificates, each with a role. They need TLS with authorities for callers. */
  readonly certificates?: readonly CertificateHolder[];
  /**
   * Limit on wrong tokens from one IP address (IPv6: from one /64). Above it every token is
   * refused, even the right one.
   * @default not limited
   */
  readonly wrongTokens?: RateLimitOptions;
  readonly limits?: AdminLimits;
}

/** Limits on callers, with or without a token. */
export interface AdminLimits {
  /**
   * Open connections. One more ends the oldest connection without a pending answer, or else one that
   * is slow to read its answer: of an address with far more connections, or for five seconds.
   * @default 256
   */
  readonly maxConnections?: number;
  /** Milliseconds from a connection to the end of its request. @default 10_000 */
  readonly requestTimeoutMs?: number;
  /** Bytes of a request's head, as Node counts them: its URL and its headers' names and values. @default 16_384 */
  readonly maxHeadBytes?: number;
  /** Bytes of its body. @default 65_536 */
  readonly maxBodyBytes?: number;
}

/** Default limits. */
export const ADMIN_LIMITS: Required<AdminLimits> = {
  maxConnections: 256,
  requestTimeoutMs: 10_000,
  maxHeadBytes: 16_384,
  maxBodyBytes: 65_536,
};
