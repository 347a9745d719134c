import assert from "node:assert/strict";
import { OwnDelivery } from "../../xmpp/mod.ts";
import type { Arrival } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { EndFields, SessionDetail } from "../wire/mod.ts";
import { HOME, idOf, message } from "./testing/nodes.ts";
import { FOLLOW_MS, SETTLED_MS } from "./resumption_options.ts";
import { Taking } from "./taking.ts";
import {
  DC1,
  DC2,
  END,
  OLD,
  OTHER,
  own,
  SESSION,
  stanza,
  TakingWorld,
  TIMEOUT_MS,
} from "./testing/taking_world.ts";

Deno.test("Taking asks the node that END names, and ignores other nodes from then on", async () => {
  using world = new TakingWorld();
  const { taking } = world;
  const other = world.link("other: ", "dc3.example.com", OTHER);
  world.links.set(OTHER, other);
  taking.begin();
  assert.deepEqual(await world.news(), ["RESUME alice@example.com 1-1 3"]);
  assert.ok(taking.isFrom(world.links.get(OLD)!));
  taking.ended({ ...END, reason: "moved", process: OTHER });
  assert.deepEqual(await world.news(), ["other: RESUME alice@example.com 1-1 3"]);
  assert.ok(taking.isFrom(other));
  assert.ok(!taking.isFrom(world.links.get(OLD)!));
  assert.ok(!taking.isFrom(world.link("", "dc4.example.com", OTHER)), "another datacenter's claim");
  assert.ok(!taking.isFrom(world.link("", other.host, OLD)));
  taking.given(); // before the session
  assert.deepEqual(await world.news(), ["other: HAVE decline 0/0", "over"]);
});

Deno.test("Taking fails at once, and is over once, without a link to the process", async () => {
  for (const isFirst of [true, false]) {
    using world = new TakingWorld();
    if (isFirst) world.links.clear();
    world.taking.begin();
    if (!isFirst) {
      await world.news();
      world.taking.ended({ ...END, reason: "moved", process: OTHER });
    }
    assert.deepEqual(await world.news(), ["over"]);
    assert.deepEqual(world.arrival, { kind: "failed", h: undefined });
    assert.equal(world.failures("unreachable"), 1);
    assert.equal(world.clock.pendingTimers, 0);
  }
});

Deno.test("Taking fails after timeoutMs, with the covered count if it is known", async () => {
  for (const h of [undefined, SESSION.covered]) {
    using world = new TakingWorld();
    world.taking.begin();
    if (h !== undefined) world.taking.session(SESSION);
    await world.news();
    world.clock.advance(TIMEOUT_MS - 1);
    assert.deepEqual(await world.news(), []);
    world.clock.advance(1);
    assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"]);
    assert.deepEqual(world.arrival, { kind: "failed", h });
    world.queue({ 1: stanza(1) });
    world.taking.session(SESSION);
    assert.deepEqual(await world.news(), [], "later frames are ignored");
    world.taking.given();
    assert.deepEqual(
      await world.news(),
      ["HAVE decline 0/0"],
      "the old node routes the stanzas again",
    );
  }
});

Deno.test("Taking has no timeout once the session is given", async () => {
  using world = new TakingWorld();
  const session = await world.arrived();
  world.clock.advance(TIMEOUT_MS);
  assert.deepEqual(await world.news(), []);
  world.place(session);
  assert.deepEqual(await world.news(), ["HAVE taken 0/0"]);
});

Deno.test("Taking reads the claim of a session of its own datacenter while the session is on its way", async () => {
  const cases = [[DC2, [`${HOME} ${OLD}`], 7], [DC1, [], undefined]] as const;
  for (const [host, read, epoch] of cases) {
    using world = new TakingWorld({}, undefined, host);
    world.claimed = Promise.resolve(7);
    world.taking.begin();
    world.taking.session(SESSION);
    await world.news();
    assert.deepEqual(world.claimsRead, read);
    world.queue({});
    world.taking.given();
    await world.news();
    assert.ok(world.arrival?.kind === "arrived");
    assert.deepEqual(world.arrival.session.origin, { process: OLD, askedMs: 0, epoch });
  }
});

Deno.test("Taking does not wait for the claim of a session that is given", async () => {
  using world = new TakingWorld({}, undefined, DC2);
  world.claimed = Promise.withResolvers<number | undefined>().promise;
  const session = await world.arrived();
  assert.equal(session.origin.epoch, undefined);
});

