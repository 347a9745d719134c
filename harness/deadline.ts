import { Patience } from "./patience.ts";

/** Description of a wait, so that its failure explains itself. */
export interface DeadlineOptions {
  /** Awaited fact, in words that fit after "Waited … ms for". */
  readonly what: string;
  readonly withinMs: number;
  /** Observations when time ran out. */
  readonly seen?: () => string;
}

/** `promise`, or a rejection that names what did not come when `withinMs` pass first. */
export async function withDeadline<T>(
  promise: PromiseLike<T>,
  options: DeadlineOptions,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  using _patience = new Patience(options.withinMs, () => {
    const seen = options.seen === undefined ? "" : `; seen so far: ${options.seen()}`;
    late.reject(new Error(`Waited ${options.withinMs} ms for ${options.what}${seen}`));
  });
  return await Promise.race([promise, late.promise]);
}
