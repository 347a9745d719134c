import assert from "node:assert/strict";
import { RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/x";
const BOB = "bob@example.com";
const BOB_AT_DESK = "bob@example.com/desk";

function errorsTo(fixture: RouterFixture): string[] {
  return fixture.delivered.filter((each) => each.type === "error").map(conditionOf);
}

Deno.test("Router asks the table when memory knows nothing, and keeps the sender's order", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set(BOB, "dc2.example.com");
  fixture.cache.set("carol@example.com", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, "carol@example.com", { id: "2" }));
  fixture.router.accept(stanza("dan@example.com/y", "carol@example.com", { id: "3" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3"]);
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3", "1", "2"]);
});

Deno.test("Router sends nothing to another DC when message_ttl is 0", () => {
  const fixture = new RouterFixture({ messageTtl: 0 });
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.equal(fixture.sent.length, 0);
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router sends to another DC's local host without asking the table", () => {
  const fixture = new RouterFixture();
  fixture.router.accept(stanza(ALICE, "dc2.example.com", { kind: "iq" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  assert.deepEqual(fixture.lookups, []);
});

Deno.test("Router delivers to the sender's other resource here unless the table places it elsewhere", async () => {
  const fixture = new RouterFixture();
  fixture.local.set("alice@example.com/y", "delivered");
  fixture.router.accept(stanza(ALICE, "alice@example.com/y", { id: "1" }));
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  fixture.cache.set("alice@example.com/z", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, "alice@example.com/z", { id: "2" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["2"]);
});

Deno.test("Router delivers to the sender's own bare JID here, whatever the table says", () => {
  const fixture = new RouterFixture();
  fixture.cache.set("alice@example.com", "dc2.example.com");
  fixture.local.set("alice@example.com", "delivered");
  fixture.router.accept(stanza(ALICE, "alice@example.com"));
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("Router never sends a stanza from a link to its own sender in a circle", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(ALICE, "dc2.example.com");
  fixture.table.set("alice@example.com", "dc2.example.com");
  fixture.table.set("alice@example.com/y", "dc2.example.com");
  // A peer that plays alice: to the account, to another resource, and to the same resource.
  for (const [index, to] of ["alice@example.com", "alice@example.com/y", ALICE].entries()) {
    fixture.received(fromLink(stanza(ALICE, to), { ttl: 1, sequence: index + 1 }));
    await fixture.settled();
  }
  // The account has no session here, so its datacenter gets an error. The others had one hop left.
  const sent = () => fixture.sent.map(({ envelope }) => [envelope.stanza.type, envelope.ttl]);
  assert.deepEqual(sent(), [["error", 3], ["chat", 0], ["chat", 0]]);
  // A stanza sent back and forth ends as an error, which is never answered.
  fixture.received(fromLink(stanza(ALICE, ALICE), { ttl: 0, sequence: 9 }));
  const echo = stanza(ALICE, ALICE, { type: "error" });
  fixture.received(fromLink(echo, { ttl: 0, sequence: 10 }));
  await fixture.settled();
  assert.deepEqual(sent().slice(3).filter(([type]) => type !== "error"), []);
  assert.ok(sent().length <= 4, "one answer at most");
});

Deno.test("Router delivers to users of the local host here alone, whatever the table says", async () => {
  const fixture = new RouterFixture();
  const carol = "carol@dc1.example.com";
  fixture.table.set(carol, "dc2.example.com");
  fixture.cache.set(carol, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, carol, { id: "1" }));
  assert.equal(fixture.router.bouncing, 1);
  fixture.clock.advance(250); // the first retry looks at this datacenter's nodes again
  await fixture.settled();
  assert.deepEqual(fixture.relocated, [[carol]]);
  assert.equal(fixture.router.bouncing, 1);
  fixture.local.set(carol, "delivered");
  fixture.router.revealed(parseJid(`${carol}/desk`));
  fixture.router.accept(stanza(ALICE, carol, { id: "2" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
  assert.deepEqual(fixture.sent, []);
  assert.equal(fixture.value("delivered_with_ttl"), 0, "no lookup of a datacenter");
});

Deno.test("Router answers a stanza to an absent user of the local host after the last retry", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, "nobody@dc1.example.com"));
  for (let i = 0; i < 100; i++) {
    fixture.clock.advance(100);
    await fixture.settled();
  }
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
  assert.deepEqual(fixture.sent, []);
});

Deno.test("Router keeps what its host says to one recipient in order, and lets nobody else wait for it", async () => {
  const fixture = new RouterFixture();
  fixture.local.set("alice@example.com/a", "delivered");
  fixture.cache.set("alice@example.com/a", "dc1.example.com");
  fixture.table.set("bob@example.com/b", "dc2.example.com");
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.gate = promise;
  const say = (to: string, id: string) => fixture.router.accept(stanza("example.com", to, { id }));
  for (const id of ["b1", "b2"]) say("bob@example.com/b", id);
  say("alice@example.com/a", "a1");
  assert.deepEqual(fixture.delivered.map(idOf), ["a1"]);
  resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["b1", "b2"]);
  assert.deepEqual(fixture.lookups, ["bob@example.com/b"]);
  fixture.close();
});

Deno.test("Router keeps the order of each user of the local host, and none waits for another", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set(BOB, "dc2.example.com");
  fixture.cache.set("dan@example.com", "dc2.example.com");
  const [carol, erin] = ["carol@dc1.example.com/a", "erin@dc1.example.com/b"];
  fixture.router.accept(stanza(carol, BOB, { id: "1" }));
  fixture.router.accept(stanza(carol, "dan@example.com", { id: "2" }));
  fixture.router.accept(stanza(erin, "dan@example.com", { id: "3" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3"]);
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["3", "1", "2"]);
});

Deno.test("Router looks components up by domain, its own first", async () => {
  const fixture = new RouterFixture();
  fixture.table.set("muc.example.com", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, "room@muc.example.com/n", { id: "1" }));
  await fixture.settled();
  assert.deepEqual(fixture.lookups, ["muc.example.com"]);
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  fixture.domains.add("muc.example.com");
  fixture.local.set("room@muc.example.com/n", "delivered");
  fixture.router.accept(stanza(ALICE, "room@muc.example.com/n", { id: "2" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["2"]);
});

Deno.test("Router sends stanzas that bounce for a component before later ones when it connects", async () => {
  const fixture = new RouterFixture();
  const echo = "echo.example.com";
  fixture.local.set(echo, "delivered");
  fixture.cache.set(echo, null);
  for (const id of ["1", "2"]) fixture.router.accept(stanza(ALICE, echo, { id }));
  assert.equal(fixture.router.bouncing, 2);
  fixture.domains.add(echo); // the table does not know it yet
  fixture.received(fromLink(stanza(ALICE, echo, { id: "3" })));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "3"]);
  await fixture.router.drain();
});

Deno.test("Router answers a stanza to an unknown outside domain at once, without bouncing", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, "somebody@example.org"));
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["remote-server-not-found"]);
  assert.equal(fixture.router.bouncing, 0);
});

for (
  const shape of [
    { kind: "iq", type: "get" },
    { kind: "iq", type: "set" },
    { kind: "message", type: "groupchat" },
  ] as const
) {
  Deno.test(`Router refuses ${shape.kind} ${shape.type} for a bare JID alike wherever the account is`, () => {
    for (const host of ["dc1.example.com", "dc2.example.com", null, undefined]) {
      const fixture = new RouterFixture();
      fixture.cache.set(ALICE, "dc1.example.com");
      fixture.local.set(ALICE, "delivered");
      fixture.local.set(BOB, "service-unavailable");
      if (host !== undefined) fixture.cache.set(BOB, host);
      fixture.router.accept(stanza(ALICE, BOB, shape));
      assert.deepEqual(errorsTo(fixture), ["service-unavailable"], "within the call");
      assert.deepEqual([fixture.lookups, fixture.sent, fixture.router.bouncing], [[], [], 0]);
      fixture.close();
    }
  });
}

Deno.test("Router routes what a room sends to an account, and drops it where there is no session", async () => {
  const fixture = new RouterFixture();
  const fromRoom = (id: string) =>
    stanza("room@rooms.example.com/a@example.com", BOB, { type: "groupchat", id });
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(fromRoom("1"));
  assert.deepEqual(fixture.sent.map(({ host }) => host), ["dc2.example.com"]);
  fixture.cache.set(BOB, null);
  let isSettled = false;
  fixture.router.accept(fromRoom("2"), { settle: () => void (isSettled = true) });
  await fixture.settled();
  assert.deepEqual([fixture.router.bouncing, isSettled], [0, true]);
  assert.deepEqual(errorsTo(fixture), []);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.router.accept(fromRoom("3"));
  assert.deepEqual(fixture.delivered.map(idOf), ["3"]);
});

Deno.test("Router gives stanzas for rooms to this datacenter, whatever the table says", () => {
  const fixture = new RouterFixture();
  fixture.table.set("rooms.example.com", "dc2.example.com");
  fixture.local.set("room@rooms.example.com", "delivered");
  fixture.router.accept(stanza(ALICE, "room@rooms.example.com", { type: "groupchat", id: "1" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  assert.deepEqual(fixture.lookups, []);
});

for (
  const shape of [
    { kind: "iq", type: "result" },
    { kind: "iq", type: "error" },
    { kind: "message", type: "error" },
  ] as const
) {
  Deno.test(`Router drops ${shape.kind} ${shape.type} for a bare JID without a lookup`, async () => {
    const fixture = new RouterFixture();
    fixture.local.set(BOB, "ignored");
    fixture.router.accept(stanza(ALICE, BOB, shape));
    assert.deepEqual([fixture.lookups, fixture.sent], [[], []]);
    assert.match(
      await fixture.metrics.prometheus(),
      /causeway_stanzas_dropped_total\{reason="ignored"\} 1/,
    );
    fixture.close();
  });
}

for (const [to, answers] of [[BOB, []], [BOB_AT_DESK, ["service-unavailable"]]] as const) {
  Deno.test(`Router answers a headline for ${to} that finds no session with [${answers}]`, async () => {
    const fixture = new RouterFixture({ bounce: false });
    fixture.cache.set(to, null);
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    const link = new FakeLink();
    const headline = fromLink(stanza(ALICE, to, { type: "headline" }));
    fixture.received(new Envelope(headline, link, 7));
    assert.deepEqual(errorsTo(fixture), answers);
    assert.deepEqual(link.settled, [7]);
    const dropped = (await fixture.metrics.prometheus()).includes('{reason="no-route"} 1');
    assert.equal(dropped, answers.length === 0);
    fixture.close();
  });
}

Deno.test("Router drops the cache entry and bounces when the address has no session here", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.deepEqual(fixture.forgotten, [BOB]);
  assert.equal(fixture.router.bouncing, 1);
  return fixture.router.drain();
});

Deno.test("Router bounces messages, IQ requests and subscriptions, and counts the rest as dropped", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB_AT_DESK, null);
  const shapes = [
    { kind: "message", type: "chat" },
    { kind: "message", type: "error" },
    { kind: "iq", type: "set" },
    { kind: "iq", type: "result" },
    { kind: "presence", type: "subscribe" },
    { kind: "presence", type: "available" },
    { kind: "presence", type: "probe" },
  ] as const;
  for (const shape of shapes) fixture.router.accept(stanza(ALICE, BOB_AT_DESK, shape));
  assert.equal(fixture.router.bouncing, 3);
  assert.match(
    await fixture.metrics.prometheus(),
    /causeway_stanzas_dropped_total\{reason="no-route"\} 4/,
  );
  await fixture.router.drain();
});

Deno.test("Router sends bounced stanzas in order when a retry finds the recipient", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  fixture.table.set(BOB, "dc2.example.com");
  await fixture.clock.advanceAsync(199);
  assert.deepEqual(fixture.sentTo("dc2.example.com"), []);
  await fixture.clock.advanceAsync(1);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "3"]);
  assert.equal(fixture.value("bounce_queue_size"), 0);
});

