import { z } from "@hono/zod-openapi";

/** Answer to a request that failed. */
export const FAILURE = z.object({
  error: z.string().openapi({ description: "Stable name of the failure", example: "not-found" }),
  message: z.string().openapi({ description: "What happened, for people" }),
}).openapi("Failure");

export type Failure = z.infer<typeof FAILURE>;

/** Describes an answer in JSON. */
export function json<Schema extends z.ZodType>(schema: Schema, description: string) {
  return { description, content: { "application/json": { schema } } };
}

/** A point of time, as in `2026-11-24T10:00:00.000Z`. */
export const TIME = z.iso.datetime();

/** A duration in milliseconds, or another number that cannot be negative. */
export const AMOUNT = z.number().nonnegative();

/** A count of things. */
export const COUNT = z.int().nonnegative();
