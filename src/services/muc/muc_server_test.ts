import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import {
  ALICE,
  BOB,
  CAROL,
  COVEN,
  DAVE,
  field,
  MUC,
  MucWorld,
  SERVICE,
  withRoom,
} from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

function admin(item: string): string {
  return `<query xmlns='${MUC}#admin'>${item}</query>`;
}

Deno.test("MucServer makes a room, which is locked until its owner configures it", async () => {
  await using world = await MucWorld.open(["dc1.example.com", "dc2.example.com"]);
  const [one, two] = world.nodes as [MucNode, MucNode];
  await one.enter(ALICE, "witch");
  const [presence, subject] = one.got(ALICE);
  match(presence!, /affiliation='owner' role='moderator'/);
  match(presence!, /<status code='201'\/><status code='110'\/>/);
  match(subject!, /<subject\/>/);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /<item-not-found /);
  const form = `<query xmlns='${MUC}#owner'/>`;
  match(await one.ask(ALICE, "get", form), /muc#roomconfig_persistentroom/);
  match(await two.ask(BOB, "get", form), /<forbidden /);
  await one.make(ALICE, "witch");
  two.got(BOB);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /from='coven@conference.example.com\/witch'/);
});

Deno.test("MucServer does not wait long for a node that tells nothing of its seats", async () => {
  const [world, , two] = await withRoom();
  await using _ = world;
  world.dead.add(two);
  const three = world.begin("dc3.example.com");
  const entering = three.enter(CAROL, "crone");
  await new Promise((resolve) => setTimeout(resolve));
  deepStrictEqual(three.got(CAROL), []);
  world.clock.advance(3_000);
  await entering;
  ok(three.got(CAROL).some((xml) => xml.includes("code='110'")));
});

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

Deno.test("MucServer lets both sides of a split talk, and unites them with the older nickname", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  world.isLeaseOver = true;
  two.isStoreDown = true; // the database is at dc1
  await world.look(3);
  match(one.got(ALICE).join(""), /\/bard' .*type='unavailable'|type='unavailable'.*code='333'/);
  match(two.got(BOB).join(""), /code='333'/);
  await one.say(ALICE, "one");
  await two.say(BOB, "two");
  await one.enter(CAROL, "crone");
  world.clock.advance(5);
  await two.enter(DAVE, "crone");
  deepStrictEqual([one.texts(ALICE), two.texts(BOB)], [["one"], ["two"]]);
  one.got(CAROL);
  two.got(DAVE);
  world.cut.clear();
  world.isLeaseOver = false;
  two.isStoreDown = false;
  await world.look(4);
  deepStrictEqual([one.texts(ALICE), two.texts(BOB)], [["two"], ["one"]]);
  const atDave = two.got(DAVE).join("\n");
  match(atDave, /type='unavailable'.*nick='crone 2'.*code='303'/);
  match(atDave, /from='coven@conference.example.com\/crone 2'.*code='110'/);
  ok(!one.got(CAROL).join("").includes("code='303'"), "she had it first");
  await one.say(ALICE, "together");
  for (const [node, who] of [[one, CAROL], [two, BOB], [two, DAVE]] as const) {
    deepStrictEqual(node.texts(who).at(-1), "together");
  }
});

Deno.test("MucServer gives all devices of a person one nickname in place of a lost one", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  await one.enter(CAROL, "crone");
  world.clock.advance(5);
  const devices = ["a", "b"].map((resource) => `dave@example.com/${resource}`);
  for (const device of devices) await two.enter(device, "crone");
  for (const device of devices) two.got(device);
  world.cut.clear();
  await world.look(4);
  for (const device of devices) {
    const own = two.got(device).filter((xml) => /from='[^']*\/crone( \d)?'.*code='110'/.test(xml));
    match(own.at(-1)!, new RegExp(`from='${COVEN}/crone 2'`));
    ok(!own.some((xml) => xml.includes("crone 3")));
  }
});

