import assert from "node:assert/strict";
import type { NewRoomMessage, RoomOutbox } from "../room_outbox.ts";

/** One room that is there, and empty. */
export interface RoomOutboxFixture {
  readonly outbox: RoomOutbox;
  readonly room: string;
  /** Adds a message to the room, and returns its number. */
  post(message: NewRoomMessage): Promise<number>;
}

/** Checks what every store of rooms promises of messages that their archives lack. */
export async function roomOutboxConformance(
  { outbox, room, post }: RoomOutboxFixture,
): Promise<void> {
  assert.equal(await outbox.unarchived("nowhere@rooms.example.org", 10), undefined);
  const empty = (await outbox.unarchived(room, 10))!;
  assert.deepEqual(empty.messages, []);
  const { creation } = empty;
  const message = (id: string): NewRoomMessage => ({
    id,
    sentAtMs: 1_700_000_000_000,
    stanza: `<message>${id}</message>`,
    sender: "é@example.com",
    keep: 10,
    isArchived: true,
  });
  const first = await post(message("m0"));
  assert.equal(await post(message("m0")), first, "the same message has one number");
  for (let i = 1; i < 60; i++) await post(message(`m${i}`));
  const found = (await outbox.unarchived(room, 3))!;
  assert.deepEqual(
    found.messages.map((each) => each),
    [0, 1, 2].map((i) => ({
      number: first + i,
      id: `m${i}`,
      sentAtMs: 1_700_000_000_000,
      stanza: `<message>m${i}</message>`,
      sender: "é@example.com",
    })),
  );
  const numbers = async () =>
    (await outbox.unarchived(room, 100))!.messages.map(({ number }) => number - first);
  assert.equal((await numbers()).length, 60, "none has gone, however few are kept");
  assert.equal(await outbox.markArchived(room, { creation, number: first + 57 }), true);
  assert.deepEqual(await numbers(), [58, 59]);
  assert.equal(await outbox.markArchived(room, { creation, number: first + 3 }), true);
  assert.deepEqual(await numbers(), [58, 59], "the mark goes forwards alone");
  assert.equal(await outbox.markArchived(room, { creation: 1, number: first + 59 }), false);
  assert.deepEqual(await numbers(), [58, 59], "another room of the name has changed nothing");
  const { sender: _, ...anonymous } = message("anonymous");
  await post(anonymous);
  assert.equal((await outbox.unarchived(room, 100))!.messages.at(-1)?.sender, undefined);
  const overdue = async (limit: number, sentBeforeMs: number): Promise<readonly string[]> => {
    const found: string[] = [];
    let after: string | undefined;
    for (;;) {
      const page = await outbox.overdue({ limit, sentBeforeMs, ...after && { after } });
      found.push(...page.rooms);
      if (page.next === undefined) return found;
      after = page.next;
    }
  };
  for (const limit of [1, 500]) {
    assert.deepEqual(await overdue(limit, 1_700_000_000_001), [room]);
    assert.deepEqual(await overdue(limit, 1_700_000_000_000), [], "none was sent before");
  }
  assert.equal(await outbox.markArchived(room, { creation, number: first + 60 }), true);
  assert.deepEqual(await numbers(), []);
  assert.deepEqual(await overdue(500, 1e15), []);
}
