import { deepStrictEqual, doesNotMatch, match } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { Arrivals } from "./arrivals.ts";
import type { LiveRoom } from "./live_rooms.ts";
import { RoomSeats } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import { ALICE, BOB, CAROL, COVEN, DAVE, SERVICE, withRoom } from "./testing/muc_world.ts";
import type { MucNode, MucWorld } from "./testing/muc_world.ts";

const SEAT: Seat = {
  room: COVEN,
  jid: BOB,
  nick: "bard",
  affiliation: "none",
  role: "participant",
  payload: [],
  joinedMs: 1,
  changedMs: 1,
  host: "dc2.example.com",
  process: 2,
};

/** A room of alice at dc1, with bob, whose session moves from dc2 to dc3 while dc3 has no database. */
async function withArrival(): Promise<[MucWorld, MucNode, MucNode]> {
  const [world, one, two] = await withRoom();
  const three = world.begin("dc3.example.com");
  await world.look(4);
  three.isStoreDown = true;
  three.resume(BOB, two);
  await world.settled();
  await world.look();
  return [world, one, three];
}

Deno.test("Arrivals.look() takes over the seat of a session once the database is back", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  await three.say(BOB, "too early");
  match(three.got(BOB).at(-1)!, /<resource-constraint /);
  three.isStoreDown = false;
  await world.look();
  await three.say(BOB, "moved");
  deepStrictEqual(one.texts(ALICE), ["moved"]);
  world.clock.advance(60_000);
  await world.look();
  await one.say(ALICE, "still there");
  deepStrictEqual(three.texts(BOB), ["moved", "still there"]);
});

Deno.test("Arrivals.look() shows a session who has come and gone since it left its old node", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await one.enter(DAVE, "druid");
  await world.look(4);
  three.isStoreDown = true;
  three.resume(BOB, two);
  await world.settled();
  world.cut.add("dc2.example.com dc3.example.com"); // what dc2 writes to bob is lost
  await one.leave(DAVE, "druid");
  await one.enter(CAROL, "cat");
  three.isStoreDown = false;
  await world.look();
  const got = three.got(BOB).join("");
  match(got, new RegExp(`type='unavailable' from='${COVEN}/druid'`));
  match(got, new RegExp(`<presence from='${COVEN}/cat'`));
});

Deno.test("Arrivals.look() shows a session an occupant whom its old node could not see", async () => {
  const [world, one] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look(4);
  world.cut.add("dc1.example.com dc2.example.com");
  await one.enter(CAROL, "cat");
  three.resume(BOB, world.nodes[1]!);
  await world.settled();
  match(three.got(BOB).join(""), new RegExp(`<presence from='${COVEN}/cat'`));
});

