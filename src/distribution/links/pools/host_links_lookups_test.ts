import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { BOB, CAROL, DC2, held, numbered, REROUTE_MS, World } from "./testing/world.ts";

/** A datacenter besides those of the world. */
const DC3 = "dc3.example.com";

/**
 * Sends stanza 1, which is received, 2 and 4 for bob, 3 for carol; then no node is linked any more.
 */
async function outOfReach(world: World): Promise<void> {
  await world.list(0);
  world.up(0);
  world.send(1, { to: BOB });
  world.write(0, 1, 1);
  for (const [sequence, to] of [[2, BOB], [3, CAROL], [4, BOB]] as const) {
    world.send(sequence, { to });
  }
  world.down(0);
  world.tick();
}

Deno.test("HostLinks looks up unreachable recipients, and reroutes stanzas for those that have moved", async () => {
  const asked: string[] = [];
  let bob: string | undefined;
  using world = new World({
    whereabouts: (to) => {
      asked.push(to);
      return to === BOB ? bob : DC2;
    },
  });
  await outOfReach(world);
  world.tick(REROUTE_MS - 1);
  const { last } = world.lane(0);
  for (const [place, delayMs] of [[undefined, 1], [DC2, 2 * REROUTE_MS]] as const) {
    bob = place;
    world.tick(delayMs - 1);
    assert.deepEqual(asked, []);
    world.tick(1);
    await immediately();
    assert.deepEqual(asked.splice(0), [BOB, CAROL], "each once");
    assert.deepEqual([world.returned(), world.lane(0).last], [[], last], "no lane has changed");
  }
  bob = DC3;
  world.tick(3 * REROUTE_MS);
  await immediately();
  assert.deepEqual(world.returned(), numbered("peer-gone", 2, 4));
  assert.deepEqual(
    held(world.lane(0)),
    ["1?", "3"],
    "the peer owns a received stanza, even if bob has moved",
  );
});

Deno.test("HostLinks ignores the result of a lookup once a node is linked again, or after a stop", async () => {
  const ends: readonly ((world: World) => void)[] = [
    (world) => world.up(0),
    (world) => world.hosts.stop("leaving", "it ends"),
  ];
  for (const end of ends) {
    using world = new World({ whereabouts: () => DC3 });
    await outOfReach(world);
    world.tick(REROUTE_MS);
    end(world);
    await immediately();
    assert.deepEqual([world.returned(), held(world.lane(0))], [[], ["2", "3", "4"]]);
  }
});

Deno.test("HostLinks looks up no recipient while one node is linked, and for rerouteFirstMs after", async () => {
  let asked = 0;
  using world = new World({
    whereabouts: () => {
      asked++;
      return undefined;
    },
  });
  await world.list(0);
  world.up(0);
  world.send(1);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  for (const looks of [0, 1]) {
    world.down(0);
    world.tick();
    world.tick(REROUTE_MS - 1);
    assert.equal(asked, looks);
    world.tick(1);
    assert.equal(asked, looks + 1);
    world.up(0);
  }
});
