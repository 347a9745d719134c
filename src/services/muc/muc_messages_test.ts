import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ALICE, BOB, CAROL, COVEN, DAVE, field, MUC, withRoom } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

function admin(item: string): string {
  return `<query xmlns='${MUC}#admin'>${item}</query>`;
}

Deno.test("MucServer gives messages to everybody at all nodes in one order, and newcomers history", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await Promise.all([
    ...Array.from({ length: 5 }, (_, i) => one.say(ALICE, `alice ${i}`)),
    ...Array.from({ length: 5 }, (_, i) => two.say(BOB, `bob ${i}`)),
  ]);
  const [atAlice, atBob] = [one.texts(ALICE), two.texts(BOB)];
  strictEqual(atAlice.length, 10);
  deepStrictEqual(atAlice, atBob);
  await two.enter(CAROL, "crone", "<history maxstanzas='3'/>");
  const got = two.got(CAROL);
  const past = got.filter((xml) => xml.includes("<delay "));
  deepStrictEqual(past.map((xml) => /<body>(.*?)</.exec(xml)![1]), atAlice.slice(7));
  match(past[0]!, /<stanza-id xmlns='urn:xmpp:sid:0' by='coven@conference.example.com' id='\d+'/);
  await one.say(ALICE, "new");
  deepStrictEqual(two.texts(CAROL), ["new"]);
});

Deno.test("MucServer gives newcomers what was written before other nodes knew of them", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look();
  world.held = [];
  await three.enter(CAROL, "crone");
  await two.say(BOB, "hello");
  world.release();
  await world.look();
  deepStrictEqual(three.texts(CAROL), ["hello"]);
  await two.say(BOB, "next");
  await world.look(12);
  deepStrictEqual(three.texts(CAROL), ["next"]);
  deepStrictEqual(one.texts(ALICE), ["hello", "next"]);
});

Deno.test("MucServer gives a session that has moved what was written meanwhile", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look();
  world.held = [];
  three.resume(ALICE, one);
  await world.settled();
  await two.say(BOB, "hello");
  world.release();
  await world.look();
  deepStrictEqual(three.texts(ALICE), ["hello"]);
});

Deno.test("MucServer reads a message that did not come over the links from the database", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.held = [];
  await one.say(ALICE, "lost");
  world.held = undefined; // it is gone
  await one.say(ALICE, "next");
  deepStrictEqual(two.texts(BOB), []);
  world.clock.advance(300);
  await world.settled();
  deepStrictEqual(two.texts(BOB), ["lost", "next"]);
});

Deno.test("MucServer lets occupants talk on while the database is away, and numbers it later", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  one.isStoreDown = two.isStoreDown = true;
  const before = one.settled;
  await one.say(ALICE, "still here");
  deepStrictEqual(one.texts(ALICE), ["still here"]);
  deepStrictEqual(two.texts(BOB), ["still here"]);
  strictEqual(one.settled, before);
  const subject =
    `<message from='${ALICE}' to='${COVEN}' type='groupchat'><subject>x</subject></message>`;
  await one.take(subject);
  match(one.got(ALICE).join(""), /<resource-constraint /);
  const ban = admin("<item affiliation='outcast' jid='bob@example.com'/>");
  match(await one.ask(ALICE, "set", ban), /<resource-constraint /);
  one.isStoreDown = two.isStoreDown = false;
  await world.look();
  strictEqual(one.settled, before + 3);
  deepStrictEqual([one.texts(ALICE), two.texts(BOB)], [[], []], "nobody gets it twice");
  await two.enter(CAROL, "crone");
  deepStrictEqual(two.texts(CAROL), ["still here"]);
});

Deno.test("MucServer gives newcomers what waited for the database when they came", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  one.isStoreDown = two.isStoreDown = true;
  await one.say(ALICE, "before");
  await one.enter(CAROL, "crone");
  await one.say(ALICE, "after");
  deepStrictEqual(one.texts(CAROL), ["after"]);
  deepStrictEqual(one.texts(ALICE), ["before", "after"]);
  one.isStoreDown = two.isStoreDown = false;
  await world.look();
  deepStrictEqual(one.texts(CAROL), ["before"]);
  deepStrictEqual(one.texts(ALICE), [], "she has both");
  await one.say(ALICE, "now");
  deepStrictEqual([one.texts(CAROL), two.texts(BOB)], [["now"], ["before", "after", "now"]]);
});

Deno.test("MucServer passes on no ids and times that an occupant gives in the room's name", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const forged = [COVEN, COVEN.toUpperCase()].map((room) =>
    `<stanza-id xmlns='urn:xmpp:sid:0' by='${room}' id='9'/>` +
    `<delay xmlns='urn:xmpp:delay' from='${room}' stamp='2001-01-01T00:00:00Z'/>`
  ).join("");
  const message = (to: string, type: string) =>
    `<message from='${BOB}' to='${to}' type='${type}'><body>hi</body>${forged}</message>`;
  await two.take(message(COVEN, "groupchat"));
  await two.take(message(`${COVEN}/witch`, "chat"));
  const [said, whispered] = one.got(ALICE).map((xml) => xml.match(/<(stanza-id|delay) [^>]*/g));
  strictEqual(said?.length, 1);
  match(said[0], / by='coven@conference\.example\.com' id='(?!9')\d+'/);
  strictEqual(whispered, null);
});

Deno.test("MucServer shows a subject to everybody, and to newcomers last, and obeys those who may set it", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const take = (node: MucNode, who: string, content: string) =>
    node.take(`<message from='${who}' to='${COVEN}' type='groupchat'>${content}</message>`);
  const subjectIn = (xml: string) =>
    /from='[^']*\/(\w+)'.*<subject>(.*)<\/subject>/.exec(xml)?.slice(1).join(": ");
  const subjects = (node: MucNode, who: string) => node.got(who).map(subjectIn);
  await take(one, ALICE, "<subject>potions</subject>");
  await take(two, BOB, "<subject>ballads</subject>");
  const both = ["witch: potions", "bard: ballads"];
  deepStrictEqual([subjects(one, ALICE), subjects(two, BOB)], [both, both]);
  // A message with a subject of its own is no change of the room's (XEP-0045 §8.1).
  await take(one, ALICE, "<subject>re: ballads</subject><body>hum</body>");
  for (const [node, who, nick] of [[one, CAROL, "crone"], [two, DAVE, "druid"]] as const) {
    await node.enter(who, nick);
    const got = node.got(who).slice(-2);
    const shown = got.map(subjectIn);
    deepStrictEqual(shown, ["witch: re: ballads", "bard: ballads"], "history, then the subject");
    // The subject has the time at which it was set.
    for (const xml of got) match(xml, new RegExp(`<delay [^>]*from='${COVEN}'[^>]* stamp='`));
  }
  const onlyModerators = `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>` +
    `${field("muc#roomconfig_changesubject", "0")}</x></query>`;
  match(await one.ask(ALICE, "set", onlyModerators), /type='result'/);
  for (const [node, who] of [[one, ALICE], [two, BOB]] as const) node.got(who);
  await take(two, BOB, "<subject>mutiny</subject>");
  match(two.got(BOB).join(""), /<forbidden /);
  deepStrictEqual(subjects(one, ALICE), []);
  await take(one, ALICE, "<subject/>");
  match(two.got(BOB).join(""), /from='[^']*\/witch'.*<subject\/>/);
});
