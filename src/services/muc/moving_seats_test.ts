import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ALICE, BOB, CAROL, MucWorld } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

/** Three datacenters, and a room with alice and bob at dc1 and carol at dc3, which hears dc2 late. */
async function withMove(): Promise<[MucWorld, MucNode, MucNode]> {
  const world = await MucWorld.open(["dc1.example.com", "dc2.example.com", "dc3.example.com"]);
  const [one, two, three] = world.nodes as [MucNode, MucNode, MucNode];
  await one.make(ALICE, "witch");
  await one.enter(BOB, "bard");
  await three.enter(CAROL, "crone");
  await world.look();
  three.got(CAROL);
  world.slow.set("2 3", []);
  two.resume(BOB, one);
  await world.settled();
  return [world, two, three];
}

function leavesIn(got: readonly string[]): readonly string[] {
  return got.filter((xml) => xml.startsWith("<presence") && xml.includes("type='unavailable'"));
}

Deno.test("nobody sees an occupant leave who moves to a node that is heard late", async () => {
  const [world, two, three] = await withMove();
  await using _ = world;
  await world.look();
  world.speedUp("2 3");
  await world.look(8);
  deepStrictEqual(leavesIn(three.got(CAROL)), []);
  await two.leave(BOB, "bard");
  strictEqual(leavesIn(three.got(CAROL)).length, 1);
});

Deno.test("an occupant is seen to leave when the node is not heard that has the seat now", async () => {
  const [world, , three] = await withMove();
  await using _ = world;
  await world.look(4);
  deepStrictEqual(leavesIn(three.got(CAROL)), []);
  await world.look(2);
  match(leavesIn(three.got(CAROL)).join(""), /\/bard'/);
});

Deno.test("an occupant who left at the next node is gone when that is heard before the old one", async () => {
  const world = await MucWorld.open(["dc1.example.com", "dc2.example.com", "dc3.example.com"]);
  await using _ = world;
  const [one, two, three] = world.nodes as [MucNode, MucNode, MucNode];
  await one.make(ALICE, "witch");
  await one.enter(BOB, "bard");
  await three.enter(CAROL, "crone");
  await world.look();
  three.got(CAROL);
  world.slow.set("1 3", []);
  two.resume(BOB, one);
  await world.settled();
  await two.leave(BOB, "bard");
  world.speedUp("1 3");
  await world.look();
  strictEqual(leavesIn(three.got(CAROL)).length, 1);
});
