import assert from "node:assert/strict";
import { ENABLE, ENABLED, R, resume } from "../xmpp/c2s/testing/stream_management_fixture.ts";
import {
  BOB,
  MOST_BYTES,
  ping,
  send,
  TEXT,
  turn,
  until,
  World,
} from "./testing/slow_archive_world.ts";

Deno.test("a client that floods a slow archive is not read, and others are", async () => {
  await using world = await World.open();
  const [alice, bob] = [await world.login("alice"), await world.login("bob")];
  const count = 2_000;
  await world.flood(alice, count);
  for (let i = 0; i < 10; i++) await ping(bob, BOB, `before-${i}`);
  const read = world.read.length;
  assert.ok(read < count / 2, `${read} of ${count} messages are read`);
  // Both archives have begun with what waits.
  assert.ok(world.budget.bytes <= 2 * MOST_BYTES, `${world.budget.bytes} bytes`);
  assert.ok(world.routed.router.queued <= MOST_BYTES / TEXT.length);
  for (let i = 0; i < 10; i++) await ping(bob, BOB, `after-${i}`);
  assert.equal(world.read.length, read, "nothing more is read");
  assert.deepEqual(world.ends.refused, []);
  world.becomesFast();
  await until(() => world.ends.arrived.length === count);
  const sent = Array.from({ length: count }, (_, i) => `${i + 1}`);
  assert.deepEqual([world.ends.arrived, world.ends.refused], [sent, []]);
  await until(() => world.archive.pending === 0);
  assert.deepEqual([world.budget.bytes, world.pressure.heldBack], [0, 0]);
});

Deno.test("a client that is not read for five seconds is answered, and read on", async () => {
  await using world = await World.open();
  const alice = await world.login("alice");
  const bob = await world.login("bob");
  await world.flood(alice, 1_000);
  await ping(bob, BOB, "before");
  const read = world.read.length;
  world.advance(4_750); // it has come when the store was late already
  await ping(bob, BOB, "after");
  assert.deepEqual([world.ends.refused, world.read.length], [[], read]);
  world.advance(250);
  await alice.expect("<resource-constraint");
  await until(() => world.read.length > read);
  await until(() => world.archive.waiting === 1 && world.pressure.heldBack === 1);
  const refused = world.ends.refused.length;
  assert.ok(refused > 0 && refused <= MOST_BYTES / TEXT.length, `${refused} are refused`);
  world.becomesFast();
  await until(() => world.ends.arrived.length + world.ends.refused.length === 1_000);
  assert.equal(new Set([...world.ends.arrived, ...world.ends.refused]).size, 1_000);
});

Deno.test("a session that ends while it is not read leaves nothing behind, and neither does its next one", async () => {
  await using world = await World.open();
  await world.login("bob");
  const first = await world.login("alice");
  await world.flood(first, 1_000);
  await until(() => world.read.length > 100);
  const second = await world.login("alice"); // the newer login takes the resource
  await first.expectClosed();
  send(second, "second");
  await until(() => world.read.at(-1) === "second");
  send(second, "third");
  for (let i = 0; i < 20; i++) await turn();
  assert.notEqual(world.read.at(-1), "third", "its sender's messages still wait");
  const read = world.read.slice();
  world.becomesFast();
  await until(() => world.read.at(-1) === "third");
  await until(() => world.ends.arrived.length === read.length + 1);
  assert.deepEqual(world.ends.arrived, [...read, "third"]);
  assert.equal(world.pressure.heldBack, 0);
});

Deno.test("a session that is resumed while it is not read is read when there is room", async () => {
  await using world = await World.open();
  await world.login("bob");
  const first = await world.login("alice");
  const [, id] = await first.exchange(ENABLE, ENABLED);
  await world.flood(first, 1_000);
  const second = await world.connect("alice");
  second.send(resume(id!, 0));
  const [, h] = await second.expect(/<resumed [^>]*h='(\d+)'/);
  await first.expectClosed();
  const read = world.read.length;
  send(second, "resumed");
  second.send(R);
  for (let i = 0; i < 20; i++) await turn();
  assert.equal(world.read.length, read);
  world.becomesFast();
  const [, all] = await second.expect(/<a xmlns='urn:xmpp:sm:3' h='(\d+)'\/>/);
  assert.ok(Number(all) >= Number(h));
  await until(() => world.ends.arrived.length === read + 1);
  assert.equal(world.ends.arrived.at(-1), "resumed");
});

Deno.test("a node that stops answers what waits for a slow archive after a second", async () => {
  await using world = await World.open();
  await world.login("bob");
  const alice = await world.login("alice");
  await world.flood(alice, 1_000);
  const queued = world.routed.router.queued;
  world.pressure.freeze();
  const drained = world.routed.router.drain();
  world.advance(750);
  for (let i = 0; i < 20; i++) await turn();
  assert.deepEqual(world.ends.refused, []);
  world.advance(250);
  await drained;
  assert.equal(world.ends.refused.length, queued + 1);
  await alice.expect("<resource-constraint");
  assert.equal(world.ends.arrived.length + world.ends.refused.length, world.read.length);
  assert.equal(world.pressure.heldBack, 0);
});
