import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { ALICE, BOB, CAROL, COVEN, DAVE, MucWorld, withRoom } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

Deno.test("MucServer does not wait long for a node that tells nothing of its seats", async () => {
  const [world, , two] = await withRoom();
  await using _ = world;
  world.dead.add(two);
  const three = world.begin("dc3.example.com");
  const entering = three.enter(CAROL, "crone");
  await new Promise((resolve) => setTimeout(resolve));
  deepStrictEqual(three.got(CAROL), []);
  world.clock.advance(3_000);
  await entering;
  ok(three.got(CAROL).some((xml) => xml.includes("code='110'")));
});

Deno.test("MucServer lets both sides of a split talk, and unites them with the older nickname", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  world.isLeaseOver = true;
  two.isStoreDown = true; // the database is at dc1
  await world.look(3);
  match(one.got(ALICE).join(""), /\/bard' .*type='unavailable'|type='unavailable'.*code='333'/);
  match(two.got(BOB).join(""), /code='333'/);
  await one.say(ALICE, "one");
  await two.say(BOB, "two");
  await one.enter(CAROL, "crone");
  world.clock.advance(5);
  await two.enter(DAVE, "crone");
  deepStrictEqual([one.texts(ALICE), two.texts(BOB)], [["one"], ["two"]]);
  one.got(CAROL);
  two.got(DAVE);
  world.cut.clear();
  world.isLeaseOver = false;
  two.isStoreDown = false;
  await world.look(4);
  deepStrictEqual([one.texts(ALICE), two.texts(BOB)], [["two"], ["one"]]);
  const atDave = two.got(DAVE).join("\n");
  match(atDave, /type='unavailable'.*nick='crone 2'.*code='303'/);
  match(atDave, /from='coven@conference.example.com\/crone 2'.*code='110'/);
  ok(!one.got(CAROL).join("").includes("code='303'"), "she had it first");
  await one.say(ALICE, "together");
  for (const [node, who] of [[one, CAROL], [two, BOB], [two, DAVE]] as const) {
    deepStrictEqual(node.texts(who).at(-1), "together");
  }
});

Deno.test("MucServer gives all devices of a person one nickname in place of a lost one", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  await one.enter(CAROL, "crone");
  world.clock.advance(5);
  const devices = ["a", "b"].map((resource) => `dave@example.com/${resource}`);
  for (const device of devices) await two.enter(device, "crone");
  for (const device of devices) two.got(device);
  world.cut.clear();
  await world.look(4);
  for (const device of devices) {
    const own = two.got(device).filter((xml) => /from='[^']*\/crone( \d)?'.*code='110'/.test(xml));
    match(own.at(-1)!, new RegExp(`from='${COVEN}/crone 2'`));
    ok(!own.some((xml) => xml.includes("crone 3")));
  }
});

Deno.test("MucServer keeps a temporary room in which the other side of a split may be", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.leave(ALICE, "witch");
  world.cut.add("dc1.example.com dc2.example.com");
  world.isLeaseOver = true;
  await world.look(3);
  const late = world.begin("dc1.example.com"); // it has never heard of dc2
  for (const node of [one, late]) {
    await node.enter(CAROL, "crone");
    match(node.got(CAROL).join(""), /code='110'/);
    await node.leave(CAROL, "crone");
    await world.look();
    node.sessions.delete(CAROL);
    ok(await world.store.read(COVEN) !== undefined, "bob is in it");
  }
  world.cut.clear();
  world.isLeaseOver = false;
  await world.look(4);
  ok(await world.store.read(COVEN) !== undefined, "bob is still in it");
  await two.leave(BOB, "bard");
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("MucServer removes a temporary room after a split that was left during it", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  await one.leave(ALICE, "witch");
  world.cut.add("dc1.example.com dc2.example.com");
  await world.look(6); // the leases last longer
  await two.leave(BOB, "bard");
  ok(await world.store.read(COVEN) !== undefined, "somebody may have entered it at dc1");
  world.cut.clear();
  await world.look(4);
  strictEqual(await world.store.read(COVEN), undefined);
});

Deno.test("MucServer warns once of empty rooms that stay for long as a live node is not heard", async () => {
  await using world = await MucWorld.open(["dc1.example.com", "dc2.example.com"]);
  const [one, two] = world.nodes as [MucNode, MucNode];
  await one.make(ALICE, "witch");
  world.dead.add(two); // its lease lasts
  await world.look(6);
  await one.leave(ALICE, "witch");
  await world.look(6);
  const warnings = () => one.log.named("muc.rooms-stay").map(({ fields }) => fields);
  deepStrictEqual(warnings(), [], "it may be a short split");
  world.clock.advance(600_000);
  await world.look(3);
  deepStrictEqual(warnings(), [{ rooms: 1, unheard: ["dc2.example.com"] }]);
  ok(await world.store.read(COVEN) !== undefined);
  world.dead.clear();
  await world.look(4);
  strictEqual(await world.store.read(COVEN), undefined);
  strictEqual(warnings().length, 1);
});

Deno.test("MucServer withdraws the occupants of a node that is dead", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.dead.add(two);
  world.isLeaseOver = true;
  await world.look(3);
  const [gone, ...more] = one.got(ALICE);
  match(gone!, /\/bard'.*/);
  match(gone!, /type='unavailable'.*code='333'/);
  deepStrictEqual(more, []);
});

Deno.test("MucServer asks for all occupants of a node when it has missed one, and shows only what is new", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  world.held = [];
  await one.enter(CAROL, "crone");
  world.held = undefined; // the news is gone
  deepStrictEqual(two.got(BOB), []);
  await world.look();
  const got = two.got(BOB);
  strictEqual(got.length, 1);
  match(got[0]!, new RegExp(`from='${COVEN}/crone'`));
});