Deno.test("Router lets a later stanza wait behind one that bounces, though the cache knows a place by then", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2"]);
});

for (
  const shape of [{ kind: "presence", type: "available" }, { kind: "iq", type: "result" }] as const
) {
  Deno.test(`Router does not let ${shape.kind} of type ${shape.type} overtake stanzas that bounce`, async () => {
    const fixture = new RouterFixture();
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { id: "1" }));
    assert.equal(fixture.router.bouncing, 1, "the address has no session here yet");
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { ...shape, id: "2" }));
    assert.equal(fixture.router.bouncing, 2);
    fixture.local.set(BOB_AT_DESK, "delivered");
    fixture.cache.set(BOB_AT_DESK, "dc1.example.com");
    fixture.router.accept(stanza(ALICE, BOB_AT_DESK, { ...shape, id: "3" }));
    assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "3"]);
    fixture.cache.set("cid@example.com/x", "dc1.example.com");
    fixture.router.accept(stanza(ALICE, "cid@example.com/x", { ...shape, id: "4" }));
    assert.equal(fixture.router.bouncing, 0, "by itself it is not held");
    await fixture.router.drain();
  });
}

Deno.test("Router answers service-unavailable after the last retry, each after twice the delay", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  const lookupsAtMs = [200, 600, 1400, 3000];
  let nowMs = 0;
  for (const [i, atMs] of lookupsAtMs.entries()) {
    await fixture.clock.advanceAsync(atMs - nowMs - 1, 50);
    assert.equal(fixture.relocated.length, i);
    await fixture.clock.advanceAsync(1);
    await fixture.settled();
    assert.equal(fixture.relocated.length, i + 1);
    nowMs = atMs;
  }
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
  assert.equal(fixture.router.bouncing, 0);
  assert.equal(fixture.clock.pendingTimers, 0);
});