Deno.test("MucServer keeps a temporary room in which the other side of a split may be", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.leave(ALICE, "witch");
  world.cut.add("dc1.example.com dc2.example.com");
  world.isLeaseOver = true;
  await world.look(3);
  const late = world.begin("dc1.example.com"); // it has never heard of dc2
  for (const node of [one, late]) {
    await node.enter(CAROL, "crone");
    match(node.got(CAROL).join(""), /code='110'/);
    await node.leave(CAROL, "crone");
    await world.look();
    node.sessions.delete(CAROL);
    ok(await world.store.read(COVEN) !== undefined, "bob is in it");
  }
  world.cut.clear();
  world.isLeaseOver = false;
  await world.look(4);
  ok(await world.store.read(COVEN) !== undefined, "bob is still in it");
  await two.leave(BOB, "bard");
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("MucServer removes a temporary room after a split that was left during it", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.leave(ALICE, "witch");
  world.cut.add("dc1.example.com dc2.example.com");
  await world.look(6); // the leases last longer
  await two.leave(BOB, "bard");
  ok(await world.store.read(COVEN) !== undefined, "somebody may have entered it at dc1");
  world.cut.clear();
  await world.look(4);
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("MucServer warns once of empty rooms that stay for long as a live node is not heard", async () => {
  await using world = await MucWorld.open(["dc1.example.com", "dc2.example.com"]);
  const [one, two] = world.nodes as [MucNode, MucNode];
  await one.make(ALICE, "witch");
  world.dead.add(two); // its lease lasts
  await world.look(6);
  await one.leave(ALICE, "witch");
  await world.look(6);
  const warnings = () => one.log.named("muc.rooms-stay").map(({ fields }) => fields);
  deepStrictEqual(warnings(), [], "it may be a short split");
  world.clock.advance(600_000);
  await world.look(3);
  deepStrictEqual(warnings(), [{ rooms: 1, unheard: ["dc2.example.com"] }]);
  ok(await world.store.read(COVEN) !== undefined);
  world.dead.clear();
  await world.look(4);
  strictEqual(await world.store.read(COVEN), undefined);
  strictEqual(warnings().length, 1);
});

Deno.test("MucServer withdraws the occupants of a node that is dead", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.dead.add(two);
  world.isLeaseOver = true;
  await world.look(3);
  const [gone, ...more] = one.got(ALICE);
  match(gone!, /\/bard'.*/);
  match(gone!, /type='unavailable'.*code='333'/);
  deepStrictEqual(more, []);
});

Deno.test("MucServer asks for all occupants of a node when it has missed one, and shows only what is new", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.held = [];
  await one.enter(CAROL, "crone");
  world.held = undefined; // the news is gone
  deepStrictEqual(two.got(BOB), []);
  await world.look();
  const got = two.got(BOB);
  strictEqual(got.length, 1);
  match(got[0]!, new RegExp(`from='${COVEN}/crone'`));
});

Deno.test("MucServer lets moderators kick, silence and ban people at other nodes", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const set = (item: string, who = ALICE, node = one) => node.ask(who, "set", admin(item));
  match(await set("<item nick='witch' role='none'/>", BOB, two), /<forbidden /);
  match(await set("<item nick='bard' role='visitor'/>"), /type='result'/);
  await two.say(BOB, "mute");
  match(two.got(BOB).join(""), /role='visitor'.*<forbidden /s);
  match(await set("<item nick='bard' role='participant'/>"), /type='result'/);
  await two.say(BOB, "loud");
  deepStrictEqual(two.texts(BOB), ["loud"]);
  match(await set("<item nick='bard' role='none'><reason>noise</reason></item>"), /result/);
  match(two.got(BOB)[0]!, /<actor nick='witch'\/><reason>noise<\/reason>.*code='307'.*code='110'/);
  await two.enter(BOB, "bard");
  two.got(BOB);
  await set("<item jid='bob@example.com' affiliation='outcast'/>");
  match(two.got(BOB)[0]!, /affiliation='outcast'.*code='301'/);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /<forbidden /);
  match(await one.ask(ALICE, "get", admin("<item affiliation='outcast'/>")), /bob@example.com/);
  match(await set("<item jid='alice@example.com' affiliation='none'/>"), /<conflict /);
});

