import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { roomArchiveKeyOf } from "../../storage/mod.ts";
import {
  ALICE,
  BOB,
  CAROL,
  COVEN,
  field,
  MUC,
  SWEEP_WITHIN_MS,
  withRoom,
} from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

const MAM = "urn:xmpp:mam:2";

/** A message of an archive. */
interface Found {
  readonly id: string;
  readonly text: string;
  readonly xml: string;
}

/** Asks for a page of the archive. */
async function page(
  node: MucNode,
  jid: string,
  content = "",
): Promise<{ readonly found: readonly Found[]; readonly answer: string }> {
  node.got(jid);
  await node.take(
    `<iq from='${jid}' to='${COVEN}' type='set' id='q'><query xmlns='${MAM}'>${content}</query></iq>`,
  );
  const got = node.got(jid);
  const found = got.filter((xml) => xml.includes("<result ")).map((xml) => ({
    id: /<result [^>]*id='(\d+)'/.exec(xml)![1]!,
    text: /<body>(.*?)<\/body>/.exec(xml)?.[1] ?? "",
    xml,
  }));
  return { found, answer: got.find((xml) => xml.startsWith("<iq")) ?? "" };
}

function set(content: string): string {
  return `<set xmlns='http://jabber.org/protocol/rsm'>${content}</set>`;
}

function form(name: string, value: string): string {
  return `<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>${MAM}</value>` +
    `</field><field var='${name}'><value>${value}</value></field></x>`;
}

/** The same two datacenters and room, with archives. */
function withArchive(fields = "", archiveAgeMs = Infinity) {
  return withRoom(fields, { hasArchives: true, archiveAgeMs });
}

function idsOf(got: readonly string[]): readonly string[] {
  return got.flatMap((xml) => /<stanza-id [^>]*id='(\d+)'/.exec(xml)?.[1] ?? []);
}

Deno.test("the archive of a room has each message once, in the order and by the ids that occupants saw", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  await Promise.all(
    Array.from(
      { length: 20 },
      (_, i) => (i % 2 === 0 ? one : two).say(i % 2 ? BOB : ALICE, `${i}`),
    ),
  );
  await world.look();
  const [atAlice, atBob] = [one.got(ALICE), two.got(BOB)];
  const seen = atBob.flatMap((xml) => /<body>(.*?)<\/body>/.exec(xml)?.[1] ?? []);
  strictEqual(seen.length, 20);
  deepStrictEqual(idsOf(atAlice), idsOf(atBob));
  const { found, answer } = await page(two, BOB);
  deepStrictEqual(found.map(({ text }) => text), seen);
  deepStrictEqual(found.map(({ id }) => id), idsOf(atBob));
  match(answer, /complete='true'/);
  deepStrictEqual((await page(one, ALICE)).found.map(({ id }) => id), idsOf(atBob));
});

Deno.test("the archive of a room is read in pages, either way, by nickname and by id", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  for (let i = 0; i < 5; i++) await one.say(ALICE, `${i}`);
  await world.nodes[1]!.say(BOB, "5");
  const ids = idsOf(one.got(ALICE));
  const texts = async (content: string) =>
    (await page(one, ALICE, content)).found.map(({ text }) => text);
  deepStrictEqual(await texts(set("<max>2</max>")), ["0", "1"]);
  deepStrictEqual(await texts(set(`<max>2</max><after>${ids[1]}</after>`)), ["2", "3"]);
  deepStrictEqual(await texts(set("<max>2</max><before/>")), ["4", "5"]);
  deepStrictEqual(await texts(`${set("<max>2</max><before/>")}<flip-page/>`), ["5", "4"]);
  deepStrictEqual(await texts(form("with", `${COVEN}/bard`)), ["5"]);
  deepStrictEqual(await texts(form("ids", ids[3]!)), ["3"]);
  match((await page(one, ALICE, set("<after>nonsense</after>"))).answer, /<item-not-found /);
  match((await page(one, ALICE, set("<after>1</after>"))).answer, /<item-not-found /);
  match((await page(one, ALICE, set("<max>0</max>"))).answer, /<count>6<\/count>/);
  const metadata = await one.ask(ALICE, "get", `<metadata xmlns='${MAM}'/>`);
  match(metadata, new RegExp(`<start id='${ids[0]}' .*<end id='${ids[5]}' `));
  match(await one.ask(ALICE, "get", `<query xmlns='${MAM}'/>`), /var='with'/);
  match(await one.ask(ALICE, "get", `<prefs xmlns='${MAM}'/>`), /<service-unavailable /);
  const info = await one.ask(
    ALICE,
    "get",
    "<query xmlns='http://jabber.org/protocol/disco#info'/>",
  );
  match(info, /var='urn:xmpp:mam:2'.*var='urn:xmpp:mam:2#extended'/);
});