Deno.test("Router answers a request to a client that must seem not to be there like one to a missing client", async () => {
  const outcomes: unknown[] = [];
  for (const outcome of ["no-session", "hidden"] as const) {
    const fixture = new RouterFixture();
    const phone = `${BOB}/phone`;
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.local.set(phone, outcome);
    fixture.table.set(BOB, "dc1.example.com");
    fixture.cache.set(phone, "dc1.example.com");
    for (const id of ["1", "2"]) {
      fixture.router.accept(stanza(ALICE, phone, { id, kind: "iq", type: "get" }));
    }
    await fixture.settled();
    const answers: unknown[] = [];
    for (let ms = 0; ms <= 3_000; ms += 100) {
      answers.push([ms, errorsTo(fixture).length, fixture.relocated.length]);
      await fixture.clock.advanceAsync(100, 50);
      await fixture.settled();
    }
    assert.deepEqual(errorsTo(fixture), ["service-unavailable", "service-unavailable"]);
    assert.equal(fixture.router.bouncing, 0);
    outcomes.push(answers);
  }
  assert.deepEqual(outcomes[1], outcomes[0]);
});

Deno.test("Router lets nobody wait behind a request to a client that must seem not to be there", async () => {
  const fixture = new RouterFixture();
  const phone = `${BOB}/phone`;
  fixture.cache.set(phone, "dc1.example.com");
  fixture.local.set(phone, "hidden");
  fixture.router.accept(stanza(ALICE, phone, { id: "1", kind: "iq", type: "get" }));
  assert.equal(fixture.router.bouncing, 1);
  fixture.local.set(phone, "delivered");
  fixture.router.accept(stanza("carol@example.com/x", phone, { id: "2" }));
  assert.deepEqual(fixture.delivered.map(({ from }) => from.text), ["carol@example.com/x"]);
  assert.deepEqual(fixture.forgotten, []);
  await fixture.clock.advanceAsync(200, 50);
  await fixture.settled();
  assert.equal(fixture.router.bouncing, 1, "nothing has found its account");
  fixture.table.set(BOB, "dc2.example.com");
  await fixture.clock.advanceAsync(400, 50);
  await fixture.settled();
  assert.equal(fixture.delivered.length, 2, "it is tried here, whose session is no longer hidden");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), []);
});

Deno.test("Router sends stanzas held for a recipient as soon as the recipient writes", () => {
  const fixture = new RouterFixture();
  fixture.cache.set("bob@example.com/x", null);
  fixture.router.accept(stanza(ALICE, "bob@example.com/x", { id: "1" }));
  fixture.received(fromLink(stanza("bob@example.com/x", "dc1.example.com")));
  assert.deepEqual(fixture.sentTo("dc2.example.com")[0], "1");
});

