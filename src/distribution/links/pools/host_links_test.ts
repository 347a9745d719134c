import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { parseJid } from "../../../xmpp/mod.ts";
import { testEnvelope } from "../testing/kit.ts";
import { CALL_EVERY_MS, CALLS_AT_ONCE } from "../connection/call_pace.ts";
import {
  ALICE,
  CAROL,
  DC2,
  EXPIRE_MS,
  FAR_MS,
  held,
  PEER,
  REROUTE_MS,
  World,
} from "./testing/world.ts";

/** Milliseconds for which a link that opens may wait for its peer. */
const HELLO_MS = 5 * REROUTE_MS;

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
