import assert from "node:assert/strict";
import { envelopeOf, HOME, idOf } from "./testing/nodes.ts";
import {
  RECORDS,
  REQUEST,
  SESSION,
  stanza,
  TakingWorld,
  TRANSFER,
} from "./testing/taking_world.ts";

Deno.test("Taking counts the session's stanzas as delivered here once it has its place", async () => {
  using world = new TakingWorld();
  const numbers = { process: 9, highest: 1, recent: [1] };
  world.taking.begin();
  world.taking.session(SESSION);
  world.taking.details([
    { kind: "directed", jid: "carol@example.com/x" },
    { kind: "delivered", sender: "bob@example.com/x", ...numbers },
    { kind: "delivered-to-account", sender: "dan@example.com/x", ...numbers },
  ]);
  world.queue({ 1: stanza(1) });
  world.taking.given();
  await world.news();
  world.queue({ 2: stanza(2) }); // before it has its place
  assert.deepEqual(await world.news(), ["HAVE more 2/0"]);
  assert.ok(world.arrival?.kind === "arrived");
  assert.deepEqual(world.arrival.session.queue.map(({ stanza }) => idOf(stanza)), ["m1"]);
  world.place(world.arrival.session);
  assert.deepEqual(world.done.splice(0), [
    `learn ${HOME} bob@example.com/x`,
    `learn transfer ${TRANSFER} had dan@example.com/x`,
    "note 1",
    "note 2",
    "follow m2",
  ], "TAKEN comes after frames that our lanes have queued before");
  assert.deepEqual(await world.news(), ["HAVE taken 2/0"]);
  world.queue({ 3: stanza(3) });
  assert.deepEqual(await world.news(), ["note 3", "follow m3", "HAVE taken 3/0"]);
});

Deno.test("Taking gives the session nothing a second time that comes from its old node twice", async () => {
  using world = new TakingWorld();
  await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.queue({ 3: { ...stanza(1), isRerouted: true }, 4: stanza(4) });
  assert.deepEqual(world.followed.map(({ stanza }) => idOf(stanza)), ["m1", "m4"]);
  assert.deepEqual(world.hadCome, [true, false]);
});

Deno.test("Taking knows a rerouted message to the account by its number alone, if that is exact", async () => {
  using world = new TakingWorld();
  const { hasFollowed } = await world.taken();
  const envelopes = [1, 2, 3, 4].map((sequence) =>
    envelopeOf(`m${sequence}`, sequence, undefined, REQUEST.account)
  );
  world.known.add(`1 transfer ${TRANSFER} had`);
  world.known.add(`2 transfer ${TRANSFER} may have had`); // an older node has told so
  world.guessed.add(`3 transfer ${TRANSFER} had`);
  assert.deepEqual(envelopes.map(hasFollowed), [true, true, true, false]);
  for (const each of envelopes) each.isRerouted = true;
  assert.deepEqual(envelopes.map(hasFollowed), [true, false, false, false]);
});

Deno.test("Taking takes what an older node tells of the account for less than exact", async () => {
  using world = new TakingWorld();
  world.taking.begin();
  world.taking.session({ ...SESSION, isExact: false });
  const numbers = { sender: "dan@example.com/x", process: 9, highest: 1, recent: [1] };
  world.taking.details([{ kind: "delivered-to-account", ...numbers }]);
  world.queue({});
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  world.place(world.arrival.session);
  assert.deepEqual(world.done.splice(0), [
    `learn transfer ${TRANSFER} may have had dan@example.com/x`,
  ]);
});

Deno.test("Taking declines a session without a place, and none of its stanzas count as delivered", async () => {
  using world = new TakingWorld();
  const session = await world.arrived({ 1: stanza(1) });
  session.declined();
  assert.deepEqual(await world.news(), ["HAVE decline 1/0", "over"]);
  assert.equal(world.failures("no-place"), 1);
  assert.deepEqual(world.forgotten, RECORDS);
});

Deno.test("Taking forgets what a session has had when that is over here, and notes nothing more", async () => {
  using world = new TakingWorld();
  const { over } = await world.taken({ 1: stanza(1) });
  world.taking.ended({
    transfer: TRANSFER,
    reason: "done",
    h: undefined,
    sentCount: 0,
    process: 0,
  });
  assert.deepEqual(world.forgotten, [], "the session is here");
  over();
  assert.deepEqual(world.forgotten, RECORDS);
});

Deno.test("Taking notes nothing for a session that is over here, though more follows", async () => {
  using world = new TakingWorld();
  const { over } = await world.taken();
  over();
  world.queue({ 1: stanza(1) });
  assert.deepEqual(world.followed.map(({ stanza }) => idOf(stanza)), ["m1"]);
  assert.equal(world.known.size, 0);
});

Deno.test("Taking ignores stanzas that come again over another link", async () => {
  using world = new TakingWorld();
  await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.queue({ 1: stanza(1), 2: stanza(2), 3: stanza(3) });
  assert.deepEqual(await world.news(), ["note 3", "follow m3", "HAVE taken 3/0"]);
});
