import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { archiveKeyOf } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { GATHERING_MS } from "./archive_writer.ts";
import type { Noting } from "./held_message.ts";
import {
  ALICE,
  ALICE_ARCHIVE,
  ArchiveWorld,
  BOB,
  BOB_ARCHIVE,
  BODY,
  CREATIONS,
  settled,
  SIDES,
  turn,
} from "./testing/message_archive_world.ts";

Deno.test("MessageArchive gives a message to both archives, each with the other side", async () => {
  await using world = await ArchiveWorld.open();
  const message = world.message(`${ALICE}/desk`, BOB);
  for (const side of ["sender", "recipient"] as const) {
    strictEqual((await settled(world, world.archive.note(message, side))).isStored, true);
  }
  const filter = (bare: string, resourcepart = "") => ({ peer: { bare, resourcepart } });
  deepStrictEqual(await world.sequences(ALICE, filter(BOB)), [1]);
  deepStrictEqual(await world.sequences(BOB, filter(ALICE, "desk")), [1]);
  deepStrictEqual(await world.sequences(BOB, filter(BOB)), []);
  const again = world.message(ALICE, ALICE);
  for (const side of ["sender", "recipient"] as const) {
    strictEqual((await settled(world, world.archive.note(again, side))).isStored, true);
  }
  deepStrictEqual(await world.sequences(ALICE), [1, 2], "a note to oneself is there once");
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive gives a store the text of messages where it searches them", async () => {
  await using world = await ArchiveWorld.open();
  const note = async (content?: string) => {
    const message = world.message(`${ALICE}/desk`, BOB, content);
    for (const side of SIDES) await settled(world, world.archive.note(message, side));
    return world.given.splice(0).map(({ text }) => text);
  };
  strictEqual(world.archive.searchesText("example.com"), false);
  deepStrictEqual(await note(), [undefined, undefined, undefined]);
  world.searchesText = true;
  strictEqual(world.archive.searchesText("example.com"), true);
  strictEqual(world.archive.searchesText("example.org"), false);
  deepStrictEqual(await note(), ["hi", "hi", "hi"]);
  const encrypted = `${BODY}<encrypted xmlns='urn:xmpp:omemo:2'/>`;
  deepStrictEqual(await note(encrypted), ["", "", ""]);
  world.isSearched = false;
  strictEqual(world.archive.searchesText("example.com"), false);
  deepStrictEqual(await note(), [undefined, undefined, undefined]);
});

Deno.test("MessageArchive counts the text of a message that waits", async () => {
  await using world = await ArchiveWorld.open();
  const long = `<body>${"x".repeat(10_000)}</body>`;
  const waiting = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.hanging = promise;
    const noting = world.archive.note(world.message(`${ALICE}/desk`, BOB, long), "sender");
    const { bytes } = world.budget;
    resolve();
    await settled(world, noting);
    return bytes;
  };
  const without = await waiting();
  world.searchesText = true;
  strictEqual(await waiting(), without + 20_000);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive keeps accounts apart that had one name one after another", async () => {
  await using world = await ArchiveWorld.open();
  const note = (side: typeof SIDES[number]) =>
    settled(world, world.archive.note(world.message(`${ALICE}/desk`, BOB), side));
  await note("recipient");
  world.accounts.set(BOB, "0c"); // bob's client is still the one of the account before
  await note("recipient");
  await note("absent");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  deepStrictEqual(await world.sequences(BOB, {}, "0c"), [3]);
  // Clients of both, or none: the database is asked.
  world.accountsHere.delete(BOB);
  world.accountsHere.delete(ALICE);
  world.accounts.delete(ALICE);
  strictEqual((await note("recipient")).isStored, true);
  strictEqual((await note("sender")).isStored, false);
  deepStrictEqual(await world.sequences(BOB, {}, "0c"), [3, 4]);
  deepStrictEqual(await world.sequences(ALICE), []);
});

Deno.test("MessageArchive keeps a message whose session has gone while the store of accounts fails", async () => {
  await using world = await ArchiveWorld.open();
  const { archive, clock } = world;
  world.accountsHere.clear();
  world.isAccountsDown = true;
  const notings = (["sender", "sender", "recipient"] as const).map((side) =>
    archive.note(world.message(ALICE, BOB), side) as Noting
  );
  let isReady = false;
  notings[2]!.whenReady(() => isReady = true);
  await world.until(() => world.asked === 2);
  await turn();
  clock.advance(1_000);
  await world.until(() => world.asked === 4);
  await turn();
  deepStrictEqual([isReady, ...notings.map((each) => each.isSettled)], [true, false, false, false]);
  world.isAccountsDown = false;
  clock.advance(1_000);
  await world.until(() => world.asked === 6);
  await turn();
  clock.advance(1_000);
  for (const noting of notings) await settled(world, noting);
  deepStrictEqual(await world.sequences(ALICE), [1, 2]);
  deepStrictEqual(await world.sequences(BOB), [3]);
  // A node that stops asks once more.
  clock.advance(5_000);
  world.isAccountsDown = true;
  archive.note(world.message(ALICE, BOB), "sender");
  await world.until(() => world.asked === 7);
  await turn();
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 1);
});

const OUTCOME = { kept: () => {}, refused: () => {} };

