import assert from "node:assert/strict";
import type { Freezing, Unfreezing } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import { envelopeOf, HOME } from "./testing/nodes.ts";
import {
  COVER_MS,
  GRACE_MS,
  KNOWN_CHECK_MS,
  KNOWN_MS,
  WINDOW_BYTES,
} from "./resumption_options.ts";
import { GivingWorld, NEW, REQUEST, TIMEOUT_MS, TRANSFER } from "./testing/giving_world.ts";

const SENT = [
  `SESSION ${HOME} 5/4/3`,
  "DETAILS directed",
  "QUEUE [1,2] end",
];

Deno.test("Giving.begin() tells the taker why it gets no session, and ends", async () => {
  const cases: readonly (readonly [Freezing, string])[] = [
    [{ kind: "unknown" }, "END unknown h=undefined sent=0 process=0"],
    [{ kind: "other-account" }, "END other-account h=undefined sent=0 process=0"],
    [{ kind: "stale", h: 12 }, "END stale h=12 sent=0 process=0"],
    [
      { kind: "handled-too-high", sentCount: 9 },
      "END handled-too-high h=undefined sent=9 process=0",
    ],
    [{ kind: "moved", process: 33 }, "END moved h=undefined sent=0 process=33"],
  ];
  for (const [freezing, end] of cases) {
    await using world = new GivingWorld({ freezing });
    world.begin();
    assert.deepEqual(await world.news(), [end, "over"]);
    assert.equal(world.asked("refused"), 1);
    world.have("commit");
    assert.deepEqual(await world.news(), [], "later frames are ignored");
  }
});

Deno.test("Giving.begin() sends a session at once when its client's stanzas are settled", async () => {
  await using world = new GivingWorld();
  world.begin();
  assert.deepEqual(await world.news(), SENT);
});

Deno.test("Giving waits for the client's stanzas to be settled, for COVER_MS at most", async () => {
  for (const isInTime of [true, false]) {
    await using world = new GivingWorld({ isCovered: false });
    world.begin();
    world.clock.advance(COVER_MS - 1);
    assert.deepEqual(await world.news(), []);
    if (isInTime) world.giving.covered();
    else world.clock.advance(1);
    assert.deepEqual(await world.news(), SENT);
    world.clock.advance(1);
    assert.deepEqual(await world.news(), [], "it is sent once");
  }
});

Deno.test("Giving gives a session only on commit", async () => {
  await using world = new GivingWorld();
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.deepEqual(await world.news(), [
    "look",
    "follows dc2.example.com",
    `give ${NEW}`,
    `GIVEN ${TRANSFER}`,
  ]);
  assert.equal(world.giving.isGiven, true);
  assert.deepEqual(world.forgotten, [1, 2], "the stanzas were not delivered here");
  world.clock.advance(TIMEOUT_MS);
  assert.deepEqual(await world.news(), [], "a given session is not taken back");
});

Deno.test("Giving gives a session even if the table fails", async () => {
  await using world = new GivingWorld();
  world.session.isGone = new Error("Redis is away");
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.ok((await world.news()).includes(`give ${NEW}`));
});

Deno.test("Giving ends the transfer when a client has logged in elsewhere with the resource", async () => {
  await using world = new GivingWorld();
  world.session.isGone = true;
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.deepEqual(await world.news(), [
    "look",
    "thaw",
    "END ended h=undefined sent=0 process=0",
    "over",
  ]);
  assert.equal(world.giving.isGiven, false);
});

Deno.test("Giving tells the taker when a newer claim has the session, and when it has ended", async () => {
  for (const reason of ["superseded", "ended"] satisfies Unfreezing[]) {
    await using world = new GivingWorld();
    world.begin();
    await world.news();
    world.giving.ended(reason);
    const end = `END ${reason} h=undefined sent=0 process=0`;
    assert.deepEqual(await world.news(), [end, "over"], "and does not thaw another's session");
    assert.equal(world.asked("ended"), reason === "ended" ? 1 : 0);
    world.have("commit", 2);
    assert.deepEqual(await world.news(), []);
  }
});

Deno.test("Giving takes a session back after timeoutMs without a commit, and not a millisecond before", async () => {
  await using world = new GivingWorld();
  world.begin();
  await world.news();
  world.clock.advance(TIMEOUT_MS - 1);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["thaw", "END late h=undefined sent=0 process=0", "over"]);
  assert.equal(world.asked("taken-back"), 1);
});

