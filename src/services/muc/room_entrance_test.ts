import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { RoomMessage } from "../../storage/mod.ts";
import { buildStanza, parseElement, parseJid } from "../../xmpp/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { LiveRooms } from "./live_rooms.ts";
import type { RoomRecord } from "./live_rooms.ts";
import type { Refusal } from "./muc_answers.ts";
import { mucMetrics } from "./muc_metrics.ts";
import { MAX_TAKEOVERS } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import { RoomEntrance } from "./room_entrance.ts";
import type { FoundRoom } from "./room_records.ts";
import {
  ALICE,
  BOB,
  CAROL,
  COVEN,
  DAVE,
  DEFAULT_ROOM,
  MUC,
  SEAT,
  SERVICE,
  withRoom,
} from "./testing/muc_world.ts";

function recordOf(settings: Partial<RoomRecord["settings"]> = {}): RoomRecord {
  return {
    creation: 1,
    settings: { ...DEFAULT_ROOM, isLocked: false, secret: "", ...settings },
    affiliates: [],
    subject: "",
  };
}

function seatOf(jid: string, nick: string, rest: Partial<Seat> = {}): Seat {
  return { ...SEAT, jid, nick, ...rest };
}

/** The entrance of this node's rooms, to which alice's session belongs, and what comes of it. */
function entranceOf(
  {
    found = { record: recordOf(), isNew: false, lastNumber: 7 },
    seats = [],
    isFull = false,
    messages = [],
  }: {
    readonly found?: FoundRoom | Refusal;
    readonly seats?: readonly Seat[];
    readonly isFull?: boolean;
    /** Last messages of the room. */
    readonly messages?: readonly RoomMessage[];
  } = {},
) {
  const clock = new ManualClock();
  const counters = mucMetrics(new MetricsRegistry(clock));
  const written: string[] = [];
  const rooms = new LiveRooms(1, (to, { bytes }) => {
    if (to.text === ALICE) written.push(new TextDecoder().decode(bytes));
  }, counters);
  for (const seat of seats) rooms.put(seat);
  if (isFull) Object.defineProperty(rooms, "isFull", { value: true });
  const sessions = new Set([ALICE]);
  const outcomes: string[] = [];
  const told: Seat[] = [];
  const cleared: number[] = [];
  const asked: string[] = [];
  const emptied: [string, number][] = [];
  const entrance = new RoomEntrance<RoomStanza>({
    service: { options: { maxUserConferences: 2 } },
    localHost: "dc1.example.com",
    process: 1,
    isHere: (jid) => sessions.has(jid.text),
    clock,
    rooms,
    gone: { nicks: () => new Set() },
    records: {
      read: () => Promise.resolve("error" in found ? undefined : found),
      findOrMake: (jid) => {
        asked.push(jid.text);
        return Promise.resolve(found);
      },
    },
    history: {
      read: () => Promise.resolve(messages),
      give: ({ jid }) => void written.push(`<history to='${jid}'/>`),
    },
    order: { catchUpSoon() {} },
    handovers: { begin() {} },
    peers: { met: () => Promise.resolve() },
    seats: {
      put: (seat, { codes } = {}) => {
        told.push(seat);
        if (codes === undefined) rooms.put(seat);
        else rooms.enter(seat, codes);
      },
    },
    changes: {
      clear: (_room, { creation }) => void cleared.push(creation!),
      enforce() {},
    },
    empty: { remove: (room, creation) => void emptied.push([room, creation]) },
    counters,
    refuse: (_taken, condition, text = "") => void outcomes.push(condition + text),
  });
  const enter = async (nick: string, content = `<x xmlns='${MUC}'/>`, room = COVEN) => {
    const xml = `<presence from='${ALICE}' to='${room}/${nick}'>${content}</presence>`;
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    await entrance.take({ stanza, process: 1, sequence: 1, settle: () => outcomes.push("in") });
    return outcomes.at(-1);
  };
  return { entrance, enter, rooms, sessions, clock, written, told, cleared, asked, emptied };
}