Deno.test("Arrivals.look() takes over no seat that its session has left", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  await three.leave(BOB, "bard");
  three.isStoreDown = false;
  await world.look();
  world.clock.advance(60_000);
  await world.look();
  match(one.got(ALICE).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("Arrivals.look() tells a session that its seat went with the other node", async () => {
  const [world, , three] = await withArrival();
  await using _ = world;
  world.dead.add(world.nodes[1]!);
  world.isLeaseOver = true;
  await world.look(12);
  match(
    three.got(BOB).join(""),
    new RegExp(`type='unavailable' from='${COVEN}/bard'.*'333'.*'110'`),
  );
});

Deno.test("Arrivals.look() does not take over a seat that comes back once its session was told that it is gone", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  world.cut.add("dc2.example.com dc3.example.com");
  world.isLeaseOver = true;
  await world.look(12);
  world.cut.clear();
  world.isLeaseOver = false;
  three.isStoreDown = false;
  await world.look(3);
  match(one.got(ALICE).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
  await three.say(BOB, "not there");
  match(three.got(BOB).at(-1)!, /<not-acceptable /);
});

Deno.test("Arrivals.look() tells a session that has left nothing more of its seat", async () => {
  const [world, , three] = await withArrival();
  await using _ = world;
  await three.leave(BOB, "bard");
  three.got(BOB);
  world.dead.add(world.nodes[1]!);
  world.isLeaseOver = true;
  await world.look(12);
  doesNotMatch(three.got(BOB).join(""), /bard/);
});

Deno.test("Arrivals.left() ends the seat at the other node, where the session may log in again", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  const two = world.nodes[1]!;
  await three.leave(BOB, "bard");
  three.sessions.delete(BOB);
  two.sessions.add(BOB);
  three.isStoreDown = false;
  await world.look();
  world.clock.advance(60_000);
  await world.look();
  match(one.got(ALICE).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("Arrivals.left() ends the seat at the other node once a link that is cut just then heals", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  const two = world.nodes[1]!;
  world.cut.add("dc2.example.com dc3.example.com");
  await three.leave(BOB, "bard");
  three.sessions.delete(BOB);
  two.sessions.add(BOB); // it logs in there, and enters no room
  await world.look(12);
  world.cut.clear();
  await world.look(4);
  await one.say(ALICE, "alone");
  deepStrictEqual(two.texts(BOB), []);
});

Deno.test("Arrivals.left() ends the seat of a session that ends before its seat is taken over", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  two.sessions.delete(BOB);
  one.server.arrived(parseJid(BOB) as FullJid);
  const leave = buildStanza(
    element("presence", { from: BOB, to: `${COVEN}/bard`, type: "unavailable" }),
  );
  one.server.take(world.taken(leave));
  await world.settled();
  two.sessions.add(BOB);
  match(one.got(ALICE).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("Arrivals.left() ends no seat that a new login at the other node has taken", async () => {
  const [world, one, three] = await withArrival();
  await using _ = world;
  const two = world.nodes[1]!;
  world.held = [];
  await three.leave(BOB, "bard");
  three.sessions.delete(BOB);
  await two.enter(BOB, "bard");
  world.release();
  await world.look();
  await two.say(BOB, "there again");
  deepStrictEqual(one.texts(ALICE), ["there again"]);
});

Deno.test("Arrivals.take() needs no database where somebody of the node is in the room", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  one.isStoreDown = true;
  one.resume(BOB, two);
  await world.settled();
  await one.say(BOB, "moved");
  deepStrictEqual(one.texts(ALICE), ["moved"]);
});

Deno.test("Arrivals.look() asks the database for one seat while it is away", async () => {
  const seats = ["coven", "heath"].map((name) => ({ ...SEAT, room: `${name}@${SERVICE}` }));
  const tried: string[] = [];
  let isAway = true;
  const arrivals = new Arrivals({
    process: 1,
    clock: new ManualClock(),
    isHere: () => true,
    gone: { forgetBefore() {} },
    leftSeats: { note() {}, told: () => false },
    rooms: {
      // Nothing else of it is read.
      get: (room) => ({ jid: parseJid(room), seats: new RoomSeats() }) as unknown as LiveRoom,
      ofSession: () => seats,
      ownSeat: () => undefined,
      tellLost() {},
    },
    leaves: { joins: () => () => {} },
    entrance: {
      takeAgain() {},
      takeOver: (room) => {
        tried.push(room);
        return isAway ? Promise.reject(new Error("away")) : Promise.resolve(true);
      },
    },
    inTurn: (_room, step) => step().catch(() => {}),
  });
  const look = async () => {
    tried.length = 0;
    arrivals.look();
    await new Promise((resolve) => setTimeout(resolve));
    return tried.map((room) => room.slice(0, 5));
  };
  arrivals.take(parseJid(BOB) as FullJid);
  deepStrictEqual(await look(), ["coven"]);
  isAway = false;
  deepStrictEqual(await look(), ["coven", "heath"]);
  deepStrictEqual(await look(), []);
});

Deno.test("Arrivals.take() takes over the seat of a session that comes before the node has heard of it", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  three.resume(BOB, two);
  await world.look();
  await three.say(BOB, "moved");
  deepStrictEqual(one.texts(ALICE), ["moved"]);
});

/** A room of alice at dc1. dave at dc2 enters it and comes to dc3, which has not heard of his seat. */
async function withLateNews(): Promise<[MucWorld, MucNode, MucNode, MucNode]> {
  const [world, one, two] = await withRoom();
  const three = world.begin("dc3.example.com");
  await world.look(4);
  world.held = [];
  await two.enter(DAVE, "druid");
  three.resume(DAVE, two);
  await world.settled();
  return [world, one, two, three];
}

Deno.test("Arrivals.told() takes over the seat of a session that has outrun the news of it", async () => {
  const [world, one, , three] = await withLateNews();
  await using _ = world;
  world.release();
  await world.settled();
  await three.say(DAVE, "moved");
  deepStrictEqual(one.texts(ALICE), ["moved"]);
  world.clock.advance(60_000);
  await world.look();
  await one.say(ALICE, "still there");
  deepStrictEqual(three.texts(DAVE), ["moved", "still there"]);
});

Deno.test("Arrivals.told() takes over no seat that its session has left before the news of it came", async () => {
  const [world, one, , three] = await withLateNews();
  await using _ = world;
  await three.leave(DAVE, "druid");
  world.release();
  await world.settled();
  await three.say(DAVE, "not there");
  const got = one.got(ALICE).join("");
  match(got, new RegExp(`type='unavailable' from='${COVEN}/druid'`));
  doesNotMatch(got, /not there/);
});

Deno.test("Arrivals.told() leaves alone the seats of sessions that came long ago", async () => {
  const [world, one, , three] = await withLateNews();
  await using _ = world;
  await world.look(11);
  world.release();
  await world.settled();
  await three.say(DAVE, "not there");
  deepStrictEqual(one.texts(ALICE), []);
});