Deno.test("MucServer takes out those who were banned though the news of it are lost", async () => {
  const ban = admin("<item jid='bob@example.com' affiliation='outcast'/>");
  for (const isDead of [false, true]) {
    const [world, one, two] = await withRoom();
    await using _ = world;
    await two.enter(CAROL, "crone");
    world.held = [];
    match(await one.ask(ALICE, "set", ban), /type='result'/);
    world.held = undefined;
    if (isDead) {
      world.dead.add(one);
      world.isLeaseOver = true;
    }
    await world.look(4);
    match(two.got(BOB).join(""), /affiliation='outcast'.*code='301'/, `${isDead}`);
    two.got(CAROL);
    await two.say(BOB, "still here");
    deepStrictEqual(two.texts(CAROL), []);
  }
});

Deno.test("MucServer takes out those who were banned once it can read the room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  two.isStoreDown = true;
  await one.ask(ALICE, "set", admin("<item jid='bob@example.com' affiliation='outcast'/>"));
  await world.look(2);
  deepStrictEqual(two.got(BOB), []);
  two.isStoreDown = false;
  await world.look(2);
  match(two.got(BOB).join(""), /code='301'/);
});

Deno.test("MucServer shows a subject to everybody, and to newcomers last, and obeys those who may set it", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const take = (node: MucNode, who: string, content: string) =>
    node.take(`<message from='${who}' to='${COVEN}' type='groupchat'>${content}</message>`);
  const subjects = (node: MucNode, who: string) =>
    node.got(who).map((xml) =>
      /from='[^']*\/(\w+)'.*<subject>(.*)<\/subject>/.exec(xml)?.slice(1).join(": ")
    );
  await take(one, ALICE, "<subject>potions</subject>");
  await take(two, BOB, "<subject>ballads</subject>");
  const both = ["witch: potions", "bard: ballads"];
  deepStrictEqual([subjects(one, ALICE), subjects(two, BOB)], [both, both]);
  // A message with a subject of its own is no change of the room's (XEP-0045 §8.1).
  await take(one, ALICE, "<subject>re: ballads</subject><body>hum</body>");
  for (const [node, who, nick] of [[one, CAROL, "crone"], [two, DAVE, "druid"]] as const) {
    await node.enter(who, nick);
    const shown = subjects(node, who).slice(-2);
    deepStrictEqual(shown, ["witch: re: ballads", "bard: ballads"], "history, then the subject");
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

Deno.test("MucServer keeps strangers out of rooms with members or a password", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const configure = (fields: string) =>
    one.ask(
      ALICE,
      "set",
      `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>${fields}</x></query>`,
    );
  match(await configure(field("muc#roomconfig_membersonly", "1")), /type='result'/);
  match(two.got(BOB)[0]!, /code='322'/);
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /<registration-required /);
  const invite = `<message from='${ALICE}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
    "<invite to='bob@example.com'><reason>come</reason><continue thread='t1' x='1'/></invite>" +
    "</x></message>";
  await one.take(invite);
  match(
    one.sent[0]!,
    /to='bob@example.com'.*<invite from='[^']*'><reason>come<\/reason><continue thread='t1'\/>/,
  );
  await two.enter(BOB, "bard");
  match(two.got(BOB)[0]!, /affiliation='owner'/);
  const secret = field("muc#roomconfig_passwordprotectedroom", "1");
  match(await configure(secret), /<not-acceptable /);
  await configure(
    `${secret}${field("muc#roomconfig_roomsecret", "x")}${
      field("muc#roomconfig_membersonly", "0")
    }`,
  );
  match(two.got(BOB).at(-1)!, /code='104'/);
  await one.enter(CAROL, "crone", "<password>y</password>");
  match(one.got(CAROL)[0]!, /<not-authorized /);
  await one.enter(CAROL, "crone", "<password>x</password>");
  match(one.got(CAROL).join(""), /code='110'/);
});

Deno.test("MucServer invites the person whom an invitation names by a full JID, on whichever device", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  await one.take(
    `<message from='${ALICE}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
      `<invite to='${CAROL}'/></x></message>`,
  );
  match(one.sent.at(-1)!, / to='carol@example.com'/);
});