Deno.test("RoomEntrance.take() shows a newcomer who is there, itself, the history and the subject, in this order", async () => {
  const { enter, written, rooms } = entranceOf({
    found: { record: recordOf({ anonymous: false }), isNew: true, lastNumber: 7 },
    seats: [seatOf(BOB, "bard", { process: 2 })],
  });
  strictEqual(await enter("witch"), "in");
  const [bob, self, history, subject, ...more] = written;
  match(bob!, /\/bard'/);
  match(self!, /\/witch'.*code='100'.*code='201'.*code='110'/);
  match(history!, /<history /);
  match(subject!, /<subject\/>/);
  deepStrictEqual(more, []);
  const live = rooms.get(COVEN)!;
  deepStrictEqual([live.delivered, live.since.get(ALICE)], [7, { number: 7, position: 1 }]);
});

Deno.test("RoomEntrance.take() shows a subject that was set between reading the room and its messages", async () => {
  const message = (number: number, content: string) => ({
    id: `m${number}`,
    number,
    sentAtMs: number,
    stanza:
      `<message from='${COVEN}/bard' type='groupchat' xmlns='jabber:client'>${content}</message>`,
  });
  const messages = [
    message(7, "<subject>known to the room that was read</subject>"),
    message(8, "<subject>potions</subject>"),
    message(9, "<subject>re: potions</subject><body>hum</body>"),
  ];
  const { enter, written } = entranceOf({ messages });
  await enter("witch");
  match(written.at(-1)!, /<subject>potions</);
  const before = entranceOf({ messages: messages.slice(0, 1) });
  await before.enter("witch");
  match(before.written.at(-1)!, /<subject\/>/);
});

Deno.test("RoomEntrance.take() refuses presence of a session that is neither in the room nor joins it", async () => {
  const { enter, sessions, told } = entranceOf();
  strictEqual(await enter("witch", ""), "not-acceptable");
  strictEqual(await enter("x".repeat(257)), "not-acceptable");
  sessions.delete(ALICE);
  strictEqual(await enter("witch"), "not-allowed");
  deepStrictEqual(told, []);
});

Deno.test("RoomEntrance.take() keeps out those whom the room, another occupant or a bound keeps out", async () => {
  const locked = { record: recordOf({ isLocked: true }), isNew: false, lastNumber: 1 };
  const bob = seatOf(BOB, "witch", { process: 2 });
  const elsewhere = ["a", "b"].map((name) =>
    seatOf("alice@example.com/phone", "witch", { room: `${name}@${SERVICE}`, process: 2 })
  );
  for (
    const [world, expected] of [
      [{ found: { error: "not-acceptable" } }, "not-acceptable"],
      [{ found: { error: "resource-constraint", text: ": many" } }, "resource-constraint: many"],
      [{ found: locked }, "item-not-found"],
      [{ seats: [bob] }, "conflict"],
      [{ seats: elsewhere }, "resource-constraint"],
    ] as const
  ) {
    const { enter, told } = entranceOf(world);
    strictEqual(await enter("witch"), expected);
    deepStrictEqual(told, []);
  }
});

Deno.test("RoomEntrance.take() makes no room for somebody who is in too many", async () => {
  const seats = ["a", "b"].map((name) =>
    seatOf("alice@example.com/phone", "witch", { room: `${name}@${SERVICE}`, process: 2 })
  );
  const { enter, asked } = entranceOf({ seats });
  strictEqual(await enter("witch"), "resource-constraint");
  deepStrictEqual(asked, []);
  await enter("witch", undefined, `a@${SERVICE}`);
  deepStrictEqual(asked, [`a@${SERVICE}`], "she is in this one");
});

Deno.test("RoomEntrance.take() lets a session that has a seat enter again at a full node", async () => {
  const { enter } = entranceOf({ seats: [seatOf(ALICE, "witch")], isFull: true });
  strictEqual(await enter("witch"), "in");
  strictEqual(await enter("witch", undefined, `a@${SERVICE}`), "resource-constraint");
});

Deno.test("RoomEntrance.take() has a locked room removed whose maker has been gone for a minute", async () => {
  const found = { record: recordOf({ isLocked: true }), isNew: false, lastNumber: 1 };
  for (
    const { ageMs, seats, expected } of [
      { ageMs: 59_999, seats: [], expected: [] },
      { ageMs: 60_000, seats: [seatOf(BOB, "bard", { process: 2 })], expected: [] },
      { ageMs: 60_000, seats: [], expected: [[COVEN, 1_700_000_000_000]] },
    ]
  ) {
    const record = { ...found.record, creation: 1_700_000_000_000 };
    const { enter, clock, emptied } = entranceOf({ found: { ...found, record }, seats });
    clock.advance(record.creation + ageMs - clock.wallMs());
    strictEqual(await enter("witch"), "item-not-found");
    deepStrictEqual(emptied, expected);
  }
});

Deno.test("RoomEntrance.take() changes presence and nickname of an occupant, who keeps the seat", async () => {
  const { enter, told } = entranceOf({ seats: [seatOf(BOB, "bard", { process: 2 })] });
  await enter("witch");
  strictEqual(await enter("witch", "<show>away</show>"), "in");
  strictEqual(await enter("crone", ""), "in");
  strictEqual(await enter("bard", ""), "conflict");
  deepStrictEqual(
    told.map(({ nick, payload }) => [nick, ...payload.map(({ text }) => text)]),
    [["witch"], ["witch", "away"], ["crone"]],
  );
});

Deno.test("RoomEntrance.take() clears an earlier room of the name before somebody enters the next one", async () => {
  const { enter, rooms, cleared } = entranceOf({ seats: [seatOf("carol@example.com/c", "crone")] });
  rooms.remember(COVEN, { ...recordOf(), creation: 0 });
  strictEqual(await enter("witch"), "in");
  deepStrictEqual(cleared, [0]);
  await enter("witch");
  deepStrictEqual(cleared, [0], "it is the same room");
});

Deno.test("RoomEntrance.takeOver() makes the seat of a session this node's, if that has it", async () => {
  const seat = seatOf(ALICE, "witch", { host: "dc2.example.com", process: 2 });
  const { entrance, rooms, sessions, told } = entranceOf({ seats: [seat] });
  const alice = parseJid(ALICE) as FullJid;
  sessions.delete(ALICE);
  await entrance.takeOver(COVEN, alice);
  strictEqual(told.length, 0);
  sessions.add(ALICE);
  for (let i = 0; i < 2; i++) await entrance.takeOver(COVEN, alice);
  deepStrictEqual(told.map(({ nick, host, process }) => [nick, host, process]), [
    ["witch", "dc1.example.com", 1],
  ]);
  strictEqual(rooms.get(COVEN)?.delivered, 7);
});

Deno.test("RoomEntrance.take() gives a session a later seat than another node has of it", async () => {
  const joinedMs = 2_000_000_000_000; // that node's clock is ahead
  const seat = seatOf(ALICE, "witch", { process: 2, joinedMs });
  const { enter, told } = entranceOf({ seats: [seat] });
  for (let i = 0; i < 2; i++) await enter("witch");
  const later = MAX_TAKEOVERS + 1;
  deepStrictEqual(told.map((each) => each.joinedMs - joinedMs), [later, 2 * later]);
});

Deno.test("RoomEntrance.take() shows newcomers who is there, themselves last, and everybody the newcomer", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.enter(CAROL, "crone");
  const got = one.got(CAROL);
  deepStrictEqual(
    got.filter((xml) => xml.startsWith("<presence")).map((xml) => /from='([^']*)'/.exec(xml)![1]),
    [`${COVEN}/witch`, `${COVEN}/bard`, `${COVEN}/crone`],
  );
  match(got[2]!, /code='110'/);
  ok(!got[0]!.includes("alice@"), "real addresses are for moderators");
  match(one.got(ALICE)[0]!, /jid='carol@example.com\/c'/);
  const [atBob] = two.got(BOB);
  match(atBob!, new RegExp(`from='${COVEN}/crone'`));
  ok(!atBob!.includes("carol@"));
  await one.leave(CAROL, "crone");
  match(one.got(CAROL)[0]!, /type='unavailable'.*code='110'/);
  match(two.got(BOB)[0]!, /type='unavailable'.*role='none'/);
  await one.enter(CAROL, "bard");
  match(one.got(CAROL)[0]!, /<conflict /);
});