Deno.test("Router learns a sender's DC from traffic, but not from errors or unavailable presence", () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  const to = "dc1.example.com";
  fixture.received(fromLink(stanza("e@example.com/x", to, { type: "error" })));
  fixture.received(
    fromLink(stanza("u@example.com/x", to, { kind: "presence", type: "unavailable" })),
  );
  fixture.received(fromLink(stanza("bob@example.com", to, { kind: "iq", type: "result" })));
  assert.equal(fixture.cache.size, 0, "a server answered for the account");
  fixture.received(fromLink(stanza("bob@example.com/x", to)));
  fixture.received(
    fromLink(stanza("room@muc.example.com/n", to), { origin: "dc3.example.com" }),
  );
  assert.deepEqual([...fixture.cache], [
    ["bob@example.com/x", "dc2.example.com"],
    ["muc.example.com", "dc3.example.com"],
  ]);
});

Deno.test("Router learns no place that is no datacenter of the mesh", () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  for (const origin of ["nowhere.example.net", "dc1.example.com"]) {
    fixture.received(fromLink(stanza("bob@example.com/x", "dc1.example.com"), { origin }));
  }
  assert.equal(fixture.cache.size, 0);
});

Deno.test("Router with bounce false answers at once", () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router answers resource-constraint one stanza past a sender's share of the bounce", async () => {
  const fixture = new RouterFixture({ bounce: { maxItems: 10 } });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  assert.equal(fixture.router.bouncing, 2);
  assert.deepEqual(errorsTo(fixture), ["resource-constraint"]);
  assert.match(await fixture.metrics.prometheus(), /without_room_total\{queue="bounce"\} 1/);
  await fixture.router.drain();
});

Deno.test("Router.drain() hands bouncing stanzas on to another node, and those that would bounce later", async () => {
  const fixture = new RouterFixture();
  const { router } = fixture;
  const nobody = "nobody@example.com/x";
  for (const id of ["1", "2"]) router.accept(stanza("alice@example.com/a", nobody, { id }));
  await fixture.settled();
  assert.equal(router.bouncing, 2);
  fixture.handedOn = [];
  await router.drain();
  router.accept(stanza("alice@example.com/a", nobody, { id: "3" }));
  await router.drain();
  assert.deepEqual(fixture.handedOn, ["1", "2", "3"]);
  assert.deepEqual(fixture.delivered, [], "no error is sent");
  const spent = fromLink(stanza("bob@example.com/b", nobody, { id: "4" }), { ttl: 1 });
  fixture.local.set("bob@example.com/b", "delivered");
  fixture.received(spent);
  await router.drain();
  assert.equal(fixture.handedOn.length, 3, "it was handed on too often");
  fixture.close();
});

Deno.test("Router.drain() hands on a stanza behind one that it handed on, though a route is known by then", async () => {
  const fixture = new RouterFixture();
  const { router } = fixture;
  fixture.cache.set(BOB, null);
  router.accept(stanza(ALICE, BOB, { id: "1" }));
  assert.equal(router.bouncing, 1);
  fixture.handedOn = [];
  await router.drain();
  fixture.cache.set(BOB, "dc2.example.com");
  router.accept(stanza(ALICE, BOB, { id: "2" }));
  router.accept(stanza("carol@example.com/c", BOB, { id: "3" }));
  assert.deepEqual(fixture.handedOn, ["1", "2"]);
  assert.deepEqual(fixture.sent.map(({ envelope }) => idOf(envelope.stanza)), ["3"]);
  fixture.close();
});

Deno.test("Router.drain() leaves stanzas from a link open", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.handedOn = [];
  const link = new FakeLink();
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 1));
  await fixture.router.drain();
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 2));
  fixture.local.set(BOB, "not-allowed");
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 3));
  assert.deepEqual([link.settled, link.left], [[], [1, 2, 3]]);
  assert.deepEqual([fixture.delivered, fixture.handedOn], [[], []]);
  assert.match(await fixture.metrics.prometheus(), /stanzas_left_open_total 3/);
  fixture.close();
});

Deno.test("Router.drain() leaves open a stanza behind one that it left open, though its place is known by then", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  const link = new FakeLink();
  const receive = (number: number, from = ALICE) => {
    const envelope = fromLink(stanza(from, BOB), { sequence: number });
    fixture.received(new Envelope(envelope, link, number));
  };
  await fixture.router.drain();
  receive(1);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  receive(2);
  receive(3, "carol@example.com/c");
  assert.deepEqual([link.left, link.settled], [[1, 2], [3]]);
  fixture.close();
});

Deno.test("Router.drain() answers the senders of bouncing stanzas", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  await fixture.router.drain();
  assert.deepEqual(errorsTo(fixture), ["service-unavailable", "service-unavailable"]);
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
});

Deno.test("Router drops and settles a resent stanza that was delivered", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const settled: number[] = [];
  const settler = { settle: (number: number) => void settled.push(number) };
  const again = (id: string) => fixture.acceptResent(stanza(ALICE, BOB, { id }), settler, 7);
  fixture.received(fromLink(stanza(ALICE, BOB, { id: "1" })));
  again("1");
  again("2");
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
  assert.deepEqual(settled, [7, 7]);
  // the same text, not marked as resent, is delivered
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "1"]);
  // a stanza that was taken back counts as not delivered
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.returned(fromLink(stanza(ALICE, BOB, { id: "1" })), "unacknowledged");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  fixture.cache.set(BOB, "dc1.example.com");
  again("1");
  assert.deepEqual(fixture.delivered.map(idOf).slice(3), ["1"]);
  fixture.close();
});

Deno.test("Router drops a stanza that arrives late from a dead node, after its client sent it again", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const link = new FakeLink();
  fixture.acceptResent(stanza(ALICE, BOB, { id: "1" }));
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB, { id: "1" })), link, 7));
  assert.deepEqual(fixture.delivered.map(idOf), ["1"]);
  assert.deepEqual(link.settled, [7]);
  fixture.close();
});

