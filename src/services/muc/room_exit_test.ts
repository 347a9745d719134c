import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { LiveRooms } from "./live_rooms.ts";
import { mucMetrics } from "./muc_metrics.ts";
import { RoomExit } from "./room_exit.ts";
import { ALICE, BOB, COVEN, DEFAULT_ROOM, SEAT, withRoom } from "./testing/muc_world.ts";
import { WaitingLeaves } from "./waiting_leaves.ts";

/** A seat of alice at this node, the exit of its room, and what became of both. */
function withSeat(settings: Partial<typeof DEFAULT_ROOM> = {}) {
  const clock = new ManualClock();
  const counters = mucMetrics(new MetricsRegistry(clock));
  const rooms = new LiveRooms(1, () => {}, counters);
  rooms.put(SEAT);
  rooms.remember(COVEN, {
    creation: 4,
    settings: { ...DEFAULT_ROOM, ...settings, isLocked: false, secret: "" },
    affiliates: [],
    subject: "",
  });
  const sessions = new Set([ALICE]);
  const asked: string[] = [];
  const removed: Parameters<RoomExit["remove"]>[1][] = [];
  const emptied: [string, number][] = [];
  const steps: (() => void)[] = [];
  const leaves = new WaitingLeaves();
  const exit = new RoomExit({
    process: 1,
    isHere: (jid) => {
      asked.push(jid.text);
      return sessions.has(jid.text);
    },
    rooms,
    seats: {
      remove: (seat, about) => {
        removed.push(about);
        rooms.remove(seat.room, seat.jid, about);
      },
    },
    leaves,
    leftSeats: { note() {} },
    counters,
    empty: { remove: (room, creation) => void emptied.push([room, creation]) },
    due: () => undefined,
    left() {},
    inTurn: (_room, step) => {
      steps.push(() => void step());
      return Promise.resolve();
    },
  });
  const runSteps = () => {
    for (const step of steps.splice(0)) step();
  };
  const dropped = () => counters.dropped.value;
  return { exit, rooms, sessions, asked, leaves, removed, emptied, steps, runSteps, dropped };
}

function stanzaOf(xml: string): Stanza {
  return buildStanza(parseElement(new TextEncoder().encode(xml)));
}

function leaveOf(content = ""): Stanza {
  return stanzaOf(
    `<presence from='${ALICE}' to='${COVEN}/witch' type='unavailable'>${content}</presence>`,
  );
}

const ERROR = stanzaOf(`<message from='${ALICE}' to='${COVEN}' type='error'/>`);

Deno.test("RoomExit.take() ends a seat in the turn of its room, with what the leave says", () => {
  const { exit, removed, runSteps } = withSeat();
  exit.take(leaveOf("<status>bye</status>"));
  strictEqual(removed.length, 0);
  runSteps();
  deepStrictEqual(removed.map(({ payload }) => payload?.map(({ text }) => text)), [["bye"]]);
});

Deno.test("RoomExit.take() shows nothing of a leave that is larger than presence may be", () => {
  const { exit, removed, runSteps } = withSeat();
  exit.take(leaveOf(`<status>${"x".repeat(5_000)}</status>`));
  runSteps();
  deepStrictEqual(removed, [{ payload: [] }]);
});

Deno.test("RoomExit.take() ends the seat of a session that an error came from, once it is gone", () => {
  const { exit, sessions, removed, steps, runSteps } = withSeat();
  exit.take(ERROR);
  strictEqual(steps.length, 0, "it is still there");
  sessions.delete(ALICE);
  exit.take(ERROR);
  sessions.add(ALICE);
  runSteps();
  deepStrictEqual(removed, [], "it is there again");
  sessions.delete(ALICE);
  exit.take(ERROR);
  runSteps();
  deepStrictEqual(removed, [{ notes: { codes: ["333"] } }]);
});

Deno.test("RoomExit.take() counts an error that ends no seat", () => {
  const { exit, rooms, sessions, dropped, runSteps } = withSeat();
  exit.take(ERROR);
  strictEqual(dropped(), 1, "the session is there");
  sessions.delete(ALICE);
  exit.take(ERROR);
  runSteps();
  strictEqual(dropped(), 1, "the seat ends");
  exit.take(ERROR);
  strictEqual(dropped(), 2, "there is no seat any more");
  rooms.put(SEAT);
  exit.take(ERROR);
  rooms.remove(COVEN, ALICE);
  runSteps();
  strictEqual(dropped(), 3, "it went before the turn of the error");
  exit.take(leaveOf());
  strictEqual(dropped(), 3, "a leave is no error");
});

Deno.test("RoomExit.take() keeps nothing of a leave without a seat, but for presence that waits", () => {
  const { exit, rooms, leaves, steps } = withSeat();
  rooms.remove(COVEN, ALICE);
  exit.take(leaveOf());
  strictEqual(steps.length, 0);
  leaves.joins(leaveOf());
  exit.take(leaveOf());
  exit.take(leaveOf());
  strictEqual(steps.length, 1);
});

Deno.test("RoomExit.remove() ends a temporary room with the last occupant of its node", () => {
  for (
    const { settings, expected } of [
      { settings: {}, expected: [[COVEN, 4]] },
      { settings: { persistent: true }, expected: [] },
    ]
  ) {
    const { exit, emptied } = withSeat(settings);
    exit.remove(SEAT, {});
    deepStrictEqual(emptied, expected);
  }
  for (
    const { process, expected } of [
      { process: 1, expected: [] },
      { process: 2, expected: [[COVEN, 4]] }, // bob may be leaving as well
    ]
  ) {
    const { exit, rooms, emptied } = withSeat();
    rooms.put({ ...SEAT, jid: "bob@example.com/b", nick: "bard", process });
    exit.remove(SEAT, {});
    deepStrictEqual(emptied, expected);
  }
});

Deno.test("RoomExit.look() ends a seat whose session has been gone for a minute without a break", () => {
  const { exit, sessions, removed } = withSeat();
  exit.look(0);
  sessions.delete(ALICE);
  exit.look(1_000);
  exit.look(60_999);
  sessions.add(ALICE);
  exit.look(61_000);
  sessions.delete(ALICE);
  exit.look(62_000);
  exit.look(121_999);
  deepStrictEqual(removed, []);
  exit.look(122_000);
  deepStrictEqual(removed, [{ notes: { codes: ["333"] } }]);
});

Deno.test("RoomExit.look() asks for a session of this node once, however many rooms it is in", () => {
  const { exit, rooms, sessions, asked, removed } = withSeat();
  rooms.put({ ...SEAT, room: "heath@conference.example.com" });
  rooms.put({ ...SEAT, jid: BOB, nick: "bard", process: 2 });
  exit.look(0);
  deepStrictEqual(asked.splice(0), [ALICE]);
  sessions.delete(ALICE);
  exit.look(1_000);
  exit.look(61_000);
  strictEqual(removed.length, 2);
  asked.length = 0;
  exit.look(62_000);
  deepStrictEqual(asked, []);
});

Deno.test("RoomExit.take() obeys a leave that comes while the seat of its session is taken over", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  one.beforeRead = () => gate;
  one.resume(BOB, two);
  const leave = stanzaOf(`<presence from='${BOB}' to='${COVEN}/bard' type='unavailable'/>`);
  strictEqual(one.server.take(world.taken(leave)), "delivered");
  open();
  await world.settled();
  match(one.got(ALICE).at(-1)!, / type='unavailable' from='coven@conference.example.com\/bard'/);
  one.got(BOB);
  await one.say(ALICE, "gone");
  deepStrictEqual([one.texts(BOB), two.texts(BOB)], [[], []]);
});
