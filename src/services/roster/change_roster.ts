import type { BackoffOptions, Clock } from "../../base/mod.ts";
import { backoffMs, CausewayError } from "../../base/mod.ts";
import type { RosterEntry, RosterItem, RosterStore } from "../../storage/mod.ts";

/** Attempts at a change that other changes of the same roster get in the way of. */
const MAX_ATTEMPTS = 60;
/** Pauses between them. Their length is random, so that two nodes meet only once. */
const PAUSES: BackoffOptions = { firstMs: 2, maxMs: 100, jitter: 1 };

/** A decision about one item, made from what the roster says at that moment. */
export interface Decision<T> {
  /** The new item; undefined: the item is removed. The same object as before: nothing changes. */
  readonly item: RosterItem | undefined;
  /** The rest of the decision. */
  readonly result: T;
}

/** A change of a roster that was made, or was not needed. */
export interface RosterChange<T> extends Decision<T> {
  readonly before: RosterItem | undefined;
  /** Version of the roster with the change. */
  readonly version: number;
}

/** Place of one item, and the clock for pauses. */
export interface ChangeOptions {
  readonly owner: string;
  readonly contact: string;
  readonly clock: Clock;
  /** See `ChangePlace`. Asked between the reading and the writing. */
  readonly isStill?: (() => Promise<boolean>) | undefined;
}

/**
 * Changes one item of a roster: reads, lets `decide` apply the change, and writes. When another
 * node has changed the roster in between, it does so again with what it finds then. Resolves to
 * undefined when the roster may be that of the name's next owner by now; then nothing was changed.
 *
 * @throws CausewayError with a code `storage/…`; then nothing was changed
 */
export async function changeRoster<T>(
  store: RosterStore,
  { owner, contact, clock, isStill }: ChangeOptions,
  decide: (entry: RosterEntry) => Decision<T>,
): Promise<RosterChange<T> | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const entry = await store.find(owner, contact);
    const { item, result } = decide(entry);
    const change = { before: entry.item, item, result };
    if (item === entry.item) return { ...change, version: entry.version };
    if (await isStill?.() === false) return undefined;
    const version = await store.write(owner, { expected: entry.version, contact, item });
    if (version !== undefined) return { ...change, version };
    const { promise, resolve } = Promise.withResolvers<void>();
    clock.after(backoffMs(attempt, PAUSES), resolve);
    await promise;
  }
  throw new CausewayError(
    "storage/conflict",
    `Cannot change the roster of ${owner}: ${MAX_ATTEMPTS} attempts met other changes`,
    { retryable: true },
  );
}