Deno.test("Router has every request to the server answered, even a resent one", () => {
  const fixture = new RouterFixture();
  const questions = [
    [ALICE, "alice@example.com"],
    [ALICE, "bob@example.com"],
    [ALICE, "dc1.example.com"],
    [ALICE, "example.com"],
  ] as const;
  for (const [from, to] of questions) {
    fixture.local.set(to, "delivered");
    fixture.cache.set(to, "dc1.example.com");
    const request = stanza(from, to, { kind: "iq", type: "get", id: "roster_1" });
    for (let i = 0; i < 2; i++) fixture.acceptResent(request);
    assert.equal(fixture.delivered.splice(0).length, 2, to);
  }
  const toClient = stanza(ALICE, "bob@example.com/y", { kind: "iq", type: "get" });
  fixture.cache.set("bob@example.com/y", "dc1.example.com");
  for (let i = 0; i < 2; i++) fixture.acceptResent(toClient);
  assert.equal(fixture.delivered.length, 1);
  fixture.close();
});

Deno.test("Router does not forward a resent stanza that was delivered here before its recipient moved", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB, { id: "1" })));
  fixture.cache.set(BOB, "dc2.example.com");
  for (const id of ["1", "2"]) fixture.acceptResent(stanza(ALICE, BOB, { id }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["2"]);
  fixture.close();
});

Deno.test("Router marks the errors it answers with, and counts those that find no room", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(BOB, null);
  fixture.cache.set(ALICE, "dc2.example.com");
  const link = new FakeLink();
  const message = fromLink(stanza(ALICE, BOB));
  fixture.received(new Envelope(message, link, 7));
  const error = fixture.sent[0]!.envelope;
  assert.equal(error.entry, "owed");
  assert.equal(message.entry, "ordinary");
  assert.deepEqual(link.settled, [], "the error has the message's duty");
  const lost = async () =>
    /dropped_total\{reason="owed"\} (\d+)/.exec(await fixture.metrics.prometheus())?.[1];
  fixture.router.returned(error, "full");
  assert.deepEqual([link.settled, await lost()], [[7], "1"]);
  fixture.local.set(ALICE, "resource-constraint");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  assert.equal(await lost(), "2");
  fixture.received(fromLink(stanza(BOB, ALICE, { type: "error" })));
  assert.equal(await lost(), "2", "an error from a client is not owed");
  fixture.close();
});

Deno.test("Router marks stanzas that are sent once, and compares no text with them", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }), { settle() {} }, 1);
  fixture.acceptResent(stanza(ALICE, BOB, { id: "3" }), { settle() {} }, 2);
  fixture.router.accept(stanza(ALICE, BOB, { id: "6" }), { settle() {} }, 3, "sent-once");
  const marks = fixture.sent.map(({ envelope }) => envelope.entry);
  assert.deepEqual(marks, ["sent-once", "ordinary", "resent", "sent-once"]);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  for (const id of ["4", "5"]) {
    const sent = fromLink(stanza(ALICE, BOB, { id }), { sequence: Number(id) });
    fixture.received(
      new Envelope({ ...sent, entry: id === "4" ? "sent-once" : "ordinary" }),
    );
  }
  for (const id of ["4", "5"]) fixture.acceptResent(stanza(ALICE, BOB, { id }));
  assert.deepEqual(fixture.delivered.map(idOf), ["4", "5", "4"]);
  fixture.close();
});

Deno.test("Router settles a stanza once: when it is delivered or dropped, or its error is", () => {
  const fixture = new RouterFixture({ bounce: false });
  const settled: number[] = [];
  const settler = { settle: (number: number) => void settled.push(number) };
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set("gone@example.com", null);
  fixture.router.accept(stanza(ALICE, BOB), settler, 1);
  fixture.router.accept(stanza(ALICE, "gone@example.com"), settler, 2);
  fixture.router.accept(
    stanza(ALICE, "gone@example.com", { kind: "iq", type: "result" }),
    settler,
    3,
  );
  assert.deepEqual(settled, [1, 2, 3]);
});

Deno.test("Router leaves a forwarded stanza to be settled by its lane", () => {
  const fixture = new RouterFixture();
  const settled: number[] = [];
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB), { settle: (number) => void settled.push(number) }, 9);
  assert.deepEqual(settled, []);
  fixture.sent[0]!.envelope.settle();
  fixture.sent[0]!.envelope.settle();
  assert.deepEqual(settled, [9]);
});

Deno.test("Router routes a stanza again that a lane returned, and gives the hop back", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-restarted");
  assert.equal(fixture.sent[1]!.host, "dc3.example.com");
  assert.equal(fixture.sent[1]!.envelope.ttl, 3);
});

Deno.test("Router looks a recipient up anew when the peer that had it is gone", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.table.set(BOB, "dc3.example.com");
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.sent[1]!.host, "dc3.example.com");
  assert.equal(fixture.sent[1]!.envelope.ttl, 3);
});

for (
  const [reason, condition] of [
    ["full", "resource-constraint"],
    ["expired", "remote-server-timeout"],
    ["leaving", "service-unavailable"],
  ] as const
) {
  Deno.test(`Router answers ${condition} for a stanza that a lane returned as ${reason}`, () => {
    const fixture = new RouterFixture();
    fixture.cache.set(BOB, "dc2.example.com");
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.router.accept(stanza(ALICE, BOB));
    fixture.router.returned(fixture.sent[0]!.envelope, reason);
    assert.deepEqual(errorsTo(fixture), [condition]);
  });
}