Deno.test("Taking resolves with END's counts of a session that it cannot get", async () => {
  const cases: readonly (readonly [Partial<EndFields>, Arrival])[] = [
    [{ reason: "stale", h: 12 }, { kind: "failed", h: 12 }],
    [{ reason: "unknown" }, { kind: "failed", h: undefined }],
    [{ reason: "handled-too-high", sentCount: 9 }, { kind: "handled-too-high", sentCount: 9 }],
  ];
  for (const [end, arrival] of cases) {
    using world = new TakingWorld();
    world.taking.begin();
    await world.news();
    world.taking.ended({ ...END, ...end });
    assert.deepEqual(await world.news(), ["over"]);
    assert.deepEqual(world.arrival, arrival);
    assert.equal(world.failures(end.reason!), 1);
  }
});

Deno.test("Taking ends a link with a gap in the queue, and declines", async () => {
  using world = new TakingWorld();
  world.taking.begin();
  world.taking.session(SESSION);
  world.queue({ 1: stanza(1) }, false);
  await world.news();
  world.queue({ 3: stanza(3) });
  assert.deepEqual(await world.news(), ["refuse", "HAVE decline 1/0", "over"]);
});

Deno.test("Taking refuses a session whose full JID is not normalised", async () => {
  for (const jid of ["Alice@example.com/home", "alice@EXAMPLE.com/home", "alice@example.com/"]) {
    using world = new TakingWorld();
    world.taking.begin();
    await world.news();
    world.taking.session({ ...SESSION, jid });
    assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"], jid);
    assert.equal(world.failures("refused"), 1);
  }
});

Deno.test("Taking passes on SESSION and DETAILS, on bytes of its own", async () => {
  using world = new TakingWorld();
  const buffer = new TextEncoder().encode("<presence/>...");
  const details: readonly SessionDetail[] = [
    { kind: "directed", jid: "carol@example.com/x" },
    { kind: "directed", jid: "@" },
  ];
  world.taking.begin();
  world.taking.session({
    ...SESSION,
    lang: "de",
    priority: -3,
    presence: buffer.subarray(0, "<presence/>".length),
  });
  world.taking.details(details);
  const sent = message("m1");
  world.queue({ 1: stanza(1, { stanza: { ...sent, bytes: buffer.subarray(11) } }) });
  buffer.fill(0); // the next frame is read
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  const { state, queue } = world.arrival.session;
  const { presence, directed, jid, ...rest } = state;
  assert.equal(jid.text, HOME);
  assert.equal(new TextDecoder().decode(presence!.bytes), "<presence/>");
  assert.deepEqual([presence!.from.text, presence!.to.text], [HOME, "alice@example.com"]);
  assert.deepEqual(directed.map(({ text }) => text), ["carol@example.com/x"]);
  assert.deepEqual(rest, {
    received: 5,
    covered: 4,
    acknowledged: 3,
    resumeTimeoutMs: 600_000,
    resendingMs: 7,
    lang: "de",
    priority: -3,
    hasCarbons: true,
    isNewlyAvailable: true,
  });
  assert.equal(new TextDecoder().decode(queue[0]!.stanza.bytes), "...");
});

Deno.test("Taking keeps a session for a day at most, whatever SESSION says", async () => {
  using world = new TakingWorld();
  world.taking.begin();
  world.taking.session({ ...SESSION, resumeTimeoutMs: 0xffffffff, resendingMs: 0xffffffff });
  world.queue({});
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  const { resumeTimeoutMs, resendingMs } = world.arrival.session.state;
  assert.deepEqual([resumeTimeoutMs, resendingMs], [86_400_000, 86_400_000]);
});

Deno.test("Taking reports settled numbers without a gap, SETTLED_MS after the first", async () => {
  using world = new TakingWorld();
  const { queue } = await world.taken({ 1: stanza(1), 2: stanza(2), 3: stanza(3), 4: stanza(4) });
  const settle = (index: number) => (queue[index] as Envelope).settle();
  settle(1);
  world.clock.advance(SETTLED_MS - 1);
  settle(3);
  settle(0);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["HAVE taken 4/2"]);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), [], "there is no news");
  settle(2);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), ["HAVE taken 4/4"]);
});

Deno.test("Taking.tellSettled() sends pending news at once, and nothing else", async () => {
  using world = new TakingWorld();
  const { queue } = await world.taken({ 1: stanza(1) });
  world.taking.tellSettled();
  assert.deepEqual(await world.news(), []);
  (queue[0] as Envelope).settle();
  world.taking.tellSettled();
  assert.deepEqual(await world.news(), ["HAVE taken 1/1"]);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), []);
});

