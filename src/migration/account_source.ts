import type { SourceItem } from "./moved_account.ts";

/** An item with its place in the source. */
export interface PlacedItem {
  readonly position: string;
  readonly item: SourceItem;
}

/** Accounts of another server, in an order that stays the same. */
export interface AccountSource {
  /** Text that is the same as long as the source is: files, sizes and times, or database. No secrets. */
  readonly id: string;
  /**
   * Reads the items behind a position; all of them without one. Memory is bounded by the largest
   * account.
   *
   * @throws CausewayError when the source cannot be read any further
   */
  items(after: string | undefined): AsyncIterable<PlacedItem>;
}
