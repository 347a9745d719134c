import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { LeftSeats } from "./left_seats.ts";
import type { LiveRoom } from "./live_rooms.ts";
import type { News } from "./news.ts";
import { RoomSeats } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import { ALICE, BOB, COVEN, SEAT, withRoom } from "./testing/muc_world.ts";
import type { MucNode, MucWorld } from "./testing/muc_world.ts";

const CUT = "dc2.example.com dc3.example.com";

/** A room of alice at dc1. bob leaves it at dc2 and comes to dc3, whose news are still on their way. */
async function withMove(): Promise<[MucWorld, MucNode, MucNode]> {
  const [world, one, two] = await withRoom();
  const three = world.begin("dc3.example.com");
  await world.look(4);
  world.held = [];
  await two.leave(BOB, "bard");
  three.resume(BOB, two);
  await world.settled();
  return [world, one, three];
}

/** Lets the link heal after a while, and returns what bob gets of a message. */
async function afterHealing(world: MucWorld, one: MucNode, three: MucNode) {
  await world.look(12);
  world.cut.clear();
  await world.look(6);
  await one.say(ALICE, "alone");
  return three.texts(BOB);
}

Deno.test("LeftSeats.told() ends a seat that another node took over before it heard that its session had left", async () => {
  const [world, one, three] = await withMove();
  await using _ = world;
  world.release();
  await world.settled();
  await one.say(ALICE, "alone");
  deepStrictEqual(three.texts(BOB), []);
  match(one.got(ALICE).join(""), new RegExp(`type='unavailable' from='${COVEN}/bard'`));
});

Deno.test("LeftSeats.told() ends such a seat when its news come after a link has healed", async () => {
  const [world, one, two] = await withRoom();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  await world.look(4);
  world.held = [];
  await two.leave(BOB, "bard");
  world.cut.add(CUT);
  three.resume(BOB, two);
  await world.settled();
  world.release();
  await world.settled();
  deepStrictEqual(await afterHealing(world, one, three), []);
});

Deno.test("LeftSeats.look() ends such a seat when the link was cut as the other node was told", async () => {
  const [world, one, three] = await withMove();
  await using _ = world;
  world.cut.add(CUT);
  world.release();
  await world.settled();
  deepStrictEqual(await afterHealing(world, one, three), []);
});

Deno.test("LeftSeats.told() leaves a seat alone that its session has taken at another node anew", async () => {
  for (const laterMs of [0, 1_000]) {
    const [world, one, two] = await withRoom();
    await using _ = world;
    world.held = [];
    await two.leave(BOB, "bard");
    two.sessions.delete(BOB);
    world.clock.advance(laterMs);
    one.sessions.add(BOB);
    await one.enter(BOB, "bard");
    world.release();
    await world.settled();
    one.got(BOB);
    await one.say(ALICE, "here again");
    deepStrictEqual(one.texts(BOB), ["here again"]);
  }
});

Deno.test("LeftSeats.look() forgets a seat once all seats have been known for a while", () => {
  const seats = new RoomSeats();
  const peers = { isWhole: false, tell: (news: News) => void told.push(news.kind) };
  const told: string[] = [];
  const left = new LeftSeats({ process: 1, rooms: { get: () => ({ seats }) as LiveRoom }, peers });
  const takenOver: Seat = { ...SEAT, joinedMs: SEAT.joinedMs + 1, process: 2 };
  const look = (times: number) => {
    for (let i = 0; i < times; i++) left.look();
    left.told(takenOver);
    return told.splice(0).length;
  };
  left.note(SEAT);
  strictEqual(look(100), 1, "the other node may not be heard");
  peers.isWhole = true;
  strictEqual(look(9), 1);
  seats.put(takenOver);
  strictEqual(look(20), 21, "the other node still has the seat");
  seats.remove(SEAT.jid);
  strictEqual(look(10), 0);
});

Deno.test("LeftSeats.note() remembers the newest ten thousand seats", () => {
  let told = 0;
  const left = new LeftSeats({
    process: 1,
    rooms: { get: () => undefined },
    peers: { isWhole: false, tell: () => void told++ },
  });
  const of = (number: number): Seat => ({ ...SEAT, jid: `alice@example.com/${number}` });
  for (let number = 0; number <= 10_000; number++) left.note(of(number));
  for (const number of [0, 1, 10_000]) left.told(of(number));
  strictEqual(told, 2);
});