Deno.test("Taking settles the session's own stanzas at once, and reports them with the next step", async () => {
  using world = new TakingWorld();
  const forged = stanza(2, { stanza: message("forged", "eve@forged.example/x") });
  const { queue } = await world.arrived({ 1: own("o"), 2: forged, 3: stanza(3) });
  assert.deepEqual(queue.map(({ stanza }) => idOf(stanza)), ["o", "m3"]);
  assert.ok(queue[0] instanceof OwnDelivery);
  assert.equal(world.metrics.value("causeway_resumed_elsewhere_refused_total"), 1);
  assert.equal(world.metrics.value("causeway_resumed_elsewhere_stanzas_total"), 2);
  assert.equal(world.clock.pendingTimers, 0, "no news is sent before the session is taken");
  world.place((world.arrival as Arrival & { kind: "arrived" }).session);
  assert.deepEqual(await world.news(), ["note 3", "HAVE taken 3/2"]);
});

Deno.test("Taking accepts any sender from a node of its own datacenter", async () => {
  using world = new TakingWorld();
  world.links.set(OLD, world.link("", "dc2.example.com"));
  const forged = stanza(1, { stanza: message("forged", "eve@forged.example/x") });
  const { queue } = await world.arrived({ 1: forged });
  assert.deepEqual(queue.map(({ stanza }) => idOf(stanza)), ["forged"]);
});

Deno.test("stanzas straight to a session wait for those that follow, for FOLLOW_MS at most", async () => {
  const ends: readonly (readonly [(world: TakingWorld) => void, readonly string[]])[] = [
    [(world) => world.queue({}, true, true), ["HAVE taken 0/0", "caught up"]],
    [(world) => world.taking.stop(), ["caught up"]],
    [(world) => world.taking.ended(END), ["caught up", "over"]],
    [(world) => world.clock.advance(1), ["caught up"]],
  ];
  for (const [end, done] of ends) {
    using world = new TakingWorld();
    await world.taken();
    world.clock.advance(FOLLOW_MS - 1);
    world.queue({});
    assert.deepEqual(await world.news(), ["HAVE taken 0/0"]);
    end(world);
    assert.deepEqual(await world.news(), done);
    assert.equal(world.clock.pendingTimers, 0);
  }
});

Deno.test("Taking reports its progress again over another link", async () => {
  using world = new TakingWorld();
  const { queue } = await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.taking.lost();
  assert.equal(world.taking.link, undefined);
  (queue[0] as Envelope).settle();
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), [], "there is no link");
  const again = world.link("again: ");
  world.taking.linked(again);
  assert.equal(world.taking.link, again);
  assert.deepEqual(await world.news(), ["again: HAVE taken 2/1"]);
});

Deno.test("Taking declines over any link to the session's node when its own has ended", async () => {
  for (
    const [host, done] of [[DC1, ["spare: HAVE decline 0/0"]], ["dc4.example.com", []]] as const
  ) {
    using world = new TakingWorld();
    world.taking.begin();
    await world.news();
    world.spare = world.link("spare: ", host);
    world.taking.lost();
    assert.deepEqual(await world.news(), [...done, "over"], host);
    assert.equal(world.failures("lost"), 1);
  }
});

Deno.test("Taking.cancel() declines until the session is given, and has no effect later", async () => {
  using early = new TakingWorld();
  early.taking.begin();
  await early.news();
  early.taking.cancel();
  assert.deepEqual(await early.news(), ["HAVE decline 0/0", "over"]);
  assert.equal(early.failures("client-gone"), 1);
  using late = new TakingWorld();
  await late.taken();
  late.taking.cancel();
  assert.deepEqual(await late.news(), []);
  assert.ok(late.taking.isTaken);
});

Deno.test("Taking sends no news once it is forgotten, or END has come", async () => {
  const ends: readonly (readonly [(taking: Taking) => void, readonly string[]])[] = [
    [(taking) => taking.forget(), ["caught up"]],
    [(taking) => taking.ended(END), ["caught up", "over"]],
  ];
  for (const [end, done] of ends) {
    using world = new TakingWorld();
    const { queue } = await world.taken({ 1: stanza(1) });
    (queue[0] as Envelope).settle();
    end(world.taking);
    assert.deepEqual(await world.news(), done);
    assert.equal(world.clock.pendingTimers, 0);
  }
});
