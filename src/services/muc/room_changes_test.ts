import { deepStrictEqual, match } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { StoredMucRoom } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { LiveRooms } from "./live_rooms.ts";
import { mucMetrics } from "./muc_metrics.ts";
import { newsStanza } from "./news.ts";
import { RoomChanges } from "./room_changes.ts";
import {
  ALICE,
  BOB,
  CAROL,
  COVEN,
  DEFAULT_ROOM,
  MUC,
  SEAT,
  SERVICE,
  withRoom,
} from "./testing/muc_world.ts";

const ROOMS = ["coven@conference.example.com", "heath@conference.example.com"];
const STORED: StoredMucRoom = {
  version: 1,
  creation: 1,
  config: "{}",
  subject: "",
  lastNumber: 1,
  affiliates: [],
};
const RECORD = { ...STORED, settings: { ...DEFAULT_ROOM, isLocked: false, secret: "" } };

/** Rooms with one session of this node each, and the names of those that were read. */
function withRooms(onRead: (count: number) => void = () => {}) {
  const clock = new ManualClock();
  const counters = mucMetrics(new MetricsRegistry(clock));
  const rooms = new LiveRooms(1, () => {}, counters);
  for (const room of ROOMS) {
    const seat = { ...SEAT, room };
    rooms.put(seat);
    rooms.remember(room, RECORD);
    rooms.noteHistory(seat, 1);
  }
  const read: string[] = [];
  const changes = new RoomChanges({
    service: {
      store: {
        read: (room) => {
          onRead(read.push(room));
          return Promise.resolve(STORED);
        },
      },
    },
    process: 1,
    clock,
    rooms,
    order: { arrive() {}, catchUp: () => Promise.resolve() },
    peers: { isWhole: true },
    seats: { put() {}, gone() {} },
    counters,
    inTurn: (_room, step) => step(),
    recordOf: () => RECORD,
    remove() {},
  });
  return { changes, read };
}

Deno.test("RoomChanges.reviewAll() looks at all rooms again when it is called meanwhile", async () => {
  const { changes, read } = withRooms((count) => {
    if (count === 3) changes.reviewAll(); // the first room has been passed
  });
  const once = [ROOMS[0], ...ROOMS]; // the first one also to see that the database is there
  changes.reviewAll();
  await new Promise((resolve) => setTimeout(resolve));
  deepStrictEqual(read, once);
  for (let i = 0; i < 2; i++) {
    changes.look(0);
    await new Promise((resolve) => setTimeout(resolve));
    deepStrictEqual(read, [...once, ...once]);
  }
});

Deno.test("RoomChanges.giveRole() leaves alone who has taken the nickname of somebody who was kicked", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look(4);
  const late = world.held = [];
  const kick = `<query xmlns='${MUC}#admin'><item nick='bard' role='none'/></query>`;
  match(await one.ask(ALICE, "set", kick), /type='result'/);
  world.held = undefined;
  await two.leave(BOB, "bard");
  await three.enter(CAROL, "bard");
  world.held = late;
  world.release();
  await world.settled();
  await one.say(ALICE, "carol is here");
  deepStrictEqual(three.texts(CAROL), ["carol is here"]);
});

Deno.test("RoomChanges.giveRole() gives a nickname of an earlier version's news its role, whoever has it", async () => {
  const [world, , two] = await withRoom();
  await using _ = world;
  const news = newsStanza(
    { kind: "role", room: COVEN, nick: "bard", role: "visitor", notes: {} },
    { process: 9, from: parseJid("dc1.example.com").bare, to: parseJid(SERVICE).bare },
  );
  two.server.take(world.taken(news));
  match(two.got(BOB).join(""), /role='visitor'/);
});

Deno.test("RoomChanges.look() obeys a ban of a datacenter that is not heard", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  world.isLeaseOver = true;
  await world.look(10);
  const ban = `<query xmlns='${MUC}#admin'><item jid='${BOB}' affiliation='outcast'/></query>`;
  match(await one.ask(ALICE, "set", ban), /type='result'/);
  await world.look(70);
  match(two.got(BOB).join(""), /type='unavailable'.*code='301'/);
});
