import assert from "node:assert/strict";
import type { Fate } from "../../../xmpp/mod.ts";
import { TestSettler } from "../testing/kit.ts";
import {
  CAROL,
  COLLECT_MS,
  EXPIRE_MS,
  held,
  numbered,
  PEER,
  REHOME_MS,
  REROUTE_MS,
  World,
} from "./testing/world.ts";

for (const [scope, reason] of [["mesh", "peer-gone"], ["datacenter", "peer-restarted"]] as const) {
  Deno.test(`HostLinks gives back at once, as ${reason}, stanzas of ended processes in scope ${scope}`, async () => {
    using world = new World({ scope });
    await world.list(0, 1);
    world.up(0);
    for (const sequence of [1, 2]) world.send(sequence);
    world.write(0, 1);
    world.down(0);
    assert.deepEqual([world.returned(), world.hosts.isGone], [[], false]);
    await world.list(0);
    world.down(0, true);
    assert.equal(world.hosts.isGone, true);
    assert.deepEqual(world.returned(), numbered(reason, "1?", 2));
  });
}

Deno.test("HostLinks takes a process for gone on all its links when one link shows it", async () => {
  using world = new World({ options: { connectionsPerEndpoint: 2 } });
  await world.list(0);
  world.send(1);
  world.send(2, { from: CAROL });
  assert.deepEqual(held(world.lane(0)), ["1"], "each sender has its own lane");
  world.down(0, true);
  assert.deepEqual(world.returned(), numbered("peer-gone", 1, 2));
});

Deno.test("HostLinks.closed() gives back what was sent to ended processes since the last refusal", async () => {
  using world = new World();
  await world.list(0, 1);
  world.down(0, true);
  world.send(1);
  world.sendsAgain = true;
  world.down(1, true);
  assert.deepEqual(world.returned(), numbered("peer-gone", 1));
  world.sendsAgain = false;
  world.down(0);
  assert.deepEqual([world.returned(), world.hosts.items], [numbered("peer-gone", 1), 0]);
  world.send(2);
  world.down(0);
  assert.deepEqual([world.returned(), world.hosts.items], [numbered("peer-gone", 2), 0]);
});

Deno.test("HostLinks.closed() gives stanzas back again and again while only an unlisted endpoint is linked", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(1);
  await world.list(0);
  world.down(0, true);
  for (const sequence of [1, 2]) {
    world.send(sequence);
    assert.deepEqual(held(world.lane(1)), [`${sequence}`]);
    world.down(0, true);
    assert.deepEqual(world.returned(), numbered("peer-gone", sequence));
  }
  world.send(3);
  world.down(1);
  assert.deepEqual(world.returned(), numbered("peer-gone", 3));
});

Deno.test("HostLinks.restarted() gives back the stanzas of a process that was replaced", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2, 3]) world.send(sequence);
  world.write(0, 2, 1);
  const lane = world.lane(0);
  assert.equal(lane.resume(PEER + 1, 0), "restarted");
  world.hosts.restarted(world.link(0), lane.takeForRestart());
  assert.deepEqual(world.returned(), numbered("peer-restarted", "1?", "2?", 3));
});

Deno.test("HostLinks moves stanzas of a dead, unlisted endpoint to a listed one, which retires the old lane first", async () => {
  for (const isSent of [true, false]) {
    using world = new World();
    await world.list(0);
    world.up(0);
    world.send(1);
    if (isSent) world.write(0, 1);
    world.send(2);
    await world.list(1);
    assert.deepEqual(held(world.lane(1)), [], "a live endpoint keeps its stanzas");
    world.down(0);
    assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], [isSent ? "1?" : "1", "2"]]);
    assert.deepEqual(world.lane(1).retired.takeUntold(), isSent ? [world.lane(0).id] : []);
    world.send(3);
    assert.deepEqual(held(world.lane(1)).at(-1), "3", "behind the moved stanzas");
  }
});

Deno.test("HostLinks moves stanzas of an ended process to another at once, each sender's together", async () => {
  using world = new World();
  await world.list(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.send(3, { from: CAROL });
  await world.list(0, 1, 2);
  world.down(0, true);
  const lanes = [0, 1, 2].map((which) => held(world.lane(which)));
  assert.deepEqual(lanes, [[], ["1", "2"], ["3"]]);
});

Deno.test("HostLinks moves no stanza to an endpoint that is not listed, until it is listed", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0, 1);
  world.send(1);
  await world.list();
  world.down(0);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1"], []]);
  await world.list(1);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["1"]]);
});

Deno.test("HostLinks parks the stanzas of a collected endpoint until there is another", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.write(0, 1);
  await world.list();
  world.down(0);
  world.tick(COLLECT_MS);
  assert.deepEqual([[...world.hosts.pools], world.hosts.parkedItems], [[], 2]);
  world.send(3);
  await world.list(1);
  assert.deepEqual(held(world.lane(1)), ["1?", "2", "3"]);
});

