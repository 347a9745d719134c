import assert from "node:assert/strict";
import type { RoomNames } from "../room_outbox.ts";

/** Names of rooms of which there are none yet. */
export interface RoomNamesFixture {
  readonly names: RoomNames;
  /** Makes a room, and returns its creation. */
  create(room: string): Promise<number>;
  destroy(room: string): Promise<void>;
}

/** Checks what every store of rooms promises of their names. */
export async function roomNamesConformance(
  { names, create, destroy }: RoomNamesFixture,
): Promise<void> {
  const pagesOf = async (limit: number): Promise<readonly string[]> => {
    const found: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await names.list({ limit, ...after !== undefined && { after } });
      assert.ok(page.length <= limit);
      found.push(...page);
      after = page.at(-1);
      if (page.length < limit) return found;
    }
  };
  assert.deepEqual(await pagesOf(3), []);
  assert.equal((await names.existing([])).size, 0);
  const rooms = ["a", "\u00fc\u{1f600}", "'; --", "%_", "b"].flatMap((name) => [
    `${name}@rooms.example.com`,
    `${name}@rooms.example.org`,
  ]);
  const creations = new Map<string, number>();
  for (const room of rooms) creations.set(room, await create(room));
  for (const limit of [1, 3, 5, 100]) {
    const found = await pagesOf(limit);
    assert.deepEqual(found.toSorted(), rooms.toSorted(), "each once, those of all domains");
    assert.deepEqual(found, await pagesOf(2), "the order stays");
  }
  const asked = [...rooms, "c@rooms.example.com", "A@rooms.example.com"];
  const sorted = (map: ReadonlyMap<string, number>) => [...map].toSorted();
  assert.deepEqual(sorted(await names.existing(asked)), sorted(creations));
  await destroy(rooms[2]!);
  const left = rooms.filter((room) => room !== rooms[2]);
  assert.deepEqual((await pagesOf(3)).toSorted(), left.toSorted());
  assert.equal((await names.existing(rooms)).size, left.length);
}
