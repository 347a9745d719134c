import type { Replication } from "../scenario.ts";

/**
 * Test files that share the scenarios on clusters of their own, for each kind of replication. The
 * runner gives whole files to its workers: several short ones keep all processors busy to the end.
 */
export const SHARES: Readonly<Record<Replication, number>> = { builtin: 4, external: 3 };

/** Which of how many shares; the first is 1. */
export interface Share {
  readonly number: number;
  readonly of: number;
}

/**
 * Returns one share of `items`, in their order. Neighbours go to different shares: scenarios that
 * stand together often take equally long.
 * @throws {RangeError} when there is no share of this number
 */
export function shareOf<T>(items: readonly T[], { number, of }: Share): readonly T[] {
  if (!Number.isInteger(number) || number < 1 || number > of) {
    throw new RangeError(`Cannot take share ${number}: there are ${of}`);
  }
  return items.filter((_, index) => index % of === number - 1);
}
