import { createRoute, type z } from "@hono/zod-openapi";
import { json } from "./answers.ts";

/** A GET that cannot fail, for the API's description. */
interface Reading<Answer extends z.ZodType> {
  readonly tag: string;
  readonly summary: string;
  readonly answer: Answer;
  /** Describes the answer. */
  readonly description: string;
}

/** Describes a GET without parameters. */
export function readRoute<Path extends string, Answer extends z.ZodType>(
  path: Path,
  { tag, summary, answer, description }: Reading<Answer>,
) {
  return createRoute({
    method: "get",
    path,
    tags: [tag],
    summary,
    responses: { 200: json(answer, description) },
  });
}

/** Describes a GET that answers with a page of a list. */
export function listRoute<
  Path extends string,
  Answer extends z.ZodType,
  Query extends z.ZodObject,
>(
  path: Path,
  { query, ...reading }: Reading<Answer> & { readonly query: Query },
) {
  return createRoute({ ...readRoute(path, reading), request: { query } });
}