Deno.test("members and occupants read the archive of a room, and nobody else", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  await one.say(ALICE, "secret");
  const refused = async (node: MucNode, jid: string) => {
    const { found, answer } = await page(node, jid);
    deepStrictEqual(found, []);
    return answer;
  };
  match(await refused(one, CAROL), /<forbidden /);
  const admin = (item: string) =>
    one.ask(ALICE, "set", `<query xmlns='${MUC}#admin'>${item}</query>`);
  await admin("<item jid='carol@example.com' affiliation='member'/>");
  strictEqual((await page(one, CAROL)).found.length, 1, "a member need not be there");
  await one.ask(
    ALICE,
    "set",
    `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>` +
      `${field("muc#roomconfig_membersonly", "1")}${
        field("muc#roomconfig_publicroom", "0")
      }</x></query>`,
  );
  match(await refused(two, BOB), /<item-not-found /, "hidden, and bob had to leave");
  strictEqual((await page(one, CAROL)).found.length, 1);
  await admin("<item jid='carol@example.com' affiliation='outcast'/>");
  match(await refused(one, CAROL), /<item-not-found /);
});

Deno.test("the archive of a room shows real addresses to those who may see them", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  await two.say(BOB, "hello");
  ok(!one.got(ALICE).join("").includes("bob@"), "a message itself shows none");
  const shown = (await page(one, ALICE)).found[0]!.xml;
  match(shown, /<item jid='bob@example.com'\/>/);
  match(shown, new RegExp(`from='${COVEN}/bard'`));
  ok(!(await page(two, BOB)).found[0]!.xml.includes("bob@example.com'/>"));
  await one.ask(
    ALICE,
    "set",
    `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>` +
      `${field("muc#roomconfig_whois", "anyone")}</x></query>`,
  );
  match((await page(two, BOB)).found[0]!.xml, /<item jid='bob@example.com'\/>/);
});

Deno.test("a message that is not to be kept is in no archive and no history, and has no id", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  const send = (content: string) =>
    one.take(`<message from='${ALICE}' to='${COVEN}' type='groupchat' id='m'>${content}</message>`);
  await send("<composing xmlns='http://jabber.org/protocol/chatstates'/>");
  await send("<body>secret</body><no-store xmlns='urn:xmpp:hints'/>");
  await send("<body>kept</body>");
  await send("<subject>of interest</subject>");
  const got = two.got(BOB);
  strictEqual(got.length, 4);
  deepStrictEqual(got.map((xml) => xml.includes("<stanza-id ")), [false, false, true, true]);
  const { found } = await page(two, BOB);
  deepStrictEqual(found.map(({ id }) => id), idsOf(got));
  match(found[1]!.xml, /<subject>of interest<\/subject>/);
  await two.enter(CAROL, "crone");
  const messages = two.got(CAROL).filter((xml) => xml.startsWith("<message"));
  deepStrictEqual(messages.map((xml) => /<body>(.*?)<\/body>/.exec(xml)?.[1]), ["kept", undefined]);
  match(messages[0]!, /<delay /);
  match(messages[1]!, /<subject>of interest<\/subject>/);
});