Deno.test("MucServer passes refusals of invitations on, and tells nobody who is in a room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const decline = (to: string) =>
    two.take(
      `<message from='${CAROL}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
        `<decline to='${to}'><reason>no</reason></decline></x></message>`,
    );
  await decline(`${COVEN}/witch`);
  await decline("alice@example.com");
  const got = one.got(ALICE);
  strictEqual(got.length, 2);
  for (const xml of got) match(xml, /<decline from='carol@example.com'><reason>no/);
  for (const to of [`${COVEN}/nobody`, "dave@example.com"]) await decline(to);
  deepStrictEqual([...two.got(CAROL), ...one.got(ALICE), ...two.got(BOB)], []);
});

Deno.test("MucServer passes on no refusals of people who may not be in the room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const decline = (from: string) =>
    two.take(
      `<message from='${from}' to='${COVEN}'><x xmlns='${MUC}#user'>` +
        `<decline to='${COVEN}/witch'><reason>rude</reason></decline></x></message>`,
    );
  const { version } = (await world.store.read(COVEN))!;
  const set = [{ jid: "carol@example.com", affiliation: "outcast" as const, reason: "" }];
  await world.store.change(COVEN, { expected: version, set });
  await decline(CAROL);
  deepStrictEqual(one.got(ALICE), []);
  await decline(DAVE);
  strictEqual(one.got(ALICE).length, 1);
  const form = `<x xmlns='jabber:x:data' type='submit'>${
    field("muc#roomconfig_membersonly", "1")
  }</x>`;
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#owner'>${form}</query>`);
  one.got(ALICE);
  await decline(DAVE);
  deepStrictEqual([...one.got(ALICE), ...two.got(CAROL), ...two.got(DAVE)], []);
});

Deno.test("MucServer passes requests for voice to moderators, who grant them", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const REQUEST = "http://jabber.org/protocol/muc#request";
  const submit = (node: MucNode, from: string, fields: string) =>
    node.take(
      `<message from='${from}' to='${COVEN}'><x xmlns='jabber:x:data' type='submit'>` +
        `${field("FORM_TYPE", REQUEST)}${field("muc#role", "participant")}${fields}</x></message>`,
    );
  await submit(two, BOB, "");
  match(two.got(BOB).at(-1)!, /<not-allowed /, "he has voice");
  await one.ask(ALICE, "set", admin("<item nick='bard' role='visitor'/>"));
  one.got(ALICE);
  await submit(two, BOB, "");
  const [form] = one.got(ALICE);
  match(form!, /<message from='coven@conference.example.com' to='alice@example.com\/a'>/);
  match(form!, /type='form'.*var='muc#jid'[^>]*><value>bob@example.com\/b</);
  match(form!, /var='muc#request_allow' type='boolean'[^>]*><value>false</);
  await submit(two, BOB, "");
  match(two.got(BOB).at(-1)!, /<resource-constraint /, "not so often");
  const grant = (allow: string, jid = BOB) =>
    field("muc#jid", jid) + field("muc#roomnick", "bard") + field("muc#request_allow", allow);
  await submit(two, BOB, grant("true"));
  match(two.got(BOB).at(-1)!, /<forbidden /);
  await submit(one, ALICE, grant("false"));
  await submit(one, ALICE, grant("true", CAROL));
  match(one.got(ALICE).at(-1)!, /<item-not-found /, "somebody else asked");
  deepStrictEqual(two.got(BOB), []);
  await submit(one, ALICE, grant("true"));
  match(two.got(BOB)[0]!, /role='participant'.*<actor nick='witch'/);
  await two.say(BOB, "thanks");
  deepStrictEqual(one.texts(ALICE), ["thanks"]);
});

