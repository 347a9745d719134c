import { Buffer } from "node:buffer";
import type { OfflineStore } from "../../storage/mod.ts";

/** Milliseconds for which all messages of an account are claimed, to remove some of them. */
const CLAIM_MS = 10_000;
/** Messages that are read at once. */
const AT_ONCE = 100;

/**
 * Removes messages that were kept for an account which was deleted meanwhile. Its name may have a new
 * owner, whose messages stay. One that a client of theirs has claimed already stays, too.
 *
 * @param stanzas the messages as the store has them
 * @param id of the claim: 16 bytes that no other claim has
 * @throws CausewayError with a code `storage/…`
 */
export async function takeBack(
  store: Pick<OfflineStore, "claim" | "claimed" | "release" | "remove">,
  localpart: string,
  { stanzas, id }: { readonly stanzas: readonly Uint8Array[]; readonly id: Uint8Array },
): Promise<void> {
  // At the beginning of time, no message has expired.
  if (await store.claim(localpart, { id, nowMs: 0, forMs: CLAIM_MS }) === 0) return;
  const left = [...stanzas];
  for (let after = 0;;) {
    const some = await store.claimed(localpart, id, { after, limit: AT_ONCE });
    if (some.length === 0) return;
    const [removed, others]: [number[], number[]] = [[], []];
    for (const { sequence, stanza } of some) {
      const index = left.findIndex((each) => Buffer.compare(each, stanza) === 0);
      if (index !== -1) left.splice(index, 1);
      (index === -1 ? others : removed).push(sequence);
    }
    if (removed.length > 0) await store.remove(localpart, id, removed);
    if (others.length > 0) await store.release(localpart, id, others);
    after = some.at(-1)!.sequence;
  }
}