Deno.test("a node that could not write to the archive leaves its messages to others", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  one.isArchiveDown = true;
  for (const text of ["a", "b"]) await one.say(ALICE, text);
  deepStrictEqual((await page(two, BOB)).found.map(({ text }) => text), ["a", "b"]);
  await two.say(BOB, "c");
  await one.say(ALICE, "d");
  one.isArchiveDown = false;
  await world.look();
  const { found } = await page(one, ALICE);
  deepStrictEqual(found.map(({ text }) => text), ["a", "b", "c", "d"]);
});

Deno.test("messages that a dead node left come into the archive though nobody writes or reads", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  two.archives!.start();
  one.isArchiveDown = true;
  for (const text of ["a", "b"]) await one.say(ALICE, text);
  world.dead.add(one);
  const { creation } = (await world.store.read(COVEN))!;
  const key = roomArchiveKeyOf(COVEN, { creation });
  strictEqual(await world.archiveStore!.ends(key), undefined);
  for (let passedMs = 0; passedMs < SWEEP_WITHIN_MS; passedMs += SWEEP_WITHIN_MS / 6) {
    world.clock.advance(SWEEP_WITHIN_MS / 6);
    await world.settled();
  }
  const stored = (await world.archiveStore!.read(key, {}, { limit: 10, from: "start" }))!;
  deepStrictEqual(
    stored.messages.map(({ stanza }) =>
      /<body>(.*)<\/body>/.exec(new TextDecoder().decode(stanza))?.[1]
    ),
    ["a", "b"],
  );
});

Deno.test("messages that waited for the database are in the archive once, in one order", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  one.isStoreDown = true;
  world.cut.add("dc1.example.com dc2.example.com").add("dc2.example.com dc1.example.com");
  await one.say(ALICE, "here");
  await two.say(BOB, "there");
  one.isStoreDown = false;
  world.cut.clear();
  await world.look(4);
  const [atOne, atTwo] = [await page(one, ALICE), await page(two, BOB)];
  deepStrictEqual(atOne.found.map(({ text }) => text).toSorted(), ["here", "there"]);
  deepStrictEqual(atOne.found.map(({ id }) => id), atTwo.found.map(({ id }) => id));
});

Deno.test("the archive of a room goes with it", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  await one.say(ALICE, "old");
  strictEqual((await page(one, ALICE)).found.length, 1);
  const before = `${COVEN} ${(await world.store.read(COVEN))!.creation.toString(36)}`;
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#owner'><destroy/></query>`);
  await world.look();
  strictEqual(await world.archiveStore!.ends(before), undefined);
  match((await page(one, ALICE)).answer, /<item-not-found /);
  await one.make(ALICE, "witch");
  deepStrictEqual((await page(one, ALICE)).found, []);
});

Deno.test("the next room of a name shows no archive that a dead node has left of the one before", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  await one.say(ALICE, "old");
  strictEqual((await page(one, ALICE)).found.length, 1);
  const before = roomArchiveKeyOf(COVEN, { creation: (await world.store.read(COVEN))!.creation });
  one.isArchiveDown = true;
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#owner'><destroy/></query>`);
  world.dead.add(one);
  world.isLeaseOver = true;
  await world.look(4);
  await two.make(BOB, "bard");
  await two.say(BOB, "new");
  deepStrictEqual((await page(two, BOB)).found.map(({ text }) => text), ["new"]);
  await two.enter(CAROL, "crone");
  deepStrictEqual(two.texts(CAROL), ["new"]);
  ok(await world.archiveStore!.ends(before) !== undefined, "nobody has removed it");
});

Deno.test("whoever might read the archive of a room reads none of the next room of its name", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  // The room is removed and made again after it was found that bob may read.
  two.beforeUnarchived = async () => {
    await one.server.settled();
    const { version } = (await world.store.read(COVEN))!;
    await world.store.destroy(COVEN, version);
    world.clock.advance(1);
    const affiliates = [{ jid: "alice@example.com", affiliation: "owner" as const, reason: "" }];
    const creator = { creator: "alice@example.com", maxCreated: 1 };
    await world.store.create(COVEN, { config: "{}", isListed: false, affiliates, ...creator });
    const stanza = `<message type='groupchat' from='${COVEN}/witch'><body>secret</body></message>`;
    const message = { id: "s", sentAtMs: 1, stanza, keep: 1, isArchived: true };
    await world.store.post(COVEN, message);
  };
  const { found, answer } = await page(two, BOB);
  deepStrictEqual(found, []);
  match(answer, /<item-not-found /);
});

