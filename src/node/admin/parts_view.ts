import type { Certificate, Configuration, Database } from "../../admin/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Config } from "../../config/mod.ts";
import type { TableSnapshot } from "../../distribution/table/mod.ts";
import type { DatabaseState } from "../../storage/mod.ts";
import type { CertificateInUse } from "../certificates.ts";

const DAY_MS = 86_400_000;
/** Same as in the warning of the log. */
const SOON_DAYS = 14;

/** Returns Redis and the databases in use. */
export function databasesOf(
  states: readonly DatabaseState[],
  { status, reason, redis: redisPlace }: Pick<TableSnapshot, "status" | "reason" | "redis">,
): readonly Database[] {
  const redis: Database = {
    pool: "redis",
    kind: "redis",
    place: redisPlace,
    state: status === "up" ? "up" : "down",
    ...(reason !== undefined && { reason }),
  };
  const others = states.map(({ lastFailure, ...state }): Database => ({
    ...state,
    state: lastFailure === undefined ? "up" : "down",
    ...(lastFailure !== undefined && { reason: describeError(lastFailure) }),
  }));
  return [redis, ...others];
}

/**
 * Returns the certificates in use, each file once, those that end first first. A file with several
 * uses is shown with the authorities of one of them.
 */
export function certificatesOf(
  inUse: readonly CertificateInUse[],
  nowMs: number,
): readonly Certificate[] {
  const byFile = new Map<string, CertificateInUse>();
  for (const each of inUse) {
    const { certfile } = each.files;
    if (byFile.get(certfile)?.files.cafile === undefined) byFile.set(certfile, each);
  }
  return [...byFile.values()]
    .toSorted((one, other) => one.expiresAtMs - other.expiresAtMs)
    .map(({ files: { certfile, cafile }, names, expiresAtMs }) => {
      const daysLeft = Math.floor((expiresAtMs - nowMs) / DAY_MS);
      return {
        certfile,
        ...(cafile !== undefined && { cafile }),
        names: [...names],
        expiresAt: new Date(expiresAtMs).toISOString(),
        daysLeft,
        isExpiringSoon: daysLeft < SOON_DAYS,
      };
    });
}

/** Returns the configuration as it can be shown: a secret reads `[secret]`. */
export function configurationOf(config: Config): Configuration {
  const { file, notes, settings: _, ...values } = config;
  return {
    file,
    values: shown(values) as Record<string, unknown>, // an object stays one
    notes: notes.map(({ path, text }) => ({ path, text })),
  };
}

/** Names of values that are never shown, whatever their type. */
const SECRET_NAME = /password|secret|token|credential/i;

/**
 * Copies a value of the configuration for JSON. Whatever has `reveal` is a secret, and so is every
 * text under the name of one.
 */
function shown(value: unknown, name = ""): unknown {
  if (typeof value === "string") return SECRET_NAME.test(name) ? "[secret]" : value;
  if (typeof value !== "object" || value === null) {
    if (typeof value === "bigint") return String(value);
    return typeof value === "function" ? undefined : value;
  }
  if ("reveal" in value) return "[secret]";
  if (value instanceof RegExp) return String(value);
  if (ArrayBuffer.isView(value)) return "[secret]";
  if (value instanceof Map) {
    return Object.fromEntries([...value].map(([key, each]) => [key, shown(each, String(key))]));
  }
  if (value instanceof Set || Array.isArray(value)) {
    return [...value].map((each) => shown(each, name));
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shown(each, key)]));
}