Deno.test("Giving takes a session back when its taker declines, or cannot be reached before it is given", async () => {
  for (const what of ["decline", "lost", "stop"] as const) {
    await using world = new GivingWorld();
    world.begin();
    await world.news();
    if (what === "decline") world.have("decline");
    else world.giving[what]();
    assert.deepEqual(await world.news(), ["thaw", "over"], what);
    assert.equal(world.asked("taken-back"), 1);
  }
});

Deno.test("Giving ignores a check that ends after the session was taken back", async () => {
  await using world = new GivingWorld();
  world.begin();
  await world.news();
  world.have("commit", 2);
  world.giving.lost(); // before the check ends
  assert.deepEqual(await world.news(), ["look", "thaw", "over"]);
});

Deno.test("Giving stays reachable until the table knows the new place, and GRACE_MS longer", async () => {
  await using world = new GivingWorld();
  await world.taken();
  assert.deepEqual(await world.news(), ["look"]);
  assert.equal(world.asked("taken"), 1);
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["look"]);
  world.session.isGone = true;
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["look"]);
  world.clock.advance(GRACE_MS - 1);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving waits KNOWN_MS at most for the table to know the new place", async () => {
  await using world = new GivingWorld();
  await world.taken();
  await world.news();
  for (let waited = KNOWN_CHECK_MS; waited < KNOWN_MS; waited += KNOWN_CHECK_MS) {
    world.clock.advance(KNOWN_CHECK_MS);
    assert.deepEqual(await world.news(), ["look"]);
  }
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving does not wait for the table when the taker is of its own datacenter", async () => {
  await using world = new GivingWorld({ takerHost: "dc1.example.com" });
  await world.taken();
  assert.deepEqual(await world.news(), []);
  world.clock.advance(GRACE_MS);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving leaves at once when it is displaced and can keep nothing more, else after GRACE_MS", async () => {
  for (const isFull of [true, false]) {
    await using world = new GivingWorld();
    world.begin();
    await world.news();
    world.have("commit", 2);
    await world.news();
    world.session.isFull = isFull;
    world.giving.ended("superseded");
    const left = ["follows nobody", "leave"];
    assert.deepEqual(await world.news(), isFull ? left : []);
    world.clock.advance(GRACE_MS);
    assert.deepEqual(await world.news(), isFull ? [] : left);
  }
});

Deno.test("Giving is over when it has left and the taker has settled everything", async () => {
  await using world = new GivingWorld({ takerHost: "dc1.example.com" });
  await world.taken();
  world.have("more", 2, 1);
  assert.deepEqual(await world.news(), ["settle 1"]);
  world.clock.advance(GRACE_MS);
  await world.news();
  world.have("more", 2, 1);
  assert.deepEqual(await world.news(), [
    "settle 1",
    "follows nobody",
    "END done h=undefined sent=0 process=0",
    "over",
    "give back, as repeats up to 0",
  ]);
  assert.equal(world.asked("given-back"), 0, "no stanza is left to route");
});

Deno.test("Giving ignores settled stanzas of a session that is not given yet", async () => {
  await using world = new GivingWorld();
  world.begin();
  await world.news();
  world.have("more", 2, 2);
  assert.ok(!(await world.news()).some((each) => each.startsWith("settle")));
});

Deno.test("Giving routes its stanzas again when the taker is gone, as repeats when that is not certain", async () => {
  for (const isCertain of [true, false]) {
    await using world = new GivingWorld();
    await world.taken();
    await world.news();
    world.giving.lost();
    world.clock.advance(1_000);
    assert.equal(world.giving.lostAtMs, world.clock.monotonicMs() - 1_000);
    world.giving.peerGone(isCertain);
    const news = (await world.news()).filter((each) => each !== "look");
    const back = `give back, as repeats up to ${isCertain ? 0 : 2}`;
    assert.deepEqual(news, ["follows nobody", "leave", "over", back]);
    assert.equal(world.asked("given-back"), 1);
  }
});

