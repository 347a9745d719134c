import { randomBytes } from "node:crypto";
import type { OfflineStore } from "./offline_store.ts";
import type { UserStore } from "./user_store.ts";

/** Milliseconds for which the messages are claimed, to remove them. */
const CLAIM_MS = 10_000;
/** Bytes of the id of a claim. */
const ID_BYTES = 16;
/** Messages that are read at once. */
const AT_ONCE = 100;

/**
 * Removes messages that wait under a name which nobody has: a node that died as it kept them for an
 * earlier owner could not remove them. A claim tells them from those that come for somebody who takes
 * the name at the same moment. What was claimed is left then: it may be for that one.
 *
 * @param localpart name that the caller has found free
 * @throws CausewayError with a code `storage/…`
 */
export async function removeUnownedMessages(
  localpart: string,
  { users, messages }: {
    readonly users: Pick<UserStore, "exists">;
    readonly messages: Pick<OfflineStore, "claim" | "claimed" | "release" | "remove">;
  },
): Promise<void> {
  const id = randomBytes(ID_BYTES);
  // At the beginning of time, no message has expired.
  if (await messages.claim(localpart, { id, nowMs: 0, forMs: CLAIM_MS }) === 0) return;
  const isTaken = await users.exists(localpart);
  for (let after = 0;;) {
    const some = await messages.claimed(localpart, id, { after, limit: AT_ONCE });
    if (some.length === 0) return;
    const sequences = some.map(({ sequence }) => sequence);
    if (isTaken) await messages.release(localpart, id, sequences);
    else await messages.remove(localpart, id, sequences);
    after = sequences.at(-1)!;
  }
}
