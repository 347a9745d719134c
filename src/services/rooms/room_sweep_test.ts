import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { OverdueRooms, RoomOutbox } from "../../storage/mod.ts";
import { RoomSweep } from "./room_sweep.ts";

const WITHIN_MS = 120_000;
const REST_MS = WITHIN_MS / 3;

type Page = Parameters<RoomOutbox["overdue"]>[0];

function open(answer: (page: Page) => Promise<OverdueRooms>) {
  const clock = new ManualClock();
  const pages: Page[] = [];
  const found: string[] = [];
  const state = { isUseful: true };
  const sweep = new RoomSweep({
    outboxes: [{
      overdue(page) {
        pages.push(page);
        return answer(page);
      },
    }],
    withinMs: WITHIN_MS,
    found: (room) => void found.push(room),
    isUseful: () => state.isUseful,
    clock,
    logger: SILENT_LOGGER,
  });
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  sweep.start();
  return { sweep, clock, pages, found, state, pass };
}

Deno.test("RoomSweep looks at 500 rooms in a second, to the end, and then rests", async () => {
  const ends = ["room499", "room999", undefined];
  const { sweep, clock, pages, found, pass } = open(() =>
    Promise.resolve({ rooms: [`lacks${pages.length}`], next: ends[(pages.length - 1) % 3] })
  );
  await pass(REST_MS - 1);
  strictEqual(pages.length, 0);
  await pass(1);
  deepStrictEqual(pages, [{ limit: 500, sentBeforeMs: clock.wallMs() - WITHIN_MS / 6 }]);
  await pass(999);
  strictEqual(pages.length, 1);
  await pass(1);
  await pass(1_000);
  deepStrictEqual(pages.map(({ after }) => after), [undefined, "room499", "room999"]);
  deepStrictEqual(found, ["lacks1", "lacks2", "lacks3"]);
  await pass(REST_MS - 1);
  strictEqual(pages.length, 3);
  await pass(1);
  deepStrictEqual(pages.map(({ after }) => after).slice(3), [undefined], "it begins anew");
  await sweep.stop();
});

Deno.test("RoomSweep goes on where it was after a failure, and looks for nothing that is of no use", async () => {
  const { sweep, pages, state, pass } = open(() =>
    pages.length === 2
      ? Promise.reject(new Error("the database is away"))
      : Promise.resolve({ rooms: [], next: "room499" })
  );
  await pass(REST_MS);
  await pass(1_000);
  await pass(REST_MS);
  deepStrictEqual(pages.map(({ after }) => after), [undefined, "room499", "room499"]);
  state.isUseful = false;
  await pass(1_000);
  strictEqual(pages.length, 3);
  state.isUseful = true;
  await pass(REST_MS);
  strictEqual(pages.length, 4);
  await sweep.stop();
});

Deno.test("RoomSweep.stop() waits for the step under way, and begins no other", async () => {
  const { promise, resolve } = Promise.withResolvers<OverdueRooms>();
  const { sweep, pages, found, pass } = open(() => promise);
  await pass(REST_MS);
  let isOver = false;
  const stopped = sweep.stop().then(() => isOver = true);
  await pass(0);
  strictEqual(isOver, false);
  resolve({ rooms: ["late"], next: "late" });
  await stopped;
  await pass(WITHIN_MS);
  deepStrictEqual([pages.length, found], [1, ["late"]]);
});