Deno.test("MucServer hides a hidden room from strangers, and lists public ones", async () => {
  const [world, one, two] = await withRoom(field("muc#roomconfig_publicroom", "0"));
  await using _ = world;
  const info = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  match(await one.ask(CAROL, "get", info), /<item-not-found /);
  match(await two.ask(BOB, "get", info), /muc_hidden/);
  ok(!(await one.ask(CAROL, "get", items, SERVICE)).includes("coven"));
  ok(!(await one.ask(CAROL, "get", items)).includes("bard"));
  match(await two.ask(BOB, "get", items), /name='witch'/);
  await one.ask(
    ALICE,
    "set",
    `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>` +
      `${field("muc#roomconfig_publicroom", "1")}</x></query>`,
  );
  match(await one.ask(CAROL, "get", items, SERVICE), new RegExp(`jid='${COVEN}'`));
  const shown = await one.ask(CAROL, "get", info);
  match(shown, /muc_public/);
  match(shown, /muc#stable_id/);
  match(await one.ask(CAROL, "get", info, SERVICE), /category='conference'/);
});

Deno.test("MucServer lists no room before its owner has said whether to show it", async () => {
  await using world = await MucWorld.open(["dc1.example.com"]);
  const [one] = world.nodes as [MucNode];
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  await one.enter(ALICE, "witch");
  ok(!(await one.ask(CAROL, "get", items, SERVICE)).includes("coven"));
  await one.ask(
    ALICE,
    "set",
    `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'/></query>`,
  );
  match(await one.ask(CAROL, "get", items, SERVICE), new RegExp(`jid='${COVEN}'`));
});

Deno.test("MucServer changes either the affiliation or the role of somebody", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  two.got(BOB);
  const both = admin("<item nick='bard' affiliation='member' role='moderator'/>");
  match(await one.ask(ALICE, "set", both), /<bad-request /);
  deepStrictEqual(two.got(BOB), []);
});

Deno.test("MucServer refuses changes of a room to a flood, and passes requests to an occupant on", async () => {
  await using world = await MucWorld.open(["dc1.example.com"], { messagesPerSec: 1 });
  const [one] = world.nodes as [MucNode];
  await one.make(ALICE, "witch");
  await one.enter(BOB, "bard");
  one.got(BOB);
  const block = "<data xmlns='http://jabber.org/protocol/ibb'/>";
  for (let i = 0; i < 10; i++) await one.ask(ALICE, "set", block, `${COVEN}/bard`);
  strictEqual(one.got(BOB).filter((each) => each.includes("ibb")).length, 10);
  const grant = admin(`<item affiliation='member' jid='${CAROL}'/>`);
  const answers = [];
  for (let i = 0; i < 10; i++) answers.push(await one.ask(ALICE, "set", grant));
  // Of the five that the rate lets through at once, the first has configured the room.
  strictEqual(answers.filter((each) => each.includes("type='result'")).length, 4);
});

Deno.test("MucServer refuses presence and nicknames of a flood in one room, but no entries into many rooms", async () => {
  await using world = await MucWorld.open(["dc1.example.com"], { messagesPerSec: 1 });
  const [one] = world.nodes as [MucNode];
  await one.make(ALICE, "witch");
  const floods: readonly ((i: number) => Promise<unknown>)[] = [
    (i) => one.take(`<presence from='${BOB}' to='${COVEN}/bard'><status>${i}</status></presence>`),
    (i) => one.take(`<presence from='${BOB}' to='${COVEN}/bard${i}'/>`),
    async (i) => {
      if (i === 0) await one.leave(BOB, "bard");
      await one.enter(BOB, "bard");
      await one.leave(BOB, "bard");
    },
  ];
  for (const flood of floods) {
    await one.enter(BOB, "bard");
    one.got(ALICE);
    for (let i = 0; i < 20; i++) await flood(i);
    const available = one.got(ALICE).filter((each) => !each.includes("type='unavailable'"));
    strictEqual(available.length, 4); // and the entry
    match(await one.say(BOB, "still here"), /delivered/);
    await one.leave(BOB, "bard");
    await one.leave(BOB, "bard3");
    world.clock.advance(10_000);
  }
  one.got(BOB);
  for (let i = 0; i < 20; i++) {
    const to = `room${i}@conference.example.com/bard`;
    await one.take(`<presence from='${BOB}' to='${to}'><x xmlns='${MUC}'/></presence>`);
    await one.take(`<presence from='${BOB}' to='${to}' type='unavailable'/>`);
  }
  strictEqual(one.got(BOB).filter((each) => each.includes("code='201'")).length, 20);
});

