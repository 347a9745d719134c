import type { RoomChange, RoomStore, StoredRoom } from "../../storage/mod.ts";
import { mayBeDone } from "../rooms/mod.ts";

/**
 * Makes a room as the store does. When the database could not tell whether it has done so, it is asked
 * again, and the room that is there may be this one.
 */
export async function createRoom(
  store: RoomStore,
  room: string,
  content: Parameters<RoomStore["create"]>[1],
): Promise<number | undefined> {
  return await surely(() => store.create(room, content), async () => {
    const found = await store.read(room);
    const { config, occupants: set } = content;
    const isThis = found !== undefined && found.version === found.creation &&
      found.occupants.length === set.length && hasBecome(found, { config, set });
    return isThis ? found.version : undefined;
  });
}

/** Changes a room as the store does, and asks again when the database could not tell. */
export async function changeRoom(
  store: RoomStore,
  room: string,
  change: RoomChange,
): Promise<number | undefined> {
  return await surely(() => store.change(room, change), async () => {
    const found = await store.read(room);
    const isThis = found?.version === change.expected + 1 && hasBecome(found, change);
    return isThis ? found.version : undefined;
  });
}

/** Removes a room as the store does, and asks again when the database could not tell. */
export async function destroyRoom(
  store: RoomStore,
  room: string,
  { version, creation }: StoredRoom,
): Promise<boolean> {
  const isGone = async () => await store.destroy(room, version) || undefined;
  return await surely(
    isGone,
    async () => (await store.read(room))?.creation === creation ? undefined : true,
  ) ?? false;
}

/**
 * Makes a change.
 *
 * @param make returns undefined when the room is not as it expects
 * @param find looks whether the room is so because the change is done already. Somebody else may have
 * made the same one: the occupants are told twice then, which changes nothing for them
 */
async function surely<T>(
  make: () => Promise<T | undefined>,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  try {
    return await make();
  } catch (thrown) {
    if (!mayBeDone(thrown)) throw thrown;
    return await make() ?? await find();
  }
}

/** True for a room that is as a change makes it. */
function hasBecome(
  { config, occupants }: StoredRoom,
  change: Omit<RoomChange, "expected">,
): boolean {
  const now = new Map(occupants.map(({ jid, affiliation }) => [jid, affiliation]));
  return config === (change.config ?? config) &&
    (change.set ?? []).every(({ jid, affiliation }) => now.get(jid) === affiliation) &&
    !(change.removed ?? []).some((jid) => now.has(jid));
}
