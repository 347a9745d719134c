import type { Roster, VersionedItem } from "../../storage/mod.ts";

/** Versions are integers below 2^53, written without a sign or leading zeros. */
const VERSION = /^(0|[1-9][0-9]{0,15})$/;

/** Most items that a client is told of one by one; with more it gets the whole roster. */
const MAX_PUSHES = 100;

/**
 * Returns the items that have changed since the version that a client knows, the oldest change
 * first (RFC 6121 §2.6). Undefined: the client needs the whole roster. Pure.
 *
 * @param known the `ver` of the client's request
 */
export function changesSince(
  { version, removedVersion, items }: Roster,
  known: string,
): readonly VersionedItem[] | undefined {
  if (!VERSION.test(known)) return undefined;
  const since = Number(known);
  if (since > version || since < removedVersion) return undefined;
  const changed = items.filter((item) => item.isListed && item.version > since)
    .toSorted((one, other) => one.version - other.version);
  return changed.length > MAX_PUSHES ? undefined : changed;
}
