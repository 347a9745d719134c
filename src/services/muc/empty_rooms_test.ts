import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { MucStore, StoredMucRoom } from "../../storage/mod.ts";
import { EmptyRooms } from "./empty_rooms.ts";
import type { LiveRoom } from "./live_rooms.ts";
import { mucMetrics } from "./muc_metrics.ts";
import {
  ALICE,
  BOB,
  COVEN,
  DEFAULT_ROOM,
  OPTIONS,
  SERVICE,
  withRoom,
} from "./testing/muc_world.ts";

const STORED: StoredMucRoom = {
  version: 5,
  creation: 4,
  config: "{}",
  subject: "",
  lastNumber: 4,
  affiliates: [],
};

/** A temporary room that a node has left. Somebody may be in it at another node. */
function withLeftRoom(
  { isOccupied = false, isAway = false }: {
    readonly isOccupied?: boolean;
    readonly isAway?: boolean;
  },
) {
  const state = { isOccupied, isWhole: true, isAway };
  const read: string[] = [];
  const destroyed: [string, number][] = [];
  const store: Pick<MucStore, "read" | "destroy"> = {
    read: (room) => {
      read.push(room);
      return state.isAway ? Promise.reject(new Error("away")) : Promise.resolve(STORED);
    },
    destroy: (room, version) => Promise.resolve(destroyed.push([room, version]) > 0),
  };
  const clock = new ManualClock();
  const log = new MemoryLogger();
  const empty = new EmptyRooms({
    service: { domain: SERVICE, options: OPTIONS, store: store as MucStore }, // nothing else of it
    rooms: { get: () => state.isOccupied ? {} as LiveRoom : undefined }, // only whether it is there
    peers: {
      get isWhole() {
        return state.isWhole;
      },
      unheard: [],
      tellChange() {},
    },
    records: { settingsOf: () => ({ ...DEFAULT_ROOM, isLocked: false, secret: "" }) },
    counters: mucMetrics(new MetricsRegistry(clock)),
    inTurn: (_room, step) => step().catch(() => {}),
    clock,
    logger: log,
  });
  let nowMs = 0;
  const look = async (times: number, everyMs = 1_000) => {
    for (let i = 0; i < times; i++) {
      empty.look(nowMs += everyMs);
      await new Promise((resolve) => setTimeout(resolve));
    }
  };
  empty.remove(COVEN, STORED.creation);
  return { empty, state, read, destroyed, log, look };
}

Deno.test("EmptyRooms.look() removes a room that others left soon after this node", async () => {
  const { state, destroyed, look } = withLeftRoom({ isOccupied: true });
  await look(9);
  deepStrictEqual(destroyed, []);
  state.isOccupied = false;
  await look(1);
  deepStrictEqual(destroyed, [[COVEN, 5]]);
});

Deno.test("EmptyRooms.look() leaves a room to the nodes of its occupants after a while", async () => {
  const { state, destroyed, look } = withLeftRoom({ isOccupied: true });
  await look(10);
  state.isOccupied = false;
  await look(10);
  deepStrictEqual(destroyed, []);
});

Deno.test("EmptyRooms.look() keeps a room in mind while other nodes may not have heard of its leave", async () => {
  const { state, destroyed, log, look } = withLeftRoom({ isOccupied: true });
  state.isWhole = false;
  await look(20, 60_000);
  deepStrictEqual(log.named("muc.rooms-stay"), [], "somebody is in it");
  state.isWhole = true;
  await look(9);
  state.isOccupied = false;
  await look(1);
  deepStrictEqual(destroyed, [[COVEN, 5]]);
});

Deno.test("EmptyRooms.look() removes rooms once the database is back, and asks for one until then", async () => {
  const { empty, state, read, destroyed, look } = withLeftRoom({ isAway: true });
  const other = `heath@${SERVICE}`;
  empty.remove(other, STORED.creation);
  read.length = 0;
  await look(1);
  deepStrictEqual(read, [COVEN]);
  state.isAway = false;
  await look(1);
  deepStrictEqual(destroyed, [[COVEN, 5], [other, 5]]);
  read.length = 0;
  await look(1);
  deepStrictEqual(read, []);
});

Deno.test("EmptyRooms removes a temporary room that its last occupants leave at once, at two nodes", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.held = [];
  await one.leave(ALICE, "witch");
  await two.leave(BOB, "bard");
  world.release();
  await world.settled();
  await world.look(2);
  strictEqual(await world.store.read(COVEN), undefined);
});
