/**
 * Number of the layout of the table in Redis (docs/redis.md): this version writes it, and reads none
 * that is newer. It goes up only when an earlier version would misread what the new one writes.
 */
export const REDIS_LAYOUT: number = 1;

/** Reads the number of a layout; undefined for anything else. */
export function tryParseLayout(value: string | null): number | undefined {
  return value !== null && /^[1-9][0-9]{0,5}$/.test(value) ? Number(value) : undefined;
}
