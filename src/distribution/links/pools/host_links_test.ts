import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { parseJid } from "../../../xmpp/mod.ts";
import type { Fate } from "../../../xmpp/mod.ts";
import type { ReturnReason } from "../../mod.ts";
import { decodeStanza } from "../../wire/mod.ts";
import { testEnvelope, TestSettler } from "../testing/kit.ts";
import { CALL_EVERY_MS, CALLS_AT_ONCE } from "../connection/call_pace.ts";
import type { Lane } from "../lanes/lane.ts";
import {
  ALICE,
  BOB,
  COLLECT_MS,
  DC2,
  EXPIRE_MS,
  FAR_MS,
  PEER,
  REHOME_MS,
  REROUTE_MS,
  World,
} from "./testing/world.ts";

const DC3 = "dc3.example.com";
const CAROL = "carol@example.com/c";
const HELLO_MS = 5 * REROUTE_MS;

/**
 * Returns the stanzas of a lane not reported as received, in order; `?` marks a possible repeat.
 */
function held(lane: Lane): readonly string[] {
  return [...lane.unreceived()].map(({ slab, start, end }) => {
    const { sequence, mayBeRepeat } = decodeStanza(slab.bytes, start, end);
    return `${sequence}${mayBeRepeat ? "?" : ""}`;
  });
}

function numbered(reason: ReturnReason, ...sequences: readonly (number | string)[]): string[] {
  return sequences.map((sequence) => `${sequence} ${reason}`);
}

Deno.test("HostLinks.send() parks up to a lane's stanzas without an endpoint, and moves them to the first one", async () => {
  using world = new World({ options: { laneMaxItems: 3 } });
  for (const sequence of [1, 2, 3, 4]) world.send(sequence);
  assert.deepEqual(world.returned(), ["4 full"]);
  assert.equal(world.metrics.value(`outgoing_returned_total ${DC2}`), 1);
  assert.deepEqual([world.hosts.parkedItems, world.hosts.items], [3, 3]);
  await world.list(0);
  assert.deepEqual(held(world.lane(0)), ["1", "2", "3"], "no stanza was sent before");
  assert.deepEqual([world.hosts.parkedItems, world.hosts.items], [0, 3]);
});

Deno.test("HostLinks.send() keeps a sender on a lane that holds stanzas of that sender, live or not", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  world.send(1);
  world.up(1);
  world.down(0);
  world.send(2);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1", "2"], []]);
  world.up(0);
  world.write(0, 2, 2, 2);
  world.send(3);
  assert.deepEqual(held(world.lane(0)), ["3"], "the lane is live: no reason to move");
  world.write(0, 1, 3, 3);
  world.down(0);
  world.send(4);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["4"]]);
});

Deno.test("HostLinks.send() keeps carbons on the lane of the session that they tell of", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0, 1);
  world.send(1);
  const first = [0, 1].find((which) => held(world.lane(which)).length > 0)!;
  const carbon = testEnvelope(2, { from: "alice@example.com", to: "alice@example.com" });
  carbon.boundAs = ALICE;
  world.hosts.send(carbon);
  world.send(3);
  assert.deepEqual(held(world.lane(first)), ["1", "2", "3"]);
  assert.equal(
    world.hosts.bringCarbon(parseJid(ALICE), testEnvelope(3)),
    false,
    "no peer is known",
  );
  assert.equal(world.hosts.bringCarbon(parseJid(CAROL), testEnvelope(3)), false, "no lane");
});

Deno.test("HostLinks.send() moves a sender off an unlisted endpoint once the lane holds none of its stanzas", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  await world.list(1);
  world.up(1);
  world.send(2);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1", "2"], []]);
  world.write(0, 2, 2, 2);
  world.send(3);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["3"]]);
  assert.equal(world.hosts.senders, 1);
});

Deno.test("HostLinks forgets a sender that is idle for bindingIdleMs and has no stanza here", async () => {
  using world = new World({ options: { bindingIdleMs: 2_000, tickMs: 1_000 } });
  await world.list(0);
  world.up(0);
  world.send(1);
  world.send(2, { from: CAROL });
  world.write(0, 2, 2, 1);
  world.tick(1_000);
  assert.equal(world.hosts.senders, 2);
  world.tick(1_000);
  assert.equal(world.hosts.senders, 1);
});

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