Deno.test("Router delivers a stanza once that came back from another datacenter and from its lane", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB));
  const { envelope } = fixture.sent[0]!;
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.table.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const { process, sequence } = envelope;
  const back = { ...fromLink(envelope.stanza, { ttl: 2, sequence }), process };
  fixture.received(new Envelope(back, new FakeLink(), 1));
  assert.equal(fixture.delivered.length, 1);
  envelope.mayBeRepeat = true; // it was sent
  fixture.router.returned(envelope, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("Router does not forward a repeat that was delivered here before its recipient moved", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  for (const sequence of [5, 7]) {
    fixture.received(fromLink(stanza(ALICE, BOB), { sequence }));
  }
  fixture.cache.set(BOB, "dc3.example.com");
  for (const sequence of [5, 6, 7]) {
    const copy = fromLink(stanza(ALICE, BOB, { id: String(sequence) }), {
      sequence,
      mayBeRepeat: true,
    });
    fixture.received(copy);
  }
  assert.deepEqual(fixture.sentTo("dc3.example.com"), ["6"]);
});

Deno.test("Router hands a stanza that cannot leave any more to another node, without an error", () => {
  const fixture = new RouterFixture();
  fixture.handedOn = [];
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (const id of ["1", "2"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
  for (const { envelope } of fixture.sent) fixture.router.returned(envelope, "leaving");
  assert.deepEqual([fixture.handedOn, errorsTo(fixture)], [["1", "2"], []]);
  fixture.sent[0]!.envelope.ttl = 1;
  fixture.router.returned(fixture.sent[0]!.envelope, "leaving");
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"], "it is out of hops");
});

Deno.test("Router delivers a stanza that came over two lanes once", async () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 5 }));
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 5, mayBeRepeat: true }));
  fixture.received(fromLink(stanza(ALICE, BOB), { sequence: 6, mayBeRepeat: true }));
  assert.equal(fixture.delivered.length, 2);
  assert.match(await fixture.metrics.prometheus(), /dropped_total\{reason="repeat"\} 1/);
});

Deno.test("Router answers stanzas that the local side refuses, and drops those it ignores", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "not-allowed");
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.cache.set("carol@example.com", "dc1.example.com");
  fixture.local.set("carol@example.com", "ignored");
  fixture.router.accept(stanza(ALICE, BOB));
  fixture.router.accept(stanza(ALICE, "carol@example.com"));
  assert.deepEqual(errorsTo(fixture), ["not-allowed"]);
});

const ONE_WAITING = stanza(ALICE, BOB, { id: "2" }).bytes.length + RETAINED_OVERHEAD_BYTES;

for (const bound of [{ maxQueued: 1 }, { maxQueuedBytes: 2 * ONE_WAITING - 1 }]) {
  Deno.test(`Router answers resource-constraint one past ${Object.keys(bound)}`, async () => {
    const fixture = new RouterFixture(bound);
    const gate = Promise.withResolvers<void>();
    fixture.gate = gate.promise;
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.local.set(ALICE, "delivered");
    fixture.table.set(BOB, "dc2.example.com");
    for (const id of ["1", "2", "3"]) fixture.router.accept(stanza(ALICE, BOB, { id }));
    assert.deepEqual(errorsTo(fixture), ["resource-constraint"]);
    const shown = await fixture.metrics.prometheus();
    assert.match(shown, /^causeway_lookup_queue_size 1$/m);
    assert.match(shown, new RegExp(`^causeway_lookup_queue_bytes ${ONE_WAITING}$`, "m"));
    assert.match(shown, /without_room_total\{queue="lookup"\} 1/);
    gate.resolve();
    await fixture.settled();
    assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2"]);
    assert.match(await fixture.metrics.prometheus(), /^causeway_lookup_queue_bytes 0$/m);
  });
}

Deno.test("Router.returned() routes a delivered stanza, however old, to where the user is now", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  const old = fromLink(stanza(ALICE, BOB, { id: "old" }), { ttl: 1, mayBeRepeat: true });
  fixture.received(old);
  for (let sequence = 2; sequence < 200; sequence++) {
    fixture.received(fromLink(stanza(ALICE, BOB), { sequence }));
  }
  const delivered = fixture.delivered.length;
  fixture.router.returned(old, "unacknowledged");
  assert.equal(fixture.delivered.length, delivered + 1, "it must not count as a repeat");
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(old, "unacknowledged");
  assert.deepEqual(fixture.sentTo("dc3.example.com"), ["old"]);
  const { process, sequence, origin, ttl, mayBeRepeat } = fixture.sent[0]!.envelope;
  assert.deepEqual([process, sequence, origin, ttl, mayBeRepeat], [
    2,
    1,
    "dc2.example.com",
    3,
    false,
  ]);
});

Deno.test("Router marks stanzas that a session may have had that ended without acknowledging them", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.router.returned(fromLink(stanza(ALICE, BOB, { id: "kept" })), "unacknowledged");
  fixture.router.returned(fromLink(stanza(ALICE, BOB, { id: "unsent" })), "peer-restarted");
  const sent = fromLink(stanza(ALICE, BOB, { id: "sent" }), { mayBeRepeat: true });
  fixture.router.returned(sent, "peer-restarted");
  assert.deepEqual(
    fixture.sent.map(({ envelope }) => [idOf(envelope.stanza), envelope.isRerouted]),
    [["kept", true], ["unsent", false], ["sent", true]],
  );
  fixture.close();
});