Deno.test("MucServer passes private messages and requests between occupants", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.take(
    `<message from='${ALICE}' to='${COVEN}/bard' type='chat'><body>psst</body></message>`,
  );
  const [private_] = two.got(BOB);
  match(private_!, new RegExp(`from='${COVEN}/witch' to='${BOB}'.*<x xmlns='${MUC}#user'/>`));
  const tablet = "bob@example.com/tablet";
  await one.enter(tablet, "bard");
  one.got(tablet);
  two.got(BOB);
  await one.take(
    `<message from='${ALICE}' to='${COVEN}/bard' type='chat'><body>both</body></message>`,
  );
  match(one.got(tablet).join(), new RegExp(`from='${COVEN}/witch' to='${tablet}'.*both`));
  match(two.got(BOB).join(), new RegExp(`from='${COVEN}/witch' to='${BOB}'.*both`));
  const ping = "<ping xmlns='urn:xmpp:ping'/>";
  match(await one.ask(ALICE, "get", ping, `${COVEN}/witch`), /type='result'/);
  match(await one.ask(ALICE, "get", ping, `${COVEN}/nobody`), /<item-not-found /);
  match(await one.ask(CAROL, "get", ping, `${COVEN}/crone`), /<not-acceptable /);
  await one.ask(ALICE, "get", ping, `${COVEN}/bard`);
  const [asked] = two.got(BOB);
  match(asked!, new RegExp(`<iq .*from='${COVEN}/witch' to='${BOB}'`));
  await two.take(`<iq from='${BOB}' to='${COVEN}/witch' type='result' id='${idOf(asked!)}'/>`);
  match(
    one.got(ALICE).at(-1)!,
    new RegExp(`from='${COVEN}/bard' to='${ALICE}' type='result' id='i'`),
  );
});

Deno.test("MucServer gives the answer to an occupant's request to the session that has asked alone", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const phone = "alice@example.com/phone";
  await one.enter(phone, "witch");
  const ping = "<ping xmlns='urn:xmpp:ping'/>";
  two.got(BOB);
  await one.ask(ALICE, "get", ping, `${COVEN}/bard`);
  const id = idOf(two.got(BOB)[0]!);
  const answer = async (tagged: string) => {
    for (const each of [ALICE, phone, CAROL]) one.got(each);
    await two.take(`<iq from='${BOB}' to='${COVEN}/witch' type='result' id='${tagged}'/>`);
    return [ALICE, phone, CAROL].flatMap((each) => one.got(each).map((got) => [each, idOf(got)]));
  };
  deepStrictEqual(await answer(id), [[ALICE, "i"]]);
  deepStrictEqual(await answer("i"), []); // nobody has asked for it
  await one.leave(ALICE, "witch");
  await one.leave(phone, "witch");
  await one.enter(CAROL, "witch");
  deepStrictEqual(await answer(id), []);
  const long = "x".repeat(1_020);
  await one.take(`<iq from='${CAROL}' to='${COVEN}/bard' type='get' id='${long}'>${ping}</iq>`);
  match(one.got(CAROL).at(-1)!, /<bad-request /);
});

Deno.test("MucServer passes an answer on at a node that has no session in the room", async () => {
  const hosts = ["dc1.example.com", "dc2.example.com", "dc3.example.com"];
  await using world = await MucWorld.open(hosts);
  const [one, two, three] = world.nodes as [MucNode, MucNode, MucNode];
  await one.make(ALICE, "witch");
  await two.enter(BOB, "bard");
  two.got(BOB);
  one.got(ALICE);
  await one.ask(ALICE, "get", "<ping xmlns='urn:xmpp:ping'/>", `${COVEN}/bard`);
  const id = idOf(two.got(BOB)[0]!);
  // As the account answers for its vCard, and not a session.
  await three.take(
    `<iq from='bob@example.com' to='${COVEN}/witch' type='result' id='${id}'/>`,
  );
  match(
    one.got(ALICE).join(),
    new RegExp(`from='${COVEN}/bard' to='${ALICE}' type='result' id='i'`),
  );
});