Deno.test("HostLinks moves stanzas of an unreachable node after rehomeAfterMs to a linked one", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  world.send(1);
  world.down(0);
  world.tick(REHOME_MS);
  assert.deepEqual(held(world.lane(0)), ["1"], "no other node is linked");
  world.up(0, 1);
  world.tick(REHOME_MS);
  assert.deepEqual([held(world.lane(0)), world.lane(0).last], [["1"], 1], "the node is linked");
  world.down(0);
  world.tick(REHOME_MS - 1);
  assert.deepEqual(held(world.lane(0)), ["1"]);
  world.tick(1);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["1"]]);
});

Deno.test("HostLinks reroutes stanzas of refusing endpoints with growing waits, which begin anew after a link", async () => {
  using world = new World({ options: { expireAfterMs: 12 * REROUTE_MS } });
  world.sendsAgain = true;
  world.send(1);
  world.tick(); // the tick notices that stanzas wait
  const wait = (delayMs: number) => {
    world.tick(delayMs - 1);
    assert.deepEqual(world.returned(), []);
    world.tick(1);
    assert.deepEqual(world.returned(), ["1 peer-gone"], `${delayMs}`);
  };
  for (const times of [1, 2, 3, 3]) wait(times * REROUTE_MS); // at most a quarter of expireAfterMs
  await world.list(0);
  world.up(0);
  for (let i = 0; i < 2; i++) world.tick(REROUTE_MS);
  await world.list();
  world.down(0);
  world.tick();
  wait(REROUTE_MS);
});

Deno.test("HostLinks.reconsider() takes back stanzas of a node that is cut off, until they are settled", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  world.down(0);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), [], "the node may still live");
  world.hosts.reconsider();
  world.tick();
  world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), ["1 peer-gone"]);
  world.up(0);
  world.tick();
  world.send(2);
  world.down(0);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), [], "later stanzas are not reconsidered");
});

Deno.test("HostLinks gives all stanzas back after expireAfterMs without a link", async () => {
  using world = new World();
  await world.list(0);
  world.tick(EXPIRE_MS);
  world.up(0);
  world.send(1);
  world.send(2);
  world.write(0, 1);
  world.tick(EXPIRE_MS);
  assert.deepEqual(world.returned(), [], "the link is up");
  world.down(0);
  world.tick(EXPIRE_MS - 1);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), numbered("expired", "1?", 2));
});

Deno.test("HostLinks.giveUp() leaves received stanzas to the peer, and gives back the rest and all later ones", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  const own = new TestSettler();
  const fates: string[] = [];
  const others: Fate = {
    settle: () => void fates.push("settled"),
    leftOpen: () => void fates.push("left open"),
  };
  world.send(1, { settler: own });
  world.send(2, { settler: others });
  for (const sequence of [3, 4]) world.send(sequence, { settler: own });
  world.write(0, 3, 2);
  world.hosts.giveUp();
  assert.deepEqual([own.settled, fates], [[1], ["left open"]]);
  assert.deepEqual(world.returned(), numbered("leaving", "3?", 4));
  world.send(5, { settler: own });
  assert.deepEqual([world.returned(), own.settled], [["5 leaving"], [1]]);
  assert.ok(world.link(0).isStopped);
});

Deno.test("HostLinks.giveBackAll() gives back received stanzas too, unless this node leaves", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.write(0, 1, 1);
  world.hosts.giveBackAll("expired");
  assert.deepEqual(world.returned(), numbered("expired", "1?", 2));
  assert.equal(world.hosts.items, 0);
});

/** Makes a world with one endpoint, whose lane has sent a stanza not reported as received. */
async function worldWithOneSent(): Promise<World> {
  const world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  world.write(0, 1);
  return world;
}

Deno.test("HostLinks retires the old lane first, though its stanzas were parked in between", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0).id;
  await world.list();
  world.down(0);
  world.tick(COLLECT_MS);
  await world.list(1);
  assert.deepEqual(held(world.lane(1)), ["1?"]);
  assert.deepEqual(world.lane(1).retired.takeUntold(), [old]);
});

Deno.test("HostLinks retires the old lane first, though its stanzas moved twice", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0).id;
  await world.list(1);
  world.down(0); // moves to 1, which is not up yet
  await world.list(2); // 1 has moved too
  world.down(1);
  assert.deepEqual(held(world.lane(2)), ["1?"]);
  assert.deepEqual(world.lane(2).retired.takeUntold(), [old]);
});

Deno.test("HostLinks retires no lane that has come up again", async () => {
  using world = await worldWithOneSent();
  await world.list(0, 1);
  world.up(1);
  world.down(0);
  world.tick(REHOME_MS);
  assert.deepEqual(held(world.lane(1)), ["1?"]);
  world.down(1); // before the peer has heard of it
  world.up(0);
  world.up(1);
  assert.deepEqual(world.lane(1).retired.takeUntold(), []);
});

Deno.test("HostLinks does not make a lane retire itself when its stanzas come back to it", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0);
  await world.list(1);
  world.down(0); // moves to 1, which is not up yet
  await world.list(0);
  world.down(1);
  assert.equal(world.lane(0), old);
  assert.deepEqual(held(old), ["1?"]);
  assert.deepEqual(old.retired.takeUntold(), []);
});