Deno.test("Router.returned() answers the sender, and drops stanzas that get no answer", async () => {
  const fixture = new RouterFixture();
  const link = new FakeLink();
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  const shapes = [{}, { kind: "presence", type: "available" }, { type: "error" }] as const;
  for (const [index, shape] of shapes.entries()) {
    fixture.router.returned(
      new Envelope(fromLink(stanza(ALICE, BOB, shape)), link, index),
      "unreadable",
    );
  }
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["not-acceptable"]);
  assert.deepEqual(link.settled.sort(), [0, 1, 2]);
});

Deno.test("Router.returned() drops and settles stanzas of no use later, and answers those without a recipient", async () => {
  const fixture = new RouterFixture({ bounce: false });
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  for (
    const shape of [
      { kind: "presence", type: "available" },
      { kind: "iq", type: "result" },
      { kind: "message", type: "error" },
    ] as const
  ) fixture.router.returned(fromLink(stanza(ALICE, BOB, shape)), "unacknowledged");
  await fixture.settled();
  assert.deepEqual([fixture.lookups, fixture.delivered], [[], []]);
  fixture.router.returned(fromLink(stanza(ALICE, BOB)), "unacknowledged");
  await fixture.settled();
  assert.deepEqual(errorsTo(fixture), ["service-unavailable"]);
});

Deno.test("Router keeps a component's stanzas for two occupants in order", async () => {
  const fixture = new RouterFixture();
  fixture.table.set("bob@example.com", "dc2.example.com");
  fixture.cache.set("carol@example.com", "dc2.example.com");
  fixture.router.accept(stanza("room@muc.example.com/a", "bob@example.com", { id: "1" }));
  fixture.router.accept(stanza("room@muc.example.com/b", "carol@example.com", { id: "2" }));
  assert.deepEqual(fixture.sentTo("dc2.example.com"), []);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2"]);
});

Deno.test("Router slows a sender down that writes on while a lookup holds its stanzas back", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set(BOB, "dc2.example.com");
  fixture.table.set("muc.example.com", "dc2.example.com");
  for (let i = 0; i < 300; i++) {
    fixture.router.accept(stanza(ALICE, BOB, { id: `${i}` }));
    fixture.router.accept(stanza("room@rooms.example.com/n", "r@muc.example.com", { id: `${i}` }));
  }
  assert.deepEqual(fixture.pressure, [`${ALICE} true`, "rooms.example.com true"]);
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.pressure.slice(2), [`${ALICE} false`, "rooms.example.com false"]);
  assert.equal(fixture.sent.length, 600);
  assert.equal(fixture.router.queued, 0);
});

Deno.test("Router answers every stanza for which its sender has no room to wait", async () => {
  const fixture = new RouterFixture({ maxQueued: 10 });
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.local.set(ALICE, "delivered");
  fixture.table.set(ALICE, "dc1.example.com");
  fixture.table.set(BOB, "dc2.example.com");
  for (let i = 0; i < 6; i++) fixture.router.accept(stanza(ALICE, BOB, { id: `${i}` }));
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["0", "1", "2"]);
  assert.deepEqual(errorsTo(fixture), Array(3).fill("resource-constraint"));
});

Deno.test("Router sends a returned stanza before those that wait for a lookup", async () => {
  const fixture = new RouterFixture();
  const gate = Promise.withResolvers<void>();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.router.accept(stanza(ALICE, BOB, { id: "2" }));
  const returned = fixture.sent.splice(0).map(({ envelope }) => envelope);
  fixture.cache.clear();
  fixture.table.set(BOB, "dc2.example.com");
  fixture.gate = gate.promise;
  fixture.router.accept(stanza(ALICE, BOB, { id: "3" }));
  for (const envelope of returned) fixture.router.returned(envelope, "peer-restarted");
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "3"]);
  fixture.close();
});

Deno.test("Router delays only the sender that causes too many lookups, and keeps its order", async () => {
  const fixture = new RouterFixture({ lookupRates: { perAccount: { perSec: 10, burst: 2 } } });
  const to = ["1", "2", "3", "4"].map((name) => `${name}@example.com`);
  for (const each of [...to, BOB]) fixture.table.set(each, "dc2.example.com");
  for (const [i, each] of to.entries()) {
    fixture.router.accept(stanza(ALICE, each, { id: `${i + 1}` }));
    await fixture.settled();
  }
  fixture.router.accept(stanza("alice@example.com/desk", BOB, { id: "5" }));
  fixture.router.accept(stanza("carol@example.com/c", BOB, { id: "6" }));
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "6"]);
  await fixture.clock.advanceAsync(100);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1", "2", "6", "3"]);
  assert.match(
    await fixture.metrics.prometheus(),
    /causeway_lookups_delayed_total\{cause="first"\} 3/,
  );
  await fixture.router.drain();
  assert.deepEqual(fixture.sentTo("dc2.example.com").toSorted(), ["1", "2", "3", "4", "5", "6"]);
  assert.equal(fixture.clock.pendingTimers, 0, "a stop waits for no rate");
  fixture.close();
});

Deno.test("Router also delays a sender that looks up too many of this datacenter's users", async () => {
  for (const sender of [ALICE, "dave@dc1.example.com/x"]) {
    const fixture = new RouterFixture({ lookupRates: { perAccount: { perSec: 10, burst: 2 } } });
    fixture.isUnplaced = true;
    const to = ["1", "2", "3"].map((name) => `carol@dc1.example.com/${name}`);
    for (const each of to) {
      fixture.local.set(each, "delivered");
      fixture.router.accept(stanza(sender, each));
      await fixture.settled();
    }
    assert.deepEqual(fixture.lookups, to.slice(0, 2));
    await fixture.clock.advanceAsync(100);
    await fixture.settled();
    assert.deepEqual(fixture.lookups, to);
    assert.deepEqual(fixture.delivered.map((each) => each.to.text), to);
    fixture.close();
  }
});

