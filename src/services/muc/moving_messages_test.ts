import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { ALICE, BOB, CAROL, COVEN, field, MucWorld } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

const HOSTS = ["dc1.example.com", "dc2.example.com", "dc3.example.com"];

/** Three datacenters, and a room with alice and bob at dc1 and carol at dc3. */
async function withOccupants(): Promise<[MucWorld, MucNode, MucNode, MucNode]> {
  const world = await MucWorld.open(HOSTS);
  const [one, two, three] = world.nodes as [MucNode, MucNode, MucNode];
  await one.make(ALICE, "witch", field("muc#roomconfig_persistentroom", "1"));
  await one.enter(BOB, "bard");
  await three.enter(CAROL, "crone");
  await world.look();
  for (const node of world.nodes) for (const jid of [ALICE, BOB, CAROL]) node.got(jid);
  return [world, one, two, three];
}

Deno.test("a message that the old node gives a session which has moved comes once", async () => {
  const [world, one, two] = await withOccupants();
  await using _ = world;
  world.slow.set("2 1", []);
  two.resume(BOB, one);
  await world.settled();
  await one.say(ALICE, "before dc1 hears of the move");
  await world.look();
  world.speedUp("2 1");
  await world.settled();
  await one.say(ALICE, "after it");
  await world.look(12);
  deepStrictEqual(two.texts(BOB), ["before dc1 hears of the move", "after it"]);
});

Deno.test("a message that the old node of a session has not got before the move comes", async () => {
  const [world, one, two, three] = await withOccupants();
  await using _ = world;
  world.slow.set("3 1", []);
  await three.say(CAROL, "slow to dc1");
  two.resume(BOB, one);
  await world.settled();
  world.speedUp("3 1");
  await three.say(CAROL, "later");
  await world.look(12);
  deepStrictEqual(two.texts(BOB), ["slow to dc1", "later"]);
});

Deno.test("messages wait no longer than three seconds for the old node of a session", async () => {
  const [world, one, two, three] = await withOccupants();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  two.resume(BOB, one);
  await world.settled();
  await three.say(CAROL, "while the old node is cut off");
  await world.look(2);
  deepStrictEqual(two.texts(BOB), []);
  await world.look(1);
  deepStrictEqual(two.texts(BOB), ["while the old node is cut off"]);
});

Deno.test("messages wait no longer for the old node of a session once there are many", async () => {
  const [world, one, two, three] = await withOccupants();
  await using _ = world;
  world.cut.add("dc1.example.com dc2.example.com");
  two.resume(BOB, one);
  await world.settled();
  const texts = Array.from({ length: 201 }, (_, i) => `${i}`);
  for (const text of texts.slice(0, 199)) await three.say(CAROL, text);
  await world.settled();
  deepStrictEqual(two.texts(BOB), []);
  for (const text of texts.slice(199)) await three.say(CAROL, text);
  await world.settled();
  deepStrictEqual(two.texts(BOB), texts);
});

Deno.test("a session that moves on takes along the messages that wait for its old node", async () => {
  const [world, one, two, three] = await withOccupants();
  await using _ = world;
  world.slow.set("2 1", []);
  world.slow.set("3 1", []);
  two.resume(BOB, one);
  await world.settled();
  await three.say(CAROL, "slow to dc1");
  three.resume(BOB, two);
  await world.look(5);
  deepStrictEqual(three.texts(BOB), ["slow to dc1"]);
});

/** Sessions in the room. Only the second one moves. */
const SESSIONS = [ALICE, BOB, CAROL];
/** Milliseconds that each event takes. */
const EVENT_MS = 40;

/** Something that happens. Sessions and nodes are given by their places in the lists. */
type Event =
  | { readonly kind: "say"; readonly session: number }
  | { readonly kind: "move"; readonly to: number }
  | { readonly kind: "slow" | "fast"; readonly from: number; readonly to: number };

const NODE = fc.nat(HOSTS.length - 1);
const EVENT = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("say"), session: NODE }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("move"), to: NODE }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("slow", "fast"), from: NODE, to: NODE }),
  },
) as fc.Arbitrary<Event>;

/** Plays events, and returns what each session got of the messages that the room has taken. */
async function play(events: readonly Event[]): Promise<[string[], (readonly string[])[]]> {
  const [world] = await withOccupants();
  await using _ = world;
  const places = [0, 0, 2];
  const taken: string[] = [];
  const got: string[][] = [[], [], []];
  const read = () => {
    for (const [i, jid] of SESSIONS.entries()) {
      for (const node of world.nodes) got[i]!.push(...node.texts(jid));
    }
  };
  let hasMoved = false;
  for (const event of events) {
    if (event.kind === "say") {
      const node = world.nodes[places[event.session]!]!;
      const before = (await world.store.messages(COVEN, { limit: 1 })).at(-1)?.number;
      const text = `${taken.length + 1}`;
      await node.say(SESSIONS[event.session]!, text);
      const after = (await world.store.messages(COVEN, { limit: 1 })).at(-1)?.number;
      if (before !== after) taken.push(text);
    } else if (event.kind === "move") {
      const [from, to] = [world.nodes[places[1]!]!, world.nodes[event.to]!];
      // A message may come twice to a session that moves on before all have heard of the last move.
      if (from === to || hasMoved && world.slow.size > 0) continue;
      hasMoved = true;
      to.resume(BOB, from);
      places[1] = event.to;
    } else {
      const link = `${event.from + 1} ${event.to + 1}`;
      if (event.kind === "fast") world.speedUp(link);
      else if (!world.slow.has(link)) world.slow.set(link, []);
    }
    await world.settled();
    read();
    world.clock.advance(EVENT_MS);
  }
  for (const link of [...world.slow.keys()]) world.speedUp(link);
  await world.look(15);
  read();
  return [taken, got];
}

Deno.test("each message comes once to sessions in the room, one of which moves", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 20, maxLength: 40 }), async (events) => {
      const [taken, [alice, bob, carol]] = await play(events);
      deepStrictEqual([alice, carol], [taken, taken]);
      deepStrictEqual(bob?.toSorted(), taken.toSorted());
    }),
    randomRuns(20),
  );
});
