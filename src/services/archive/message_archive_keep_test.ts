import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { ArchivableMessage } from "./message_archive.ts";
import {
  ALICE,
  ArchiveWorld,
  BOB,
  BOB_ARCHIVE,
  settled,
  turn,
} from "./testing/message_archive_world.ts";

Deno.test("MessageArchive takes a message for somebody absent if the account is there", async () => {
  await using world = await ArchiveWorld.open();
  const note = (to: string) =>
    settled(world, world.archive.note(world.message(ALICE, to), "absent"));
  strictEqual((await note(BOB)).isStored, true);
  strictEqual((await note("nobody@example.com")).isStored, false);
  world.isBlocked = true;
  world.clock.advance(2_000);
  strictEqual((await note(BOB)).isStored, false);
  deepStrictEqual(await world.sequences(BOB), [1]);
  deepStrictEqual(await world.sequences("nobody@example.com"), []);
});

Deno.test("MessageArchive.keep() accepts what the archive has, and what a blocked person sends", async () => {
  await using world = await ArchiveWorld.open();
  const keep = (message: ArchivableMessage) =>
    new Promise<string>((resolve) => {
      const outcome = { kept: () => resolve("kept"), refused: resolve };
      ok(world.archive.keep(message, outcome));
    });
  const message = world.message(ALICE, `${BOB}/gone`);
  await settled(world, world.archive.note(message, "absent"));
  strictEqual(await keep(message), "kept");
  strictEqual(await keep(world.message(ALICE, BOB)), "kept");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  strictEqual(await keep(world.message(ALICE, "nobody@example.com")), "service-unavailable");
  world.isBlocked = true;
  world.clock.advance(2_000); // what is known of the account has expired
  strictEqual(await keep(world.message(ALICE, BOB)), "kept");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  world.isBlocked = false;
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "never", always: [], never: [] });
  strictEqual(await keep(world.message(ALICE, BOB)), "service-unavailable");
});

Deno.test("MessageArchive.keep() answers within its time when the store fails, and stores nothing later", async () => {
  await using world = await ArchiveWorld.open();
  world.isDown = true;
  let answer: string | undefined;
  world.archive.keep(world.message(ALICE, BOB), {
    kept: () => answer = "kept",
    refused: (condition) => answer = condition,
  });
  await world.until(() => world.archive.pending > 0);
  // Between two attempts no transaction has the message.
  for (let step = 0; step < 100 && answer === undefined; step++) {
    world.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  strictEqual(answer, "internal-server-error");
  world.isDown = false;
  world.clock.advance(10_000);
  await world.until(() => world.archive.pending === 0);
  deepStrictEqual(await world.sequences(BOB), []);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive.keep() answers within its time when the store hangs", async () => {
  await using world = await ArchiveWorld.open();
  for (const isAccountHung of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.holdsQuestions = isAccountHung;
    world.hanging = promise;
    let answer: string | undefined;
    const message = world.message(ALICE, BOB);
    world.archive.keep(message, {
      kept: () => answer = "kept",
      refused: (condition) => answer = condition,
    });
    if (isAccountHung) await world.until(() => world.questions.length === 1);
    else await world.until(() => world.archive.pending === 1);
    world.clock.advance(4_999);
    await turn();
    strictEqual(answer, undefined);
    world.clock.advance(1);
    await turn();
    strictEqual(answer, "internal-server-error");
    world.questions[0]!.answer();
    resolve();
    await world.until(() => world.budget.bytes === 0);
  }
  deepStrictEqual(await world.sequences(BOB), [2], "the store had the second one");
});

Deno.test("MessageArchive does not store a message later that was given up while a transaction had it", async () => {
  await using world = await ArchiveWorld.open();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.hanging = promise;
  let answer: string | undefined;
  world.archive.keep(world.message(ALICE, BOB), {
    kept: () => answer = "kept",
    refused: (condition) => answer = condition,
  });
  await world.until(() => world.archive.pending === 1);
  world.clock.advance(5_000);
  await world.until(() => answer !== undefined);
  strictEqual(answer, "internal-server-error");
  world.isDown = true;
  resolve();
  await world.until(() => world.archive.pending === 0);
  world.isDown = false;
  strictEqual(world.budget.bytes, 0);
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 1);
  // Nothing waits for the store any more, so the next message is not late from the beginning.
  const next = await settled(world, world.archive.note(world.message(ALICE, BOB), "recipient"));
  strictEqual(next.isStored, true);
  strictEqual(await world.value("causeway_archive_late_total"), 1);
  deepStrictEqual(await world.sequences(BOB), [2]);
});

Deno.test("MessageArchive keeps the order of messages for somebody offline", async () => {
  await using world = await ArchiveWorld.open();
  world.holdsQuestions = true;
  const kept: number[] = [];
  const keep = () => {
    const message = world.message(ALICE, BOB);
    const outcome = { kept: () => void kept.push(message.sequence), refused: () => {} };
    ok(world.archive.keep(message, outcome));
  };
  keep();
  const second = world.archive.note(world.message(ALICE, BOB), "absent");
  keep();
  await turn();
  // The answers to later questions come first.
  for (const { answer } of world.questions.toReversed()) answer();
  await settled(world, second);
  await world.until(() => kept.length === 2);
  deepStrictEqual(await world.sequences(BOB), [1, 2, 3]);
  strictEqual(world.asked, 1);
});

Deno.test("MessageArchive keeps the order of messages whose sender is looked for in the roster", async () => {
  await using world = await ArchiveWorld.open();
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  const rosters: (() => void)[] = [];
  world.askRoster = () => new Promise((resolve) => void rosters.push(resolve));
  const carol = "carol@example.com";
  const notings = [ALICE, carol, ALICE].map((from) =>
    world.archive.note(world.message(from, BOB), "absent")
  );
  for (let answered = 0; answered < 2; answered++) {
    await world.until(() => rosters.length > 0);
    await turn();
    strictEqual(rosters.length, 1, "one question at a time");
    rosters.pop()!();
  }
  for (const noting of notings) await settled(world, noting);
  deepStrictEqual(await world.sequences(BOB), [1, 2, 3]);
});
