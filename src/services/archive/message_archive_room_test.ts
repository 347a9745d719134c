import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { GATHERING_MS } from "./archive_writer.ts";
import type { Noting } from "./held_message.ts";
import type { ArchivableMessage } from "./message_archive.ts";
import {
  ALICE,
  ArchiveWorld,
  BOB,
  ready,
  settled,
  SIDES,
  turn,
} from "./testing/message_archive_world.ts";

Deno.test("MessageArchive asks the database nothing about a message that it has no room for", async () => {
  await using world = await ArchiveWorld.open(new FairShares({ maxBytes: 100 }));
  strictEqual(world.archive.note(world.message(ALICE, BOB), "absent"), "resource-constraint");
  const refused = await new Promise((resolve) => {
    world.archive.keep(world.message(ALICE, BOB), { kept: () => {}, refused: resolve });
  });
  deepStrictEqual([refused, world.asked], ["resource-constraint", 0]);
});

Deno.test("MessageArchive lets messages go on when the store fails, and settles them when they are stored", async () => {
  await using world = await ArchiveWorld.open();
  world.isDown = true;
  const noting = world.archive.note(world.message(ALICE, BOB), "recipient");
  ok(typeof noting === "object");
  await world.until(() => world.archive.pending > 0);
  world.clock.advance(1_000);
  await ready(noting);
  deepStrictEqual([noting.isSettled, noting.isStored], [false, false]);
  strictEqual(await world.value("causeway_archive_late_total"), 1);
  ok(world.budget.bytes > 0);
  world.isDown = false;
  world.clock.advance(10_000);
  await new Promise<void>((resolve) => noting.whenSettled(resolve));
  deepStrictEqual([noting.isStored, await world.sequences(BOB)], [true, [1]]);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive refuses what does not fit into its memory while the store fails", async () => {
  await using world = await ArchiveWorld.open(new FairShares({ maxBytes: 20_000 }));
  world.isDown = true;
  let taken = 0;
  while (world.archive.note(world.message(ALICE, BOB), "sender") !== "resource-constraint") taken++;
  ok(taken > 0 && world.budget.bytes <= 20_000);
  const early = world.archive.note(world.message(ALICE, BOB), "sender", true);
  strictEqual(early, "resource-constraint");
  match(await world.metrics.prometheus(), /archive_messages_total\{outcome="refused"\} 1\n/);
});

Deno.test("MessageArchive leaves lanes room while the store is late, however much memory is free", async () => {
  await using world = await ArchiveWorld.open();
  world.isDown = true;
  const noting = world.archive.note(world.message(ALICE, BOB), "sender");
  world.clock.advance(GATHERING_MS);
  await turn();
  world.clock.advance(1_000);
  ok(typeof noting === "object");
  await ready(noting);
  const content = `<body>${"x".repeat(50_000)}</body>`;
  let taken = 0;
  for (; taken < 1_000; taken++) {
    if (typeof world.archive.note(world.message(ALICE, BOB, content), "sender") !== "object") break;
  }
  ok(taken > 0 && world.budget.bytes <= 4_194_304, `${world.budget.bytes} bytes`);
  const other = world.message("carol@example.com", "dave@example.com");
  ok(typeof world.archive.note(other, "sender") === "object", "others find room");
  world.isDown = false;
  world.clock.advance(1_000);
  await world.until(() => world.archive.pending === 0);
  strictEqual((await world.sequences(ALICE)).length, Math.min(100, taken + 1));
  ok(typeof world.archive.note(world.message(ALICE, BOB), "sender") === "object");
  strictEqual(await world.value('causeway_archive_messages_total{outcome="refused"}'), 1);
});

/** Fills the share of a message's sender while the store is late. Returns a message without room. */
async function filledBy(world: ArchiveWorld, from: string, to: string): Promise<ArchivableMessage> {
  world.isDown = true;
  world.accountsHere.set("yan@example.com", "0f");
  const first = world.archive.note(
    world.message("zoe@example.com", "yan@example.com"),
    "recipient",
  );
  await turn();
  world.clock.advance(1_000);
  await ready(first as Noting);
  const content = `<body>${"x".repeat(50_000)}</body>`;
  for (let taken = 0; taken < 1_000; taken++) {
    const message = world.message(from, to, content);
    if (world.archive.note(message, "recipient", true) === "resource-constraint") return message;
  }
  throw new Error("the share has no end");
}

/** Makes a message wait for room; returns the outcomes of its wait. */
function wait(world: ArchiveWorld, message: ArchivableMessage): (boolean | Noting)[] {
  const outcomes: (boolean | Noting)[] = [];
  void world.archive.whenRoom(message, {
    side: "recipient",
    sinceMs: world.clock.monotonicMs(),
    attempt: () => {
      const noting = world.archive.note(message, "recipient", true);
      if (typeof noting === "object") outcomes.push(noting);
      return noting !== "resource-constraint";
    },
  }).then((hasRoom) => outcomes.push(hasRoom));
  return outcomes;
}

Deno.test("MessageArchive.whenRoom() has a message wait until the store takes those before it", async () => {
  await using world = await ArchiveWorld.open();
  const message = await filledBy(world, ALICE, BOB);
  const outcomes = wait(world, message);
  await turn();
  deepStrictEqual(outcomes, []);
  strictEqual(await world.value("causeway_archive_senders_waiting"), 1);
  const other = wait(world, world.message("carol@example.com", "dave@example.com"));
  await turn();
  strictEqual(other[1], true, "others find room");
  world.isDown = false;
  world.clock.advance(1_000);
  await world.until(() => outcomes.length === 2);
  strictEqual(outcomes[1], true);
  await world.until(() => world.archive.pending === 0);
  strictEqual((await world.sequences(BOB)).at(-1), message.sequence);
  strictEqual(await world.value("causeway_archive_senders_waiting"), 0);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive.whenRoom() refuses a session's message after five seconds, a component's after one", async () => {
  for (const [from, waitMs] of [[ALICE, 5_000], ["gateway.example.net", 1_000]] as const) {
    await using world = await ArchiveWorld.open();
    const message = await filledBy(world, from, BOB);
    const outcomes = wait(world, message);
    const { bytes } = world.budget;
    world.clock.advance(waitMs - 250);
    await turn();
    deepStrictEqual(outcomes, []);
    world.clock.advance(250);
    await turn();
    deepStrictEqual(outcomes, [false]);
    strictEqual(world.budget.bytes, bytes, "a message that waits is not held");
    strictEqual(await world.value('causeway_archive_messages_total{outcome="refused"}'), 1);
  }
});

Deno.test("MessageArchive.hurry() has messages wait for room for a second", async () => {
  await using world = await ArchiveWorld.open();
  const outcomes = wait(world, await filledBy(world, ALICE, BOB));
  world.archive.hurry();
  world.clock.advance(1_000);
  await turn();
  deepStrictEqual(outcomes, [false]);
});

Deno.test("MessageArchive takes a refused message back", async () => {
  await using world = await ArchiveWorld.open();
  for (const side of SIDES) {
    const noting = world.archive.note(world.message(ALICE, BOB), side);
    ok(typeof noting === "object");
    noting.takeBack();
    strictEqual((await settled(world, noting)).isStored, false, side);
  }
  await settled(world, world.archive.note(world.message(ALICE, BOB), "sender"));
  deepStrictEqual([await world.sequences(ALICE), await world.sequences(BOB)], [[4], []]);
  strictEqual(world.budget.bytes, 0);
});
