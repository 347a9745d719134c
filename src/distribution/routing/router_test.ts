import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import { FakeLink, fromLink, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";
import { ALICE, BOB, BOB_AT_DESK, errorsTo } from "./testing/people.ts";

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
