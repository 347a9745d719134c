import assert from "node:assert/strict";
import type { Fate } from "../../../xmpp/mod.ts";
import { ALICE, CAROL, World } from "./testing/world.ts";

Deno.test("HostLinks slows senders of a live lane over its mark until it is down, emptied or given back", async () => {
  const options = { laneMaxItems: 8, laneHighWater: 0.5, laneLowWater: 0.25 };
  using world = new World({ options });
  await world.list(0, 1);
  world.up(0);
  const told = () => world.pressure.splice(0);
  for (const sequence of [1, 2, 3, 4]) world.send(sequence);
  assert.deepEqual(told(), []);
  world.send(5);
  assert.deepEqual(told(), [`${ALICE} true`]);
  world.send(6);
  assert.deepEqual(told(), [], "the sender has been told");
  world.send(7, { from: CAROL });
  assert.deepEqual(told(), [`${CAROL} true`]);
  world.down(0);
  assert.deepEqual(told(), [`${ALICE} false`, `${CAROL} false`]);
  world.up(0);
  assert.deepEqual(told(), [`${ALICE} true`, `${CAROL} true`]);
  world.write(0, 7, 7, 6);
  assert.deepEqual(told(), [`${ALICE} false`, `${CAROL} false`]);
  for (const sequence of [8, 9, 10, 11]) world.send(sequence, { from: CAROL });
  assert.deepEqual(told(), [`${CAROL} true`]);
  world.hosts.giveBackAll("expired");
  assert.deepEqual(told(), [`${CAROL} false`]);
});

Deno.test("HostLinks slows the sender of a stanza for which the peer has no room, and the node before", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  const told = () => world.pressure.splice(0);
  const before: string[] = [];
  const settler: Fate = {
    settle: (number) => void before.push(`${number} settled`),
    slow: (number) => {
      before.push(`${number} slow`);
      return () => void before.push(`${number} over`);
    },
  };
  for (const sequence of [1, 2]) world.send(sequence, { settler });
  world.send(3, { from: CAROL });
  world.write(0, 3, 3);
  const lane = world.lane(0);
  const slow = (number: number, isOver = false) => lane.slow({ number, isOver });
  assert.equal(slow(4), false, "it was never sent");
  assert.ok(slow(1) && slow(1) && slow(3));
  assert.deepEqual([told(), before.splice(0)], [[`${ALICE} true`, `${CAROL} true`], ["1 slow"]]);
  assert.ok(slow(3, true) && slow(3, true));
  assert.deepEqual(told(), [`${CAROL} false`]);
  world.write(0, 0, 3, 1);
  assert.deepEqual([told(), before.splice(0)], [[`${ALICE} false`], ["1 over", "1 settled"]]);
  assert.ok(slow(1), "a stanza that is settled slows nobody");
  assert.deepEqual(told(), []);
  assert.ok(slow(2));
  assert.deepEqual(told(), [`${ALICE} true`]);
  world.tick(9_999);
  assert.deepEqual(told(), []);
  world.tick(1);
  assert.deepEqual(told(), [`${ALICE} false`], "a peer that says no more slows nobody for long");
  assert.ok(slow(2, true) && slow(2));
  assert.deepEqual(told(), [], "ten seconds are all for one stanza");
  world.send(4, { settler });
  world.write(0, 1, 4, 1);
  assert.ok(slow(4));
  assert.deepEqual(told(), [`${ALICE} true`]);
  world.tick(6_000);
  assert.ok(slow(4, true) && slow(4));
  assert.deepEqual(told(), [`${ALICE} false`, `${ALICE} true`]);
  world.tick(4_000);
  assert.deepEqual(told(), [`${ALICE} false`], "repeating it does not lengthen it");
  world.hosts.giveBackAll("expired");
});

Deno.test("HostLinks slows nobody for what is no message, or an answer of this node", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  world.pressure.splice(0);
  world.send(1, { kind: "presence" });
  world.send(2, { isOwed: true });
  world.write(0, 2, 2);
  for (const number of [1, 2]) assert.ok(world.lane(0).slow({ number, isOver: false }));
  assert.deepEqual(world.pressure, []);
});
