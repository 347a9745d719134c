import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { PostedMessage } from "./live_rooms.ts";
import { LiveRooms } from "./live_rooms.ts";
import { MessageOrder } from "./message_order.ts";
import { mucMetrics } from "./muc_metrics.ts";
import { ALICE, BOB, COVEN, SEAT, withRoom } from "./testing/muc_world.ts";

function posted(number: number): PostedMessage & { readonly number: number } {
  const text = `<message type='groupchat' from='${COVEN}/witch'><body>${number}</body></message>`;
  return { id: `${number}`, number, sentAtMs: 1, text };
}

Deno.test("MessageOrder lets a bounded number of messages wait while they are not read", async () => {
  const clock = new ManualClock();
  const metrics = mucMetrics(new MetricsRegistry(clock));
  const got: number[] = [];
  const rooms = new LiveRooms(1, (_to, { bytes }) => {
    const body = /<body>(.*)<\/body>/.exec(new TextDecoder().decode(bytes))?.[1];
    if (body !== undefined) got.push(Number(body)); // the others are presence
  }, metrics);
  rooms.put(SEAT);
  rooms.noteHistory(SEAT, 0);
  const live = rooms.get(COVEN)!;
  const asked: (number | undefined)[] = [];
  const steps: Promise<void>[] = [];
  await using order = Object.assign(
    new MessageOrder({
      service: {
        store: {
          messages: (_room, { after }) => {
            asked.push(after);
            const { text: stanza, ...second } = posted(2);
            return Promise.resolve([{ ...second, stanza }]);
          },
        },
      },
      rooms,
      metrics,
      clock,
      inTurn: (_room, step) => void steps.push(step()),
    }),
    { [Symbol.asyncDispose]: () => Promise.resolve(order.close()) },
  );
  order.arrive(live, posted(1));
  for (let number = 3; number <= 1_000; number++) {
    order.arrive(live, posted(number));
    if (live.held.size > 200) strictEqual(live.held.size, 200, "they wait without a bound");
  }
  const others = Array.from({ length: 998 }, (_, i) => i + 3);
  deepStrictEqual(got, [1, ...others], "those behind the gap keep their order");
  clock.advance(250);
  await Promise.all(steps);
  deepStrictEqual(asked, [1]);
  deepStrictEqual(got, [1, ...others, 2], "the one that was missing is given, once");
  order.arrive(live, posted(2));
  strictEqual(got.length, 1_000);
  order.arrive(live, posted(1_002));
  clock.advance(250);
  await Promise.all(steps);
  deepStrictEqual(asked, [1, 1_000], "what was read is not read again");
});

Deno.test("MessageOrder.catchUp() gives what was written while a link was cut, though nobody writes again", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await world.look(12); // what newcomers may have missed is read by then
  world.cut.add("dc1.example.com dc2.example.com");
  await one.say(ALICE, "cut off");
  await world.look(6);
  deepStrictEqual(two.texts(BOB), []);
  world.cut.clear();
  await world.look();
  deepStrictEqual(two.texts(BOB), ["cut off"]);
});