Deno.test("HostLinks reports at its next link that the destination has missed presence, once", async () => {
  using world = new World({ options: { laneMaxItems: 4 } });
  await world.list(0);
  world.up(0);
  world.send(1, { kind: "presence" });
  world.down(0);
  world.up(0);
  world.write(0, 1, 1, 1);
  world.down(0);
  for (let i = 2; i <= 5; i++) world.send(i);
  world.send(6);
  assert.deepEqual(world.returned(), ["6 full"]);
  world.up(0);
  world.write(0, 4, 5, 5);
  world.tick();
  assert.equal(world.missedPresence, 0, "the presence arrived, and a message is answered");
  world.down(0);
  world.send(7, { kind: "presence" });
  world.tick(EXPIRE_MS);
  assert.deepEqual(world.returned(), ["7 expired"]);
  world.tick();
  assert.equal(world.missedPresence, 0);
  world.up(0);
  world.down(0);
  world.up(0);
  assert.equal(world.missedPresence, 1);
  assert.deepEqual(world.lostPresence, [7]);
});

Deno.test("HostLinks reports missed presence of a linked destination once there is room, and no sooner again than expireAfterMs later", async () => {
  using world = new World({ options: { laneMaxItems: 4 } });
  await world.list(0);
  world.up(0);
  let last = 0;
  const fill = () => {
    for (let i = 0; i < 5; i++) world.send(++last, { kind: "presence" });
    assert.deepEqual(world.returned(), [`${last} full`]);
  };
  const drain = () => {
    const { waiting, last } = world.lane(0);
    world.write(0, waiting, last, last);
  };
  fill();
  world.tick();
  assert.equal(world.missedPresence, 0, "what it would be told had no room either");
  drain();
  world.tick();
  assert.equal(world.missedPresence, 1);
  fill();
  drain();
  world.tick(EXPIRE_MS - 1);
  assert.equal(world.missedPresence, 1);
  world.tick(1);
  world.tick();
  assert.equal(world.missedPresence, 2);
  assert.deepEqual(world.lostPresence, [5, 10]);
});

Deno.test("HostLinks says how long its destination was without a link, as the first one opens", async () => {
  using world = new World();
  await world.list(0, 1);
  world.tick(10);
  world.up(0, 1);
  world.tick(1_000);
  world.down(0);
  world.tick(1_000);
  world.up(0);
  assert.deepEqual(world.away, [10], "one was linked all the time");
  world.down(0);
  world.tick(1_000);
  world.down(1);
  world.tick(2_000);
  world.down(0); // another attempt fails
  world.tick(3_000);
  world.up(1, 0);
  assert.deepEqual(world.away, [10, 5_000]);
});

Deno.test("HostLinks expires stanzas that have waited for a first endpoint", () => {
  using world = new World({ options: { rerouteFirstMs: FAR_MS } });
  world.tick(EXPIRE_MS);
  world.send(1);
  world.tick(EXPIRE_MS - 1);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), ["1 expired"]);
});

Deno.test("HostLinks reads the endpoints again soon while none is linked, and when a link has ended", async () => {
  using world = new World({
    options: { endpointRefreshIntervalMs: 1_000, endpointRefreshIntervalWhenEmptyMs: 100 },
  });
  await world.list(0);
  const looksAfter = async (delayMs: number) => {
    const { asked } = world;
    world.clock.advance(delayMs - 1);
    assert.equal(world.asked, asked);
    world.clock.advance(1);
    assert.equal(world.asked, asked + 1);
    await immediately(); // the list is applied
  };
  await looksAfter(100);
  world.up(0);
  await looksAfter(100); // the usual interval
  await looksAfter(1_000);
  world.down(0);
  await looksAfter(100);
});

Deno.test("HostLinks gives waiting stanzas their full time again when there is new hope", async () => {
  using world = new World({ options: { rerouteFirstMs: FAR_MS } });
  world.send(1);
  world.tick(EXPIRE_MS - 1);
  await world.list(0);
  world.tick(1);
  await world.list(0, 1); // no new hope: one was listed before
  world.tick(EXPIRE_MS - 2);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), ["1 expired"]);
});

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

