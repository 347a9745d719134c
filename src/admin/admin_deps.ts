import type { RateLimitOptions } from "../base/mod.ts";
import type { ClassicMetric } from "../observe/mod.ts";

/**
 * How a part of the process is: `up`, `degraded` (it serves with less than it should, as without
 * Redis), `draining` (it takes nothing new) or `down`.
 */
export type PartState = "up" | "degraded" | "draining" | "down";

/** One part of the process, as `/health` and `/ready` show it. */
export interface PartHealth {
  /** Such as `redis`, `links`, `c2s`. */
  readonly name: string;
  readonly state: PartState;
  /** Why it is not up. */
  readonly reason?: string;
}

/** The metrics that the API shows; `MetricsRegistry` is one. */
export interface AdminMetrics {
  readonly contentType: string;
  classic(): Readonly<Record<string, ClassicMetric>>;
  prometheus(): Promise<string>;
}

/** What the API asks the process. Each is asked at each request, so it should be cheap. */
export interface AdminDeps {
  /** Name of this node, `node1@dc1.example.com`. */
  readonly node: string;
  readonly version: string;
  readonly metrics: AdminMetrics;
  parts(): readonly PartHealth[];
  /** The links to other nodes, as `LinkLayer.snapshot` gives them; anything JSON can say. */
  links(): object;
  /**
   * Takes a datacenter that will not come back out of all that this one knows. `live`: it is there;
   * `unavailable`: the table cannot be written now.
   */
  removeHost(host: string): Promise<"removed" | "live" | "unknown" | "unavailable">;
  /** How many of each there are: sessions, components … */
  sessions(): Readonly<Record<string, number>>;
}

/** Where the API listens and who may ask. */
export interface AdminOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** 0 lets the system choose. @default 8088 */
  readonly port?: number;
  /** Needed off loopback; where it is set, every request must carry it as a bearer token. */
  readonly token?: string;
  /**
   * Wrong tokens from one IP address (IPv6: from one /64); past them none is looked at, the right one
   * neither. @default not limited
   */
  readonly wrongTokens?: RateLimitOptions;
  readonly limits?: AdminLimits;
}

/** What callers may cost, whoever they are. */
export interface AdminLimits {
  /** Connections at once; one more ends the oldest that is owed nothing. @default 256 */
  readonly maxConnections?: number;
  /** Milliseconds from a connection to the end of its request. @default 10_000 */
  readonly requestTimeoutMs?: number;
  /** Bytes of a request's head, as Node counts them: its URL and its headers' names and values. @default 16_384 */
  readonly maxHeadBytes?: number;
  /** Bytes of its body. @default 65_536 */
  readonly maxBodyBytes?: number;
}

/** What holds where nothing is said. */
export const ADMIN_LIMITS: Required<AdminLimits> = {
  maxConnections: 256,
  requestTimeoutMs: 10_000,
  maxHeadBytes: 16_384,
  maxBodyBytes: 65_536,
};
