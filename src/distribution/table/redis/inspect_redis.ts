import type { Clock } from "../../../base/mod.ts";
import type { HostPort, RedisOptions } from "../options.ts";
import { connectionDeps, RedisConnection } from "./redis_connection.ts";

/** Settings and state of one Redis server. Undefined: it did not say. */
export interface RedisSettings {
  /** Address of a node of a cluster; undefined for the only server. */
  readonly at: HostPort | undefined;
  /** Answer to `INFO`, by field. */
  readonly info: ReadonlyMap<string, string> | undefined;
  /** Answer to `CONFIG GET` of `SETTINGS`. */
  readonly settings: ReadonlyMap<string, string> | undefined;
  /** Wall-clock time of the server, and ours in the middle of asking; milliseconds since the epoch. */
  readonly time: { readonly theirMs: number; readonly ourMs: number } | undefined;
  /** Milliseconds for one question and its answer. */
  readonly roundTripMs: number | undefined;
}

/** Settings that `CONFIG GET` is asked for. */
const SETTINGS = [
  "maxmemory",
  "maxmemory-policy",
  "appendonly",
  "appendfsync",
  "save",
  "stop-writes-on-bgsave-error",
  "timeout",
  "maxclients",
] as const;

/**
 * Asks a Redis server about itself. A proxy, or a user without the permission, may refuse each
 * question, and may hang up. Never rejects.
 */
export async function inspectRedis(
  options: Required<RedisOptions>,
  { at, clock }: { readonly at: HostPort | undefined; readonly clock: Clock },
): Promise<RedisSettings> {
  const connection = new RedisConnection(connectionDeps(options), IGNORED, at);
  const { redis } = connection;
  try {
    const isReady = await connection.whenReady().then(() => true, () => false);
    if (!isReady) return { at, ...SILENT };
    const startMs = clock.monotonicMs();
    const reply = await orUndefined(redis.time());
    const roundTripMs = reply === undefined ? undefined : clock.monotonicMs() - startMs;
    const ourMs = clock.wallMs() - (roundTripMs ?? 0) / 2;
    const [seconds, micros] = reply ?? [];
    const theirMs = Number(seconds) * 1000 + Number(micros) / 1000;
    const info = await orUndefined(redis.info());
    const settings = await Promise.all(SETTINGS.map((name) => settingOf(redis, name)));
    const known = settings.filter((setting) => setting !== undefined);
    return {
      at,
      info: typeof info === "string" ? parseInfo(info) : undefined,
      settings: known.length === 0 ? undefined : new Map(known),
      time: Number.isFinite(theirMs) ? { theirMs, ourMs } : undefined,
      roundTripMs,
    };
  } finally {
    await connection.close();
  }
}

const SILENT = { info: undefined, settings: undefined, time: undefined, roundTripMs: undefined };
const IGNORED = { ready() {}, lost() {}, left() {} };

async function settingOf(
  redis: RedisConnection["redis"],
  name: string,
): Promise<readonly [string, string] | undefined> {
  const reply: unknown = await orUndefined(redis.call("CONFIG", "GET", name));
  if (!Array.isArray(reply)) return undefined;
  const value: unknown = reply[1];
  return typeof value === "string" ? [name, value] : undefined;
}

/** Reads `name:value` lines; lines that begin with `#` are headings. */
export function parseInfo(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** Undefined where the server refuses, or ends the connection. */
function orUndefined<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch(() => undefined);
}
