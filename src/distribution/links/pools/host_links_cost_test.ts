import assert from "node:assert/strict";
import { costRatio, MAX_COST_RATIO } from "../../../base/testing/cost_ratio.ts";
import { World } from "./testing/world.ts";

const LARGE = 512;
const SMALL = LARGE / 8;

/** Makes a world with that many endpoints. No link is up. */
async function worldOf(endpoints: number): Promise<World> {
  const world = new World({ options: { maxDatacenterEndpoints: LARGE, laneMaxItems: 8 } });
  await world.list(...Array.from({ length: endpoints }, (_, which) => which));
  return world;
}

/** Returns the cost of the work on many endpoints as a multiple of the same work on few at a time. */
function ratioOf(worlds: readonly World[], work: (world: World) => void): number {
  return costRatio({
    make: (size) => worlds.find(({ hosts }) => [...hosts.pools].length === size)!,
    work,
    largeSize: LARGE,
  });
}

Deno.test("HostLinks.closed() takes linear time for all endpoints of a datacenter that ends", async () => {
  using large = await worldOf(LARGE);
  using small = await worldOf(SMALL);
  const ratio = ratioOf([large, small], ({ hosts }) => {
    for (const { links } of hosts.pools) {
      for (const link of links) {
        link.lane.isGone = false;
        hosts.reachChanged(link);
      }
    }
    // The first refusal of each endpoint, and one more.
    for (let times = 0; times < 2; times++) {
      for (const { links } of hosts.pools) {
        for (const link of links) {
          link.lane.isGone = true;
          hosts.reachChanged(link);
          hosts.closed(link);
        }
      }
      assert.ok(hosts.isGone);
    }
  });
  assert.ok(ratio < MAX_COST_RATIO, `${ratio.toFixed(1)} times the cost of fewer endpoints`);
});

Deno.test("HostLinks.closed() takes linear time for endpoints with stanzas that are not listed any more", async () => {
  using large = await worldOf(LARGE);
  using small = await worldOf(SMALL);
  for (const world of [large, small]) {
    const count = [...world.hosts.pools].length;
    for (let i = 0; i < count; i++) world.send(i, { from: `alice@example.com/${i}` });
    await world.list();
    assert.equal(world.hosts.items, count);
  }
  const ratio = ratioOf([large, small], ({ hosts }) => {
    for (const { links } of hosts.pools) for (const link of links) hosts.closed(link);
  });
  assert.ok(ratio < MAX_COST_RATIO, `${ratio.toFixed(1)} times the cost of fewer endpoints`);
});

Deno.test("HostLinks.opened() takes linear time for all endpoints of a datacenter that comes back", async () => {
  using large = await worldOf(LARGE);
  using small = await worldOf(SMALL);
  const ratio = ratioOf([large, small], ({ hosts }) => {
    for (let times = 0; times < 4; times++) {
      for (const { links } of hosts.pools) for (const link of links) hosts.opened(link);
    }
  });
  assert.ok(ratio < MAX_COST_RATIO, `${ratio.toFixed(1)} times the cost of fewer endpoints`);
});