Deno.test("RoomEntrance.take() knows which nicknames are taken before it lets the first one in", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await three.enter(CAROL, "witch");
  match(three.got(CAROL)[0]!, /<conflict /);
  await world.look();
  const neighbour = world.begin("dc1.example.com");
  await neighbour.enter("frank@example.com/f", "bard");
  match(neighbour.got("frank@example.com/f")[0]!, /<conflict /);
  // The others tell the new node of changes at once, without having looked.
  await one.enter(DAVE, "cat");
  await three.enter("erin@example.com/e", "cat");
  match(three.got("erin@example.com/e")[0]!, /<conflict /);
  deepStrictEqual(two.got(BOB).filter((xml) => xml.includes("code='303'")), []);
});

Deno.test("RoomEntrance.take() lets an occupant change the nickname, and share it with another device", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await two.take(`<presence from='${BOB}' to='${COVEN}/piper'/>`);
  match(one.got(ALICE)[0]!, /type='unavailable'.*nick='piper'.*code='303'/);
  await one.enter("bob@example.com/phone", "piper");
  strictEqual(
    one.got("bob@example.com/phone").filter((xml) => xml.includes("code='110'")).length,
    1,
  );
  two.got(BOB);
  await one.say(ALICE, "both");
  deepStrictEqual([two.texts(BOB), one.texts("bob@example.com/phone")], [["both"], ["both"]]);
  one.got(ALICE);
  await two.leave(BOB, "piper");
  ok(!one.got(ALICE).join("").includes("unavailable"), "he is still there");
  await one.leave("bob@example.com/phone", "piper");
  match(one.got(ALICE).join(""), /unavailable/);
});

