import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { decodePosition, FRAME_TYPE } from "../../wire/mod.ts";
import { MemoryRedis } from "../redis/testing/memory_redis.ts";
import { claim, TestAuthor } from "../testing/author.ts";
import { advance, TestTable } from "../testing/table.ts";

const DC1 = "dc1.example.com";
const BOB = claim(1, "bob@example.com", "phone");
const EVE = claim(2, "eve@example.com", "phone");
const EVE_LEFT = { ...EVE, kind: "withdraw" } as const;
const ANN = claim(3, "ann@example.com", "phone");

/** Two nodes of dc1 on one Redis, the first of which has all entries of a node of dc2. */
async function twoNodes() {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const [one, two] = [1, 2].map((i) =>
    new TestTable(
      { replication: "builtin", node: `node${i}@${DC1}`, incarnation: i, hosts: ["example.com"] },
      clock,
      redis,
    )
  ) as [TestTable, TestTable];
  for (const { table } of [one, two]) await table.start();
  const first = new TestAuthor(one);
  await first.say(first.lease({ lastNumber: 1 }));
  await first.say(first.snapshot(1, BOB));
  return {
    one,
    two,
    first,
    /** The node of dc2 goes on at the second node of dc1. */
    second: () => new TestAuthor(two),
    keys: () => one.publicKeys(),
    async close() {
      one.commands.latencyMs = 0;
      await advance(clock, 2_000); // what is under way ends
      for (const { table } of [one, two]) await table.close();
    },
  };
}

/** True when the author was asked to begin with a snapshot last. */
function wantsSnapshot({ frames }: TestAuthor): boolean {
  const position = frames.findLast((frame) => frame[4] === FRAME_TYPE.position)!;
  return decodePosition(position, 0, position.length).wantsSnapshot;
}

Deno.test("AuthorIntake has what a slow node applies late mended by a snapshot at the node that has taken over", async () => {
  const { one, two, first, second, keys, close } = await twoNodes();
  one.commands.latencyMs = 1_000;
  await first.say(first.changes(2, EVE)); // it takes seconds to apply
  one.table.traffic!.ended(first, false);
  const next = second();
  await next.say(next.lease({ lastNumber: 3 }));
  assert.equal(wantsSnapshot(next), false);
  await next.say(next.changes(2, EVE, EVE_LEFT));
  assert.equal(keys()["eve@example.com"], undefined);
  await advance(two.clock, 20_000);
  await next.say(next.lease({ lastNumber: 3 }));
  assert.equal(wantsSnapshot(next), true);
  await next.say(next.snapshot(3, BOB));
  assert.equal(keys()["eve@example.com"], undefined);
  assert.equal(keys()["bob@example.com"], next.host);
  await close();
});

Deno.test("AuthorIntake has what a slow node removes late mended by a snapshot at the node that has taken over", async () => {
  const { one, two, first, second, keys, close } = await twoNodes();
  one.redis.run(["DEL", `causeway:applied:${first.host}#${first.nodeName}`]);
  one.table.traffic!.ended(first, false);
  const again = new TestAuthor(one);
  await again.say(again.lease({ lastNumber: 2 }));
  one.commands.latencyMs = 400;
  await again.say(again.snapshot(2, BOB));
  await advance(two.clock, 2_500); // it looks for entries that the snapshot does not name
  one.table.traffic!.ended(again, false);
  const next = second();
  await next.say(next.lease({ lastNumber: 3 }));
  await next.say(next.snapshot(3, BOB, ANN));
  assert.equal(keys()["ann@example.com"], next.host);
  await advance(two.clock, 60_000);
  await next.say(next.lease({ lastNumber: 3 }));
  assert.equal(wantsSnapshot(next), true);
  await next.say(next.snapshot(3, BOB, ANN));
  assert.equal(keys()["ann@example.com"], next.host);
  await close();
});

Deno.test("AuthorIntake has a process that comes while its predecessor is removed send its entries again", async () => {
  const { one, two, first, keys, close } = await twoNodes();
  one.commands.latencyMs = 400;
  one.table.traffic!.ended(first, true);
  await advance(two.clock, 1_000); // it looks for the predecessor's entries
  const next = new TestAuthor(two, 0xb3);
  await next.say(next.lease({ startedUs: 2, lastNumber: 1 }));
  await next.say(next.snapshot(1, ANN));
  await advance(two.clock, 60_000);
  await next.say(next.lease({ startedUs: 2, lastNumber: 1 }));
  assert.equal(wantsSnapshot(next), true);
  await next.say(next.snapshot(1, ANN));
  assert.equal(keys()["ann@example.com"], next.host);
  await close();
});

Deno.test("AuthorIntake goes on without a snapshot when its link was cut, and another node has not taken over", async () => {
  const { one, first, keys, close } = await twoNodes();
  one.commands.latencyMs = 400;
  await first.say(first.changes(2, EVE));
  one.table.traffic!.ended(first, false);
  await advance(one.clock, 20_000);
  one.commands.latencyMs = 0;
  const again = new TestAuthor(one);
  await again.say(again.lease({ lastNumber: 3 }));
  assert.equal(wantsSnapshot(again), false);
  await again.say(again.changes(2, EVE, EVE_LEFT));
  assert.equal(keys()["eve@example.com"], undefined);
  await again.say(again.lease({ lastNumber: 3 }));
  assert.equal(wantsSnapshot(again), false);
  await close();
});

Deno.test("AuthorIntake takes nothing from a process that another one of its name has replaced, nor its end", async () => {
  const { one, two, first, keys, close } = await twoNodes();
  one.table.traffic!.ended(first, false);
  const next = new TestAuthor(two, 0xb3);
  await next.say(next.lease({ startedUs: 2, lastNumber: 1 }));
  await next.say(next.snapshot(1, ANN));
  const lease = () => one.redis.run(["GET", `causeway:node:${next.host}#${next.nodeName}`]);
  const held = lease();
  // It was suspended, and does not know yet that it is replaced.
  const former = new TestAuthor(one);
  await former.say(former.lease({ lastNumber: 1 }));
  const types = former.frames.map((frame) => frame[4]);
  assert.ok(!types.includes(FRAME_TYPE.position), "it is not asked for its entries");
  await former.say(former.snapshot(1, BOB));
  one.table.traffic!.ended(former, true);
  await advance(two.clock, 100);
  assert.equal(lease(), held);
  assert.equal(keys()["ann@example.com"], next.host);
  assert.equal(keys()["bob@example.com"], undefined);
  await close();
});