Deno.test("MucServer passes a request to the newest device of an occupant that has a connection", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  const [phone, tablet] = ["carol@example.com/phone", "carol@example.com/tablet"];
  await one.enter(phone, "crone");
  world.clock.advance(1);
  await one.enter(tablet, "crone");
  const asked = async () => {
    for (const device of [phone, tablet]) one.got(device);
    await one.ask(ALICE, "get", "<ping xmlns='urn:xmpp:ping'/>", `${COVEN}/crone`);
    return [phone, tablet].filter((device) => one.got(device).length > 0);
  };
  deepStrictEqual(await asked(), [tablet]);
  one.away.add(tablet);
  deepStrictEqual(await asked(), [phone]);
  one.away.add(phone);
  deepStrictEqual(await asked(), [tablet]);
});

Deno.test("MucServer destroys a room for everybody, and an empty temporary one by itself", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const destroy = `<query xmlns='${MUC}#owner'><destroy><reason>over</reason></destroy></query>`;
  match(await two.ask(BOB, "set", destroy), /<forbidden /);
  match(await one.ask(ALICE, "set", destroy), /type='result'/);
  match(two.got(BOB).at(-1)!, /type='unavailable'.*<destroy><reason>over/);
  strictEqual(await world.store.read(COVEN), undefined);
  await one.make(ALICE, "witch");
  await one.leave(ALICE, "witch");
  strictEqual(await world.store.read(COVEN), undefined);
  await one.make(ALICE, "witch", field("muc#roomconfig_persistentroom", "1"));
  await one.leave(ALICE, "witch");
  ok(await world.store.read(COVEN) !== undefined);
});

Deno.test("MucServer answers each join, also one without a nickname and those beyond a person's places", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  await one.take(`<presence from='${CAROL}' to='${COVEN}' id='1'><x xmlns='${MUC}'/></presence>`);
  match(one.got(CAROL)[0]!, /^<presence [^>]*from='coven@[^>]*id='1'[^>]*>.*<jid-malformed /);
  strictEqual(await one.take(`<presence from='${CAROL}' to='${SERVICE}'/>`), "ignored");
  const join = `<presence from='${CAROL}' to='${COVEN}/crone'><x xmlns='${MUC}'/></presence>`;
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  one.beforeRead = () => gate;
  for (let i = 0; i < 105; i++) {
    const stanza = buildStanza(parseElement(new TextEncoder().encode(join)));
    strictEqual(one.server.take(world.taken(stanza)), "delivered");
  }
  const refused = one.got(CAROL);
  strictEqual(refused.length, 5);
  for (const error of refused) match(error, /type='error'.*<resource-constraint /);
  open();
  await world.settled();
});

Deno.test("MucServer keeps leaves and errors of no use from the places of other stanzas", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  one.beforeRead = () => gate;
  one.sessions.add(CAROL);
  let settled = 0;
  const send = (xml: string) => {
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    return one.server.take(world.taken(stanza, () => void settled++));
  };
  const join = `<presence from='${CAROL}' to='${COVEN}/crone'><x xmlns='${MUC}'/></presence>`;
  const leave = (status = "") =>
    `<presence from='${CAROL}' to='${COVEN}/crone' type='unavailable'>` +
    `<status>${status}</status></presence>`;
  send(join); // it waits for the database
  for (let i = 0; i < 1_000; i++) {
    strictEqual(send(leave(i === 0 ? "bye" : "again")), "delivered");
    strictEqual(
      send(`<message from='${CAROL}' to='${COVEN}' type='error'>${" ".repeat(70_000)}</message>`),
      "delivered",
    );
  }
  strictEqual(settled, 2_000, "the join is left");
  const say = `<message from='${ALICE}' to='${COVEN}' type='groupchat'><body>hi</body></message>`;
  strictEqual(send(say), "delivered");
  send(join);
  strictEqual(send(leave("once more")), "delivered");
  open();
  await world.settled();
  deepStrictEqual(two.texts(BOB), ["hi"]);
  const shown = one.got(ALICE).filter((xml) => xml.includes("/crone'"));
  deepStrictEqual(shown.map((xml) => /<status>(.*?)</.exec(xml)?.[1]), [
    undefined,
    "bye",
    undefined,
    "once more",
  ]);
});

Deno.test("MucServer does not end a room that was made again when it hears of the old one's end", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await two.leave(BOB, "bard");
  world.held = [];
  await one.leave(ALICE, "witch");
  world.clock.advance(1);
  await two.make(BOB, "bard");
  world.release();
  await world.settled();
  deepStrictEqual(two.got(BOB).filter((xml) => xml.includes("<destroy")), []);
  await two.say(BOB, "here");
  deepStrictEqual(two.texts(BOB), ["here"]);
});