Deno.test("RoomEntrance.take() shows an occupant who changes the nickname that another device has the old one", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.clock.advance(1);
  await one.enter("bob@example.com/phone", "bard"); // it is the one whom others see
  two.got(BOB);
  await two.take(`<presence from='${BOB}' to='${COVEN}/piper'/>`);
  const seen = two.got(BOB).map((xml) =>
    `${/\/(\w+)'/.exec(xml)?.[1]}${xml.includes("unavailable") ? " leaves" : ""}`
  );
  deepStrictEqual(seen, ["bard leaves", "bard", "piper"]);
});

Deno.test("RoomEntrance.take() counts the nicknames in a room, not the devices of a person under one", async () => {
  const [world, , two] = await withRoom(
    "<field var='muc#roomconfig_maxusers'><value>2</value></field>",
  );
  await using _ = world;
  const phone = "bob@example.com/phone";
  const rename = async (jid: string, nick: string) => {
    two.got(jid);
    await two.take(`<presence from='${jid}' to='${COVEN}/${nick}'/>`);
    return two.got(jid).join("");
  };
  await two.enter(phone, "piper");
  match(two.got(phone).join(""), /<service-unavailable /);
  await two.enter(phone, "bard");
  match(two.got(phone).join(""), /\/bard'.*code='110'/);
  match(await rename(phone, "piper"), /<service-unavailable /);
  await two.leave(phone, "bard");
  match(await rename(BOB, "piper"), /code='303'/);
});

Deno.test("RoomEntrance.take() shows the whole room to a session that joins again under another nickname", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.say(ALICE, "hello");
  two.got(BOB);
  await two.enter(BOB, "crow");
  const got = two.got(BOB);
  deepStrictEqual(
    got.map((xml) => [
      /from='[^']*\/(\w+)'/.exec(xml)?.[1],
      /303|110'\/><\/x>|<body>|<subject\/>/.exec(xml)?.[0],
    ]),
    [
      ["bard", "303"],
      ["witch", undefined],
      ["crow", "110'/></x>"],
      ["witch", "<body>"],
      [undefined, "<subject/>"],
    ],
  );
});

Deno.test("RoomEntrance.takeOver() gives a session that moves to another node its seat there", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  one.resume(BOB, two);
  await world.settled();
  await one.say(BOB, "moved");
  deepStrictEqual(one.texts(ALICE), ["moved"]);
  world.dead.add(two);
  world.isLeaseOver = true;
  await world.look(3);
  deepStrictEqual(one.got(ALICE), [], "the dead node has nobody");
});

