import { z } from "@hono/zod-openapi";
import { COUNT } from "./answers.ts";

/** Most items of a page. */
const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;

/** Query parameters of a list. */
export const PAGE_QUERY = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT).openapi({
    description: "Most items to return",
  }),
  offset: z.coerce.number().int().min(0).max(1_000_000_000).default(0).openapi({
    description: "Items to leave out, from the first on",
  }),
});

/** The part of a list that is asked for. */
export type PageRange = z.infer<typeof PAGE_QUERY>;

/** Part of a list. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Items of the whole list. */
  readonly total: number;
}

/** Describes the answer of a list. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item).readonly(),
    total: COUNT.openapi({ description: "Items of the whole list" }),
    nextOffset: COUNT.optional().openapi({
      description: "The `offset` of the next page; absent at the end of the list",
    }),
  });
}

/** Returns the answer of a list from one page of it. */
export function toAnswer<T>({ items, total }: Page<T>, { offset }: PageRange) {
  const next = offset + items.length;
  return {
    items: [...items],
    total,
    ...(items.length > 0 && next < total && { nextOffset: next }),
  };
}

/** Returns the answer of a list from all of it. */
export function pageOf<T>(all: readonly T[], range: PageRange) {
  const { limit, offset } = range;
  return toAnswer({ items: all.slice(offset, offset + limit), total: all.length }, range);
}