Deno.test("Router looks up the recipients of its errors, even when their sender's rate is used up", async () => {
  const fixture = new RouterFixture({
    bounce: false,
    lookupRates: { perAccount: { perSec: 0.001, burst: 1 } },
  });
  fixture.cache.set(BOB, null);
  const senders = ["1", "2", "3"].map((name) => `${name}@example.com/x`);
  for (const each of senders) {
    fixture.table.set(each, "dc2.example.com");
    fixture.router.accept(stanza(each, BOB));
    await fixture.settled();
  }
  assert.deepEqual(fixture.sent.map(({ envelope }) => envelope.stanza.to.text), senders);
  fixture.close();
});

Deno.test("Router sends its error back to where the stanza entered, if the table has lost the sender", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(BOB, "dc1.example.com");
  const link = new FakeLink();
  const message = new Envelope(fromLink(stanza(ALICE, BOB)), link, 7);
  fixture.cache.set(ALICE, "dc3.example.com"); // so that the link teaches nothing new
  fixture.received(message, "dc3.example.com");
  assert.equal(fixture.sentTo("dc3.example.com").length, 1, "the table goes before the link");
  fixture.sent.length = 0;

  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB), { sequence: 2 }), link, 8));
  fixture.cache.set(ALICE, null);
  const owed = fixture.sent.pop()!.envelope;
  fixture.router.returned(owed, "peer-gone");
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  assert.deepEqual(link.settled, [], "its fate is open until the error has met its own");
  fixture.router.returned(fixture.sent.pop()!.envelope, "peer-gone");
  await fixture.settled();
  assert.deepEqual(fixture.sent, [], "it goes there once");
  assert.equal(fixture.router.bouncing, 1);
});

Deno.test("Router sends an error that has bounced in vain back to where its stanza entered", async () => {
  const fixture = new RouterFixture();
  fixture.local.set(BOB, "resource-constraint");
  fixture.cache.set(BOB, "dc1.example.com");
  const link = new FakeLink();
  fixture.cache.set(ALICE, "dc3.example.com");
  fixture.received(new Envelope(fromLink(stanza(ALICE, BOB)), link, 8));
  const owed = fixture.sent.pop()!.envelope;
  fixture.cache.set(ALICE, null);
  fixture.router.accept(stanza("carol@example.com/c", ALICE, { id: "first" }));
  await fixture.settled();
  fixture.router.returned(owed, "peer-gone");
  await fixture.settled();
  assert.equal(fixture.router.bouncing, 2, "it waits behind what bounces for the same address");
  await fixture.clock.advanceAsync(30_000, 100);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["1"]);
  assert.deepEqual(link.settled, []);
  fixture.close();
});

Deno.test("Router holds its error until its recipient is found, and counts it if that never happens", async () => {
  for (const isFound of [true, false]) {
    const fixture = new RouterFixture();
    const link = new FakeLink();
    fixture.local.set(BOB, "resource-constraint");
    fixture.cache.set(BOB, "dc1.example.com");
    fixture.cache.set(ALICE, null);
    fixture.router.accept(stanza(ALICE, BOB), link, 3);
    assert.deepEqual([fixture.router.bouncing, link.settled], [1, []]);
    if (isFound) fixture.table.set(ALICE, "dc3.example.com");
    await fixture.clock.advanceAsync(20_000, 100);
    await fixture.settled();
    assert.equal(fixture.router.bouncing, 0);
    assert.equal(fixture.sentTo("dc3.example.com").length, isFound ? 1 : 0);
    assert.deepEqual(link.settled, isFound ? [] : [3]);
    fixture.close();
  }
});

Deno.test("Router takes a stanza from a known sender for no news of its place", async () => {
  const fixture = new RouterFixture();
  fixture.local.set("dc1.example.com", "delivered");
  fixture.cache.set("bob@example.com/gone", null);
  fixture.cache.set("bob@example.com/x", "dc2.example.com");
  fixture.router.accept(stanza(ALICE, "bob@example.com/gone"));
  for (let i = 0; i < 10; i++) {
    const presence = stanza("bob@example.com/x", "dc1.example.com", { kind: "presence" });
    fixture.received(fromLink(presence, { sequence: i + 1 }));
    await fixture.settled();
  }
  assert.deepEqual([fixture.lookups, fixture.relocated], [[], []]);
  await fixture.router.drain();
  fixture.close();
});

Deno.test("Router delivers stanzas held for an address once another node hands one over for it", () => {
  const fixture = new RouterFixture();
  fixture.cache.set(BOB, null);
  fixture.router.accept(stanza(ALICE, BOB, { id: "1" }));
  fixture.cache.delete(BOB);
  fixture.handedOver(fromLink(stanza(ALICE, BOB, { id: "2" }), { sequence: 2 }));
  assert.equal(fixture.router.bouncing, 2);
  fixture.local.set(BOB, "delivered");
  fixture.handedOver(fromLink(stanza(ALICE, BOB, { id: "3" }), { sequence: 3 }));
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2", "3"]);
  assert.deepEqual([fixture.lookups, fixture.relocated], [[], []]);
  fixture.close();
});

Deno.test("Router gives presence the time at which it began, and other stanzas the present", () => {
  const fixture = new RouterFixture();
  const presence = stanza(ALICE, BOB, { kind: "presence" });
  fixture.router.sendTo("dc2.example.com", { ...presence, sinceUs: 5 });
  fixture.router.sendTo("dc2.example.com", presence);
  const [since, now] = fixture.sent.map(({ envelope }) => envelope.sentAtUs);
  assert.equal(since, 5);
  assert.notEqual(now, 5);
});
