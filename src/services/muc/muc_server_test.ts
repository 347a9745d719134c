import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import {
  ALICE,
  BOB,
  CAROL,
  COVEN,
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

Deno.test("MucServer shows the status of an occupant in the language of its presence", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const to = `${COVEN}/bard`;
  const status = () => /<status(?: [^>]*)?>\w+<\/status>/.exec(one.got(ALICE).at(-1)!)?.[0];
  const show = (attributes: string, content: string) =>
    two.take(`<presence from='${BOB}' to='${to}' ${attributes}>${content}</presence>`);
  await show("xml:lang='de'", "<status>da</status><show>away</show>");
  strictEqual(status(), "<status xml:lang='de'>da</status>");
  await show("xml:lang='de'", "<status xml:lang='fr'>ici</status>");
  strictEqual(status(), "<status xml:lang='fr'>ici</status>");
  await show("", "<status>here</status>");
  strictEqual(status(), "<status>here</status>");
  await show("xml:lang='de' type='unavailable'", "<status>weg</status>");
  strictEqual(status(), "<status xml:lang='de'>weg</status>");
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

Deno.test("MucServer lists rooms by pages in both directions, and counts them", async () => {
  await using world = await MucWorld.open(["dc1.example.com"]);
  const [one] = world.nodes as [MucNode];
  const names = ["a", "b", "c"].map((name) => `${name}@${SERVICE}`);
  const content = { config: "{}", isListed: true, affiliates: [], creator: ALICE, maxCreated: 3 };
  for (const name of names) await world.store.create(name, content);
  const page = async (asked: string) => {
    const set = `<set xmlns='http://jabber.org/protocol/rsm'>${asked}</set>`;
    const items = `<query xmlns='http://jabber.org/protocol/disco#items'>${set}</query>`;
    const answer = await one.ask(CAROL, "get", items, SERVICE);
    const error = /<error [^>]*><([a-z-]+) /.exec(answer)?.[1];
    if (error !== undefined) return error;
    match(answer, /<count>3<\/count>/);
    const rooms = [...answer.matchAll(/<item [^>]*jid='([^']*)'/g)].map(([, jid]) => jid!);
    deepStrictEqual(
      [/<first>(.*?)</.exec(answer)?.[1], /<last>(.*?)</.exec(answer)?.[1]],
      [rooms[0], rooms.at(-1)],
    );
    return rooms;
  };
  const [first, second] = await page("<max>2</max>") as [string, string];
  const [third] = await page(`<after>${second}</after>`) as [string];
  deepStrictEqual([first, second, third].toSorted(), names);
  for (
    const [asked, expected] of [
      ["<max>0</max>", []],
      [`<max>1</max><after>${first}</after>`, [second]],
      ["<max>2</max><before/>", [second, third]],
      [`<max>1</max><before>${third}</before>`, [second]],
      [`<before>${first}</before>`, []],
      ["<before>@</before>", "item-not-found"],
      [`<before/><after>${first}</after>`, "bad-request"],
      ["<index>1</index>", "feature-not-implemented"],
    ] as const
  ) deepStrictEqual(await page(asked), expected, asked);
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
