import type { z } from "zod";
import type { PartOptions } from "./part_options.ts";
import { branchesOf, shapeOf, unwrap } from "./schema_walk.ts";

type Table = Readonly<Record<string, unknown>>;

/**
 * Returns the options of the parts that `file` sets, in their units.
 *
 * @param file a value of `schema`, with its defaults
 */
export function collectOptions(schema: z.ZodType, file: unknown): PartOptions {
  const parts: Record<string, Record<string, unknown>> = {};
  collect(schema, file, parts);
  // Every target names a part and its option, and has a value of the option's type.
  return parts as unknown as PartOptions;
}

function collect(
  schema: z.ZodType,
  value: unknown,
  parts: Record<string, Record<string, unknown>>,
): void {
  if (typeof value !== "object" || value === null) return;
  const table = value as Table; // a table: only tables have a shape
  const shape = branchesOf(unwrap(schema).schema).map(shapeOf).find((each) => each !== undefined);
  for (const [key, option] of Object.entries(shape ?? {})) {
    const { target, unit } = unwrap(option).words;
    if (target === undefined) {
      collect(option, table[key], parts);
      continue;
    }
    const [part, name] = target.split(".") as [string, string];
    const options = parts[part] ??= {};
    const found = unit === "per second" ? rateAt(key, table) : table[key];
    if (found !== undefined) options[name] = unit === "seconds" ? toMs(found as number) : found;
  }
}

/** Returns the rate whose times per second are the option `key`; undefined for 0, no limit. */
function rateAt(key: string, limits: Table): unknown {
  const perSec = limits[key];
  if (perSec === 0) return undefined;
  return {
    perSec,
    burst: limits[key.replace("_rate_", "_burst_")],
    maxKeys: limits["rate_max_keys"],
  };
}

/** Converts to whole milliseconds, the unit of every timer. */
function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}
