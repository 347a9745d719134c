import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { MucStore, NewMucRoom, StoredMucRoom } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { LiveRoom } from "./live_rooms.ts";
import { mucMetrics } from "./muc_metrics.ts";
import { RoomRecords } from "./room_records.ts";
import { DEFAULT_ROOM, SERVICE } from "./testing/muc_world.ts";

const COVEN = parseJid(`coven@${SERVICE}`).bare;
const ALICE = "alice@example.com";
const STORED: StoredMucRoom = {
  version: 7,
  creation: 3,
  config: `{"title":"Coven","isLocked":false,"secret":"s"}`,
  subject: "",
  lastNumber: 5,
  affiliates: [],
};

/** Records whose database reads `stored`, one after the other; undefined: there is no such room. */
function recordsOf(
  stored: (StoredMucRoom | undefined | "away")[],
  { live, version = "exists" }: {
    readonly live?: LiveRoom["record"];
    readonly version?: Awaited<ReturnType<MucStore["create"]>>;
  } = {},
) {
  const made: ({ readonly room: string } & NewMucRoom)[] = [];
  const noted: unknown[] = [];
  const records = new RoomRecords({
    service: {
      options: { defaultRoom: DEFAULT_ROOM, maxCreatedRooms: 7, maxRoomId: 5 },
      store: {
        read: () => {
          const next = stored.shift();
          return next === "away"
            ? Promise.reject(new CausewayError("storage/unreachable", "Cannot"))
            : Promise.resolve(next);
        },
        create: (room, content) => {
          made.push({ room, ...content });
          return Promise.resolve(version);
        },
      },
    },
    rooms: { get: () => live && { record: live } as LiveRoom }, // nothing else of it is read
    counters: mucMetrics(new MetricsRegistry(new ManualClock())),
    note: (thrown) => noted.push(thrown),
  });
  return { records, made, noted };
}

Deno.test("RoomRecords.findOrMake() makes a locked room, whose owner is the one who enters it", async () => {
  const { records, made } = recordsOf([undefined], { version: 9 });
  const found = await records.findOrMake(COVEN, ALICE);
  if ("error" in found) throw new Error(found.error);
  const { record, isNew, lastNumber } = found;
  deepStrictEqual([isNew, lastNumber, record.creation], [true, 9, 9]);
  deepStrictEqual(record.affiliates, [{ jid: ALICE, affiliation: "owner", reason: "" }]);
  const { secret } = record.settings;
  match(secret, /^[0-9a-f]{32}$/);
  deepStrictEqual(record.settings, { ...DEFAULT_ROOM, isLocked: true, secret });
  deepStrictEqual(made.map(({ config }) => JSON.parse(config)), [record.settings]);
});

Deno.test("RoomRecords.findOrMake() returns a room that others have made meanwhile", async () => {
  const { records, made } = recordsOf([undefined, STORED]);
  const found = await records.findOrMake(COVEN, ALICE);
  strictEqual(made.length, 1);
  const { config: _config, version: _version, lastNumber, ...rest } = STORED;
  deepStrictEqual(found, {
    record: {
      ...rest,
      settings: { ...DEFAULT_ROOM, title: "Coven", isLocked: false, secret: "s" },
    },
    isNew: false,
    lastNumber,
  });
});

Deno.test("RoomRecords.findOrMake() makes no room for somebody who has made too many", async () => {
  const { records, made } = recordsOf([undefined], { version: "too-many" });
  const found = await records.findOrMake(COVEN, ALICE);
  if (!("error" in found)) throw new Error("a room was made");
  strictEqual(found.error, "resource-constraint");
  match(found.text!, / is 7$/);
  deepStrictEqual(made.map(({ creator, maxCreated }) => [creator, maxCreated]), [[ALICE, 7]]);
});

Deno.test("RoomRecords.findOrMake() makes no room whose name is too long", async () => {
  const { records, made } = recordsOf([undefined, STORED]);
  const long = parseJid(`covens@${SERVICE}`).bare;
  deepStrictEqual(await records.findOrMake(long, ALICE), { error: "not-acceptable" });
  deepStrictEqual(made, []);
  ok("record" in await records.findOrMake(long, ALICE), "it is there");
});

Deno.test("RoomRecords.findOrMake() knows a room without the database while somebody of this node is in it", async () => {
  const live = recordsOf([]).records.recordOf(STORED);
  const { records, noted } = recordsOf(["away"], { live });
  deepStrictEqual(await records.findOrMake(COVEN, ALICE), {
    record: live,
    isNew: false,
    lastNumber: 0,
  });
  strictEqual(noted.length, 1);
  await rejects(recordsOf(["away"]).records.findOrMake(COVEN, ALICE), {
    code: "storage/unreachable",
  });
});