Deno.test("Giving.linked() sends unconfirmed stanzas again over the new link, and GIVEN", async () => {
  await using world = new GivingWorld();
  world.begin();
  await world.news();
  world.have("commit", 1);
  await world.news();
  world.giving.lost();
  world.giving.linked(world.link("again "));
  assert.equal(world.giving.lostAtMs, undefined);
  assert.deepEqual(await world.news(), [`again GIVEN ${TRANSFER}`, "again QUEUE [2] end"]);
});

Deno.test("Giving.linked() begins with a whole window, whatever was on its way over the former link", async () => {
  await using world = new GivingWorld();
  const { stanza, ...fields } = world.session.queue[1]!;
  const bytes = new Uint8Array(WINDOW_BYTES).fill(0x20);
  world.session.queue[1] = new Envelope({ ...fields, stanza: { ...stanza, bytes } });
  world.begin();
  assert.deepEqual((await world.news()).slice(2), ["QUEUE [1]"], "the other stanza is too large");
  world.have("more", 1);
  assert.deepEqual(await world.news(), ["QUEUE [2] end"]);
  world.have("commit", 1);
  await world.news();
  world.giving.lost();
  world.giving.linked(world.link("again "));
  assert.deepEqual(await world.news(), [`again GIVEN ${TRANSFER}`, "again QUEUE [2] end"]);
});

Deno.test("Giving.stop() routes all again as possible repeats before the taker has placed the session", async () => {
  await using world = new GivingWorld({ keeps: 3 });
  world.begin();
  await world.news();
  world.have("commit", 2);
  await world.news();
  world.giving.stop();
  assert.deepEqual(await world.news(), [
    "follows nobody",
    "leave",
    "over",
    "give back, as repeats up to 3",
  ]);
});

Deno.test("Giving.stop() leaves received stanzas to the taker, and routes the rest again", async () => {
  await using world = new GivingWorld({ keeps: 3 });
  world.begin();
  await world.news();
  world.have("commit", 2);
  await world.news();
  world.have("taken", 2);
  await world.news();
  world.giving.stop();
  assert.deepEqual(await world.news(), [
    "settle 2",
    "follows nobody",
    "leave",
    "over",
    "give back, as repeats up to 3",
  ]);
  assert.equal(world.asked("given-back"), 1);
});

Deno.test("Giving tells what the session has got, here and before, and nothing that only others may have", async () => {
  const from = { sender: "bob@example.com/x", process: 99, highest: 9 };
  await using world = new GivingWorld({
    delivered: {
      [HOME]: [{ ...from, recent: [1, 4] }],
      [REQUEST.account]: [{ ...from, recent: [2, 3, 5, 6, 7] }],
      "transfer 3": [{ ...from, recent: [6, 8, 9] }],
      "transfer 3 had": [{ ...from, recent: [2] }],
    },
  });
  world.session.cameBy = 3;
  const [theirs, taken] = [envelopeOf("m6", 6), envelopeOf("m7", 7)];
  for (const each of [theirs, taken]) each.rememberedBy = world.memory;
  taken.written();
  world.session.others = [theirs, taken, envelopeOf("m3", 3)]; // m3 is remembered by a copy
  world.session.waiting = [envelopeOf("m4", 4), envelopeOf("m5", 5), envelopeOf("m9", 9)];
  world.begin();
  assert.deepEqual(world.delivered, [
    "delivered 1",
    "delivered-to-account 2,3,7",
    "delivered-to-account 6,8",
    "delivered-to-account 2",
  ]);
  world.have("commit", 2);
  await world.news();
  world.giving.stop();
  const news = await world.news();
  assert.deepEqual(news.slice(news.indexOf("leave")), [
    "leave",
    "over",
    "give back, as repeats up to 2",
  ]);
  assert.equal(world.emptied, 1, "when it was given back");
});

Deno.test("Giving sends 2048 senders for each address, and 16384 details in all", async () => {
  const all = 16_384 - 2 * 2_048;
  for (
    const [senders, directed, told] of [
      [2_048, all, [all, 2_048, 2_048]],
      [2_049, all, [all, 2_048, 2_048]],
      [2_048, all + 1, [all + 1, 2_048, 2_047]],
    ] as const
  ) {
    await using world = new GivingWorld({ senders, directed });
    world.begin();
    const kinds = ["directed", "delivered", "delivered-to-account"];
    assert.deepEqual(kinds.map((kind) => world.told.get(kind)), told);
  }
});
