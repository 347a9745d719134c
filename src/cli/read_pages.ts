import { InvalidArgumentError, Option } from "commander";
import type { AdminClient } from "../admin_client/mod.ts";

/** Items of a list of the admin API, and how many there are in all. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** Most items that one request brings. */
const PAGE = 1_000;

/** Option with the most items that a command shows. */
export function limitOption(): Option {
  return new Option("--limit <NUMBER>", "most lines to show").default(100).argParser((text) => {
    const value = Number(text);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new InvalidArgumentError("expected a whole number above 0");
  });
}

/**
 * Reads a list page by page, up to `limit` items.
 * @throws CausewayError as `AdminClient.get`
 */
export async function readPages<T>(
  client: AdminClient,
  path: string,
  { limit, query = {} }: { readonly limit: number; readonly query?: Record<string, string> },
): Promise<Listed<T>> {
  const items: T[] = [];
  let offset: number | undefined = 0;
  let total = 0;
  while (offset !== undefined && items.length < limit) {
    const parameters = new URLSearchParams({
      ...query,
      limit: String(Math.min(PAGE, limit - items.length)),
      offset: String(offset),
    });
    // The node answers by its description, which its own tests check.
    const page = await client.get(`${path}?${parameters}`) as Listed<T> & { nextOffset?: number };
    items.push(...page.items);
    total = page.total;
    offset = page.items.length === 0 ? undefined : page.nextOffset;
  }
  return { items, total };
}
