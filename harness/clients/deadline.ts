/** Description of a wait, so that its failure explains itself. */
export interface DeadlineOptions {
  /** Awaited fact, in words that fit after "Waited … ms for". */
  readonly what: string;
  readonly withinMs: number;
  /** Observations when time ran out. */
  readonly seen?: () => string;
}

/** `promise`, or a rejection that names what did not come when `withinMs` pass first. */
export async function withDeadline<T>(promise: Promise<T>, options: DeadlineOptions): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const seen = options.seen === undefined ? "" : `; seen so far: ${options.seen()}`;
    late.reject(new Error(`Waited ${options.withinMs} ms for ${options.what}${seen}`));
  }, options.withinMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