Deno.test("HostLinks.watchHeld() watches the stanzas that lanes hold, and no later ones", async () => {
  using world = new World();
  assert.equal(world.hosts.watchHeld()(), "gone");
  world.send(1);
  const parked = world.hosts.watchHeld();
  assert.equal(parked(), "open", "the stanza waits for an endpoint");
  await world.list(0);
  world.up(0);
  assert.equal(parked(), "open", "the stanza has moved to a lane");
  world.send(2);
  const held = world.hosts.watchHeld();
  world.send(3);
  world.write(0, 3, 1);
  assert.equal(parked(), "received");
  assert.equal(held(), "open");
  world.write(0, 0, 2);
  assert.equal(held(), "received", "the third stanza is a later one");
  world.down(0);
  assert.equal(held(), "open", "the peer may have ended");
  world.up(0);
  world.write(0, 0, 2, 2);
  assert.deepEqual([parked(), held(), world.hosts.items], ["gone", "gone", 1]);
});

Deno.test("HostLinks.watchHeld() counts returned stanzas as gone, and follows those that change lanes", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  let times = 0;
  const moved = world.hosts.watchHeld(() => times++);
  assert.deepEqual([moved(), times], ["open", 0]);
  world.down(0);
  world.up(1);
  await world.list(1);
  assert.equal(world.hosts.items, 2);
  assert.deepEqual([moved(), moved(), times], ["open", "open", 1]);
  world.write(1, 2, 2, 2);
  assert.equal(moved(), "gone");
  world.send(3);
  const returned = world.hosts.watchHeld();
  world.hosts.giveBackAll("expired");
  assert.equal(returned(), "gone");
});

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

Deno.test("HostLinks.peerArrived() refreshes and connects at once, unless a node is linked or it has stopped", async () => {
  using world = new World();
  await world.list(0);
  world.hosts.peerArrived(PEER);
  assert.deepEqual([world.asked, world.link(0).phase], [2, "dialling"]);
  await immediately();
  world.up(0);
  world.hosts.peerArrived(PEER);
  assert.equal(world.asked, 2);
  world.down(0);
  world.hosts.stop("leaving", "it ends");
  world.hosts.peerArrived(PEER);
  assert.deepEqual([world.asked, world.link(0).phase], [2, "stopped"]);
});

Deno.test("HostLinks.peerArrived() calls at once only once within reconnectMaxMs", async () => {
  using world = new World();
  await world.list(0);
  world.hosts.peerArrived(PEER);
  await immediately();
  for (const [afterMs, isCalled] of [[0, false], [FAR_MS - 1, false], [1, true]] as const) {
    world.clock.advance(afterMs);
    await immediately();
    const asked = world.asked;
    world.hosts.peerArrived(PEER);
    assert.equal(world.asked > asked, isCalled);
    await immediately();
  }
});

Deno.test("HostLinks.peerArrived() calls each new process of our own datacenter at once", async () => {
  using world = new World({ scope: "datacenter" });
  await world.list(0);
  world.up(0);
  world.hosts.peerArrived(PEER);
  assert.equal(world.asked, 1, "it is linked");
  world.down(0, true);
  assert.equal(world.hosts.isGone, true);
  for (const [process, asked] of [[PEER + 1, 2], [PEER + 1, 2], [PEER + 2, 3]] as const) {
    world.hosts.peerArrived(process);
    await immediately();
    assert.equal(world.asked, asked);
  }
});

Deno.test("HostLinks keeps stanzas for a new process that is about to be reached, for a while", async () => {
  using world = new World({ scope: "datacenter", options: { helloTimeoutMs: HELLO_MS } });
  await world.list(0);
  world.up(0);
  world.down(0, true);
  world.hosts.peerArrived(PEER + 1);
  await immediately();
  assert.equal(world.hosts.isGone, false);
  world.send(1);
  for (let ms = 0; ms < HELLO_MS - REROUTE_MS; ms += REROUTE_MS) world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), []);
  for (let ms = 0; ms < 3 * REROUTE_MS; ms += REROUTE_MS) world.tick(REROUTE_MS);
  assert.equal(world.hosts.isGone, true);
  assert.deepEqual(world.returned(), ["1 peer-restarted"]);
});

Deno.test("HostLinks calls many endpoints one after the other", async () => {
  using world = new World();
  const many = Array.from({ length: 3 * CALLS_AT_ONCE }, (_, which) => which);
  await world.list(...many);
  world.clock.advance(1_000); // all have been called
  await immediately();
  world.hosts.peerArrived(PEER);
  const called = () => many.filter((which) => world.link(which).phase === "dialling").length;
  assert.equal(called(), CALLS_AT_ONCE);
  await immediately();
  world.clock.advance(CALL_EVERY_MS);
  assert.equal(called(), 1);
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