Deno.test("MucServer removes no room that was made again after it had been left", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await two.leave(BOB, "bard");
  world.cut.add("dc1.example.com dc2.example.com");
  await world.look(6);
  await one.leave(ALICE, "witch");
  const { version } = (await world.store.read(COVEN))!;
  await world.store.destroy(COVEN, version);
  const creator = { creator: ALICE, maxCreated: 1 };
  await world.store.create(COVEN, { config: "{}", isListed: true, affiliates: [], ...creator });
  world.cut.clear();
  await world.look(4);
  ok(await world.store.read(COVEN) !== undefined);
});

Deno.test("MucServer shows changes of an occupant that come in one millisecond at all nodes", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const show = (text: string) =>
    two.take(`<presence from='${BOB}' to='${COVEN}/bard'><show>${text}</show></presence>`);
  await show("away");
  await show("xa");
  deepStrictEqual(one.got(ALICE).map((xml) => /<show>(.*)<\/show>/.exec(xml)?.[1]), ["away", "xa"]);
  for (const affiliation of ["member", "none"]) {
    const item = `<item jid='bob@example.com' affiliation='${affiliation}'/>`;
    await one.ask(ALICE, "set", `<query xmlns='${MUC}#admin'>${item}</query>`);
    match(one.got(ALICE).join(""), new RegExp(`/bard'.* affiliation='${affiliation}'`));
  }
});

Deno.test("MucServer tells somebody who has made as many rooms as they may that they may make no more", async () => {
  const [world, one] = await withRoom(field("muc#roomconfig_persistentroom", "1"), {
    options: { maxCreatedRooms: 1 },
  });
  await using _ = world;
  await one.leave(ALICE, "witch");
  const enter = async (jid: string) => {
    one.got(jid);
    await one.take(
      `<presence from='${jid}' to='heath@${SERVICE}/h'><x xmlns='${MUC}'/></presence>`,
    );
    return one.got(jid);
  };
  const [refusal, ...others] = await enter(ALICE);
  deepStrictEqual(others, []);
  match(refusal!, /<resource-constraint [^>]+><text [^>]+>Cannot make another room: /);
  strictEqual(await world.store.read(`heath@${SERVICE}`), undefined);
  match((await enter(BOB))[0]!, /<status code='201'/);
  match((await enter(ALICE))[0]!, / from='heath@/, "she may enter the rooms of others");
});

Deno.test("MucServer bounds nicknames, presence, rooms of a person and occupants", async () => {
  const [world, one] = await withRoom(field("muc#roomconfig_maxusers", "2"));
  await using _ = world;
  await one.enter(CAROL, "crone");
  match(one.got(CAROL)[0]!, /<service-unavailable /);
  await one.enter(CAROL, "x".repeat(300));
  match(one.got(CAROL)[0]!, /<not-acceptable /);
  await one.take(
    `<presence from='${CAROL}' to='${COVEN}/crone'><x xmlns='${MUC}'/><status>` +
      `${"x".repeat(5_000)}</status></presence>`,
  );
  match(one.got(CAROL)[0]!, /<policy-violation /);
  for (const room of ["x".repeat(21), "a", "b", "c", "d"]) {
    await one.take(
      `<presence from='${CAROL}' to='${room}@${SERVICE}/c'><x xmlns='${MUC}'/></presence>`,
    );
  }
  const errors = one.got(CAROL).flatMap((xml) =>
    /<error type='\w+'><([\w-]+)/.exec(xml)?.[1] ?? []
  );
  deepStrictEqual(errors, ["not-acceptable", "resource-constraint"]);
  match(await one.ask(CAROL, "get", admin("<item affiliation='owner'/>")), /<forbidden /);
  strictEqual(await one.take(`<message from='example.com' to='${COVEN}'/>`), "not-allowed");
});

/** Returns the id of a stanza. */
function idOf(stanza: string): string {
  return / id='([^']*)'/.exec(stanza)![1]!;
}