Deno.test("MessageArchive leaves alone what no archive takes", async () => {
  await using world = await ArchiveWorld.open();
  const { archive } = world;
  const outside = world.message("x@example.org", "room.example.org");
  for (const side of SIDES) strictEqual(archive.note(outside, side), undefined);
  const state = "<active xmlns='http://jabber.org/protocol/chatstates'/>";
  for (const side of SIDES) {
    strictEqual(archive.note(world.message(ALICE, BOB, state), side), undefined);
  }
  strictEqual(archive.keep(world.message(ALICE, BOB, state), OUTCOME), false);
  strictEqual(archive.keep(world.message(ALICE, "room.example.org"), OUTCOME), false);
  for (const here of ["nobody", "blocked"] as const) {
    world.here = here;
    strictEqual(archive.isHere(world.message(ALICE, BOB)), false, here);
  }
});

Deno.test("MessageArchive asks the roster where preferences want contacts alone", async () => {
  await using world = await ArchiveWorld.open();
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  const note = () => settled(world, world.archive.note(world.message(ALICE, BOB), "recipient"));
  strictEqual((await note()).isStored, false);
  world.isContact = true;
  strictEqual((await note()).isStored, true);
  deepStrictEqual(await world.sequences(BOB), [2]);
});

Deno.test("MessageArchive keeps a message while the roster fails, and asks it again", async () => {
  await using world = await ArchiveWorld.open();
  const { archive, clock } = world;
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  let isAway = true;
  let asked = 0;
  world.askRoster = () => {
    asked++;
    return isAway ? Promise.reject(new Error("away")) : Promise.resolve();
  };
  const noting = archive.note(world.message(ALICE, BOB), "recipient") as Noting;
  let isReady = false;
  noting.whenReady(() => isReady = true);
  await world.until(() => asked === 1);
  await turn();
  deepStrictEqual([isReady, noting.isSettled, archive.pending], [false, false, 1]);
  clock.advance(1_000);
  await world.until(() => asked === 2);
  await turn();
  deepStrictEqual([isReady, noting.isSettled], [true, false], "it goes on, and is kept");
  await archive.caughtUp(parseJid(BOB).bare, BOB_ARCHIVE); // waits for no roster that is late
  isAway = false;
  clock.advance(1_000);
  await settled(world, noting);
  deepStrictEqual(await world.sequences(BOB), [1]);
  // An error has told the sender: nothing is kept for longer.
  isAway = true;
  const refused: string[] = [];
  const outcome = { kept() {}, refused: (condition: string) => void refused.push(condition) };
  archive.keep(world.message(ALICE, BOB), outcome);
  await world.until(() => asked === 4);
  clock.advance(5_000);
  await world.until(() => refused.length > 0);
  deepStrictEqual([refused, world.budget.bytes], [["internal-server-error"], 0]);
  // A node that stops has no time to ask again.
  archive.note(world.message(ALICE, BOB), "recipient");
  await world.until(() => archive.pending === 1 && asked >= 5);
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 2);
});

Deno.test("MessageArchive.caughtUp() waits for what an archive is still to have, and for no other", async () => {
  await using world = await ArchiveWorld.open();
  const { archive, clock } = world;
  const caughtUp = (account: string) => {
    const key = archiveKeyOf(account, CREATIONS.get(account)!);
    return archive.caughtUp(parseJid(account).bare, key);
  };
  await caughtUp(ALICE);
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  world.hanging = answer;
  archive.note(world.message(ALICE, BOB), "sender");
  await caughtUp(BOB);
  let isOver = false;
  const over = caughtUp(ALICE).then(() => isOver = true);
  await turn();
  strictEqual(isOver, false);
  resolve();
  await over;
  deepStrictEqual(await world.sequences(ALICE), [1], "nobody had to wait until it had gathered");
  // The roster is asked first.
  await world.store.setPreferences(ALICE_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  archive.note(world.message(ALICE, BOB), "sender");
  await caughtUp(ALICE);
  deepStrictEqual(await world.sequences(ALICE), [1, 2]);
  // A store that fails holds nobody up for long, and then nobody at all.
  world.isDown = true;
  archive.note(world.message(ALICE, BOB), "sender");
  const later = caughtUp(ALICE);
  await turn();
  clock.advance(1_000);
  await later;
  await caughtUp(ALICE);
});

Deno.test("MessageArchive waits for a message that the roster is asked about, when it is read and closed", async () => {
  await using world = await ArchiveWorld.open();
  const { archive } = world;
  const carol = "carol@example.com";
  const preferences = { byDefault: "roster", always: [carol], never: [] } as const;
  await world.store.setPreferences(ALICE_ARCHIVE, preferences);
  world.isContact = true;
  for (const to of [BOB, carol]) archive.note(world.message(ALICE, to), "sender");
  await archive.caughtUp(parseJid(ALICE).bare, ALICE_ARCHIVE);
  deepStrictEqual(await world.sequences(ALICE), [2, 1], "not for the last one alone");
  archive.note(world.message(ALICE, BOB), "recipient");
  archive.note(world.message(ALICE, BOB), "sender");
  world.clock.advance(GATHERING_MS);
  await turn();
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 0);
  deepStrictEqual(await world.sequences(ALICE), [2, 1, 4]);
});

Deno.test("MessageArchive.stamped() tells the recipient the id of an archived message alone", async () => {
  await using world = await ArchiveWorld.open();
  const { stanza, ...id } = world.message(
    ALICE,
    BOB,
    `${BODY}<stanza-id xmlns='urn:xmpp:sid:0' by='${BOB}' id='x'/>`,
  );
  const text = (isArchived: boolean) =>
    new TextDecoder().decode(world.archive.stamped({ ...id, stanza, isArchived }).bytes);
  ok(text(true).includes(`<stanza-id xmlns='urn:xmpp:sid:0' by='${BOB}' id='5-1'/>`));
  ok(!text(false).includes("stanza-id"));
  const { bytes } = world.archive.unclaimed(stanza);
  ok(!new TextDecoder().decode(bytes).includes("stanza-id"), "nor the id that others made up");
});