Deno.test("RoomEntrance.takeOver() keeps a seat of which its old node tells late", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await three.enter(CAROL, "crone");
  await world.look();
  world.held = [];
  await two.take(`<presence from='${BOB}' to='${COVEN}/bard'><show>away</show></presence>`);
  const late = world.held;
  world.held = undefined;
  one.resume(BOB, two);
  await world.settled();
  for (const take of late) take();
  await world.settled();
  await one.say(BOB, "moved");
  deepStrictEqual([one.texts(ALICE), three.texts(CAROL)], [["moved"], ["moved"]]);
  await one.leave(BOB, "bard");
  match(three.got(CAROL).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("RoomEntrance.takeOver() leaves no seat of the old node where the news of the new one never came", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await three.enter(CAROL, "crone");
  await world.look();
  three.got(CAROL);
  world.cut.add("dc1.example.com dc3.example.com");
  one.resume(BOB, two);
  await world.settled();
  world.dead.add(one);
  world.isLeaseOver = true;
  await world.look(3);
  match(three.got(CAROL).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("RoomEntrance.takeOver() lets the old node read the room again for its next newcomer", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  one.resume(BOB, two);
  await world.look(12);
  world.held = [];
  await two.enter(CAROL, "crone");
  await one.say(BOB, "meanwhile");
  world.release();
  await world.look();
  deepStrictEqual(two.texts(CAROL), ["meanwhile"]);
});

Deno.test("RoomEntrance.takeOver() takes a session out that was banned before it came, though its old node has not heard of that", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look(4);
  two.isStoreDown = true;
  const ban = "<item jid='bob@example.com' affiliation='outcast'/>";
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#admin'>${ban}</query>`);
  two.sessions.delete(BOB);
  three.sessions.add(BOB);
  one.got(ALICE);
  three.server.arrived(parseJid(BOB) as FullJid);
  await world.settled();
  match(three.got(BOB).join(""), /type='unavailable'.*code='301'/);
  match(one.got(ALICE).join(""), /\/bard'.*affiliation='outcast' role='none'.*code='301'/);
  await three.say(BOB, "still here");
  deepStrictEqual(one.texts(ALICE), []);
});

Deno.test("RoomEntrance.take() takes people out of an old room before somebody enters the one made again", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.held = [];
  await one.ask(ALICE, "set", `<query xmlns='${MUC}#owner'><destroy/></query>`);
  world.clock.advance(1);
  await two.enter(CAROL, "crone");
  match(two.got(BOB).join(""), /type='unavailable'.*<destroy/);
  match(two.got(CAROL).join(""), /affiliation='owner'.*code='201'/);
  world.release();
  await world.settled();
  deepStrictEqual(two.got(CAROL).filter((xml) => xml.includes(`${COVEN}/crone`)), []);
});

Deno.test("RoomEntrance.take() gives an occupant who enters again the role of a new affiliation, before its node has heard of that", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const appoint = (affiliation: string) =>
    one.ask(
      ALICE,
      "set",
      `<query xmlns='${MUC}#admin'><item jid='bob@example.com' affiliation='${affiliation}'/></query>`,
    );
  await appoint("admin");
  for (
    const { affiliation, role } of [
      { affiliation: "none", role: "participant" },
      { affiliation: "admin", role: "moderator" },
    ]
  ) {
    world.held = [];
    await appoint(affiliation);
    two.got(BOB);
    await two.enter(BOB, "bard");
    world.release();
    await world.settled();
    match(
      two.got(BOB).join(""),
      new RegExp(`/bard'.*<item affiliation='${affiliation}' role='${role}'`),
    );
  }
});

Deno.test("RoomEntrance.take() leaves no room behind of somebody who enters too many at once", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  one.beforeRead = () => gate;
  one.sessions.add(CAROL);
  const rooms = ["a", "b", "c", "d", "e"].map((name) => `${name}@${SERVICE}`);
  for (const room of rooms) {
    const xml = `<presence from='${CAROL}' to='${room}/crone'><x xmlns='${MUC}'/></presence>`;
    one.server.take(world.taken(buildStanza(parseElement(new TextEncoder().encode(xml)))));
  }
  open();
  await world.settled();
  const made = await Promise.all(rooms.map((room) => world.store.read(room)));
  strictEqual(made.filter((room) => room !== undefined).length, 3);
});

Deno.test("RoomEntrance.take() leaves no room behind of a session that ends meanwhile", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  one.beforeRead = () => {
    one.sessions.delete(CAROL);
    return Promise.resolve();
  };
  await one.take(`<presence from='${CAROL}' to='e@${SERVICE}/c'><x xmlns='${MUC}'/></presence>`);
  strictEqual(await world.store.read(`e@${SERVICE}`), undefined);
});