Deno.test("newcomers get no message that is older than the archive keeps", async () => {
  const [world, one] = await withArchive("", 3_600_000);
  await using _ = world;
  await one.say(ALICE, "old");
  world.clock.advance(3_600_001);
  await world.look();
  await one.say(ALICE, "new");
  await one.enter(CAROL, "crone");
  deepStrictEqual(one.texts(CAROL), ["new"]);
});

Deno.test("readers of an archive that is not written in time get an error, and wait for one step", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  one.isArchiveDown = true;
  await one.say(ALICE, "a");
  const reading = Array.from(
    { length: 20 },
    () => one.ask(ALICE, "set", `<query xmlns='${MAM}'/>`, COVEN),
  );
  for (let i = 0; i < 40; i++) {
    world.clock.advance(5_000);
    await new Promise((resolve) => setTimeout(resolve));
  }
  await Promise.all(reading);
  const answers = one.got(ALICE).filter((xml) => xml.startsWith("<iq"));
  strictEqual(answers.length, 20);
  for (const answer of answers) match(answer, /<resource-constraint /);
  one.isArchiveDown = false;
  await world.look();
  deepStrictEqual((await page(one, ALICE)).found.map(({ text }) => text), ["a"]);
});

Deno.test("readers of an archive get an error at once while its database is away for long", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  one.isArchiveDown = true;
  await one.say(ALICE, "a");
  await world.look();
  match((await page(one, ALICE)).answer, /<resource-constraint /);
});

Deno.test("messages stay with their room while the database of archives fails without a name", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  one.refuses = () => true;
  for (const text of ["a", "b"]) await one.say(ALICE, text);
  await world.look(10);
  one.refuses = () => false;
  await world.look();
  deepStrictEqual((await page(one, ALICE)).found.map(({ text }) => text), ["a", "b"]);
});

Deno.test("the archive of a room keeps its order when a message fails for a moment", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  one.isArchiveDown = true;
  for (const text of ["a", "b", "c"]) await one.say(ALICE, text);
  one.isArchiveDown = false;
  let failures = 0;
  one.refuses = (stanza) => stanza.includes("<body>a<") && failures++ < 3;
  await world.look(10);
  strictEqual(failures > 3, true);
  deepStrictEqual((await page(one, ALICE)).found.map(({ text }) => text), ["a", "b", "c"]);
});

Deno.test("a message that the database of archives cannot hold is given up, and no other", async () => {
  const [world, one] = await withArchive();
  await using _ = world;
  one.refuses = (stanza) => stanza.includes("odd");
  await one.say(ALICE, "odd");
  await world.look(3);
  match((await page(one, ALICE)).answer, /<resource-constraint /, "it is the only one");
  for (const text of ["a", "odd", "b"]) await one.say(ALICE, text);
  await world.look(20);
  deepStrictEqual((await page(one, ALICE)).found.map(({ text }) => text), ["a", "b"]);
});

Deno.test("the archive of a room is searched for words", async () => {
  const [world, one, two] = await withArchive();
  await using _ = world;
  for (const text of ["toil and trouble", "fire burn"]) await one.say(ALICE, text);
  const { found } = await page(two, BOB, form("{urn:xmpp:fulltext:0}fulltext", "trouble"));
  deepStrictEqual(found.map(({ text }) => text), ["toil and trouble"]);
  const info = await one.ask(
    ALICE,
    "get",
    "<query xmlns='http://jabber.org/protocol/disco#info'/>",
  );
  match(info, /var='urn:xmpp:fulltext:0'/);
});
