import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  OWN_PROCESS,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/a";
const BOB = "bob@example.com/b";

/** A stanza as it comes from another node of this datacenter. */
function handed(id: string, shape: { sequence?: number; isCopy?: boolean } = {}): Envelope {
  const { sequence = 1, isCopy = false } = shape;
  const envelope = fromLink(stanza(ALICE, BOB, { id }), { origin: "dc1.example.com", sequence });
  return new Envelope({ ...envelope, isCopy });
}

Deno.test("Router.route() delivers here without asking the table", () => {
  const f = new RouterFixture();
  f.cache.set(BOB, "dc2.example.com");
  f.local.set(BOB, "delivered");
  f.handedOver(handed("1"));
  assert.deepEqual(f.delivered.map(idOf), ["1"]);
  assert.deepEqual([f.lookups, f.sent], [[], []]);
  f.close();
});

Deno.test("Router.route() bounces a stanza that finds no session, and looks it up itself", async () => {
  const f = new RouterFixture();
  f.cache.set(BOB, "dc1.example.com");
  f.handedOver(handed("1"));
  assert.equal(f.router.bouncing, 1);
  assert.deepEqual(f.forgotten, [BOB]);
  f.table.set(BOB, "dc2.example.com");
  f.clock.advance(200);
  await f.settled();
  assert.deepEqual(f.sentTo("dc2.example.com"), ["1"]);
  f.close();
});

Deno.test("Router.route() keeps order behind stanzas that bounce for the address", async () => {
  const f = new RouterFixture();
  f.handedOver(handed("1", { sequence: 1 }));
  f.handedOver(handed("2", { sequence: 2 }));
  assert.equal(f.router.bouncing, 2);
  f.local.set(BOB, "delivered");
  f.cache.set(BOB, "dc1.example.com");
  f.handedOver(handed("3", { sequence: 3 }));
  assert.deepEqual(f.delivered.map(idOf), ["1", "2", "3"]);
  await f.settled();
  f.close();
});

Deno.test("Router.route() gives a copy to the sessions here at once, whatever bounces for the address", async () => {
  for (const outcome of ["delivered", "ignored"] as const) {
    const f = new RouterFixture();
    f.handedOver(handed("1", { sequence: 1 }));
    f.cache.set(BOB, "dc1.example.com");
    // The sessions here get carbons alone: the message itself waits for others.
    const outcomes = ["no-session", outcome] as const;
    let next = 0;
    f.local.get = () => outcomes[next++]!;
    let settled = 0;
    const copy = handed("2", { sequence: 2, isCopy: true });
    f.handedOver(new Envelope(copy, { settle: () => void settled++ }, 1));
    assert.deepEqual(f.delivered.map(idOf), outcome === "delivered" ? ["2"] : []);
    assert.deepEqual([f.router.bouncing, settled], [1, 1]);
    f.local.get = () => undefined;
    await f.router.drain();
    f.close();
  }
});

Deno.test("Router.route() waits behind its sender's earlier stanza", async () => {
  const f = new RouterFixture();
  const { promise, resolve } = Promise.withResolvers<void>();
  f.gate = promise;
  f.local.set(BOB, "delivered");
  f.table.set("bob@example.com", "dc1.example.com");
  f.received(fromLink(stanza(ALICE, BOB, { id: "1" })));
  f.handedOver(handed("2", { sequence: 2 }));
  assert.deepEqual(f.delivered, []);
  resolve();
  await f.router.drain();
  assert.deepEqual(f.delivered.map(idOf), ["1", "2"]);
  f.close();
});

Deno.test("Router.route() learns where the sender is from a stanza of another datacenter", () => {
  const f = new RouterFixture();
  f.local.set(BOB, "delivered");
  f.handedOver(fromLink(stanza("carol@example.com/c", BOB)));
  assert.equal(f.cache.get("carol@example.com/c"), "dc2.example.com");
  f.handedOver(handed("2"));
  assert.equal(f.cache.get(ALICE), undefined, "a stanza of our own datacenter teaches nothing");
  f.close();
});

Deno.test("Router does not count a handed-over stanza as delivered", async () => {
  const f = new RouterFixture();
  f.table.set(BOB, "dc1.example.com");
  f.cache.set(BOB, "dc1.example.com");
  f.local.set(BOB, "handed-over");
  const envelope = fromLink(stanza(ALICE, BOB, { id: "1" }));
  f.received(envelope);
  // The node that had the stanza died, and the session has come here.
  envelope.mayBeRepeat = true;
  f.local.set(BOB, "delivered");
  f.router.returned(envelope, "node-gone");
  await f.settled();
  assert.deepEqual(f.delivered.map(idOf), ["1"]);
  f.close();
});

Deno.test("Router.returned() routes a dead node's stanzas anew, without giving a hop back", async () => {
  const f = new RouterFixture();
  f.table.set(BOB, "dc2.example.com");
  const envelope = fromLink(stanza(ALICE, BOB, { id: "1" }), { ttl: 3 });
  f.router.returned(envelope, "node-gone");
  await f.settled();
  assert.deepEqual(f.forgotten, [BOB]);
  assert.deepEqual(f.sentTo("dc2.example.com"), ["1"]);
  assert.equal(envelope.ttl, 2);
  f.close();
});

Deno.test("Router.returned() answers with the error for the reason", () => {
  for (
    const [reason, condition] of [
      ["full", "resource-constraint"],
      ["expired", "remote-server-timeout"],
    ] as const
  ) {
    const f = new RouterFixture();
    f.cache.set(ALICE, "dc1.example.com");
    f.local.set(ALICE, "delivered");
    f.router.returned(handed("1"), reason);
    assert.deepEqual(f.delivered.map(conditionOf), [condition]);
    f.close();
  }
});

Deno.test("Router.returned() leaves a stanza from a link open when this node leaves", () => {
  const f = new RouterFixture();
  f.cache.set(ALICE, "dc1.example.com");
  f.local.set(ALICE, "delivered");
  const link = new FakeLink();
  f.router.returned(new Envelope(handed("1"), link, 7), "leaving");
  assert.deepEqual([link.settled, link.left, f.delivered], [[], [7], []]);
  const own = new Envelope({ ...handed("2"), process: OWN_PROCESS });
  f.router.returned(own, "leaving");
  assert.deepEqual(f.delivered.map(conditionOf), ["service-unavailable"]);
  f.close();
});

Deno.test("Router.returned() drops a copy, whatever the reason", () => {
  for (const reason of ["full", "expired", "leaving", "node-gone"] as const) {
    const f = new RouterFixture();
    let settled = 0;
    const copy = new Envelope(handed("1", { isCopy: true }), { settle: () => void settled++ });
    f.router.returned(copy, reason);
    assert.deepEqual([settled, f.lookups, f.delivered], [1, [], []]);
    f.close();
  }
});

Deno.test("Router.copy() delivers nothing here", () => {
  const f = new RouterFixture();
  f.local.set("alice@example.com", "delivered");
  f.router.copy(stanza(ALICE, "alice@example.com", { kind: "presence", type: "available" }));
  assert.deepEqual(f.delivered, []);
  f.close();
});

Deno.test("Router.envelopCopy() gives each stanza a number of its own", () => {
  const f = new RouterFixture();
  const [one, two] = ["1", "2"].map((id) => f.router.envelopCopy(stanza(BOB, ALICE, { id })));
  assert.ok(one!.isCopy && two!.isCopy);
  assert.notEqual(one!.sequence, two!.sequence);
  assert.deepEqual([f.delivered, f.lookups], [[], []]);
  f.close();
});

Deno.test("Router.returned() leaves an answer's request unsettled when this node leaves", () => {
  const f = new RouterFixture();
  let settled = 0;
  const error = stanza(BOB, ALICE, { type: "error" });
  const answer = new Envelope(fromLink(error), { settle: () => void settled++ });
  f.router.returned(answer, "leaving");
  assert.equal(settled, 0, "the node that sent the request may still route it elsewhere");
  assert.deepEqual(f.delivered, []);
  f.close();
});

Deno.test("Router leaves stanzas kept behind others alone, and answers those without room", async () => {
  const f = new RouterFixture();
  for (const [jid, host] of [[BOB, "dc1.example.com"], [ALICE, "dc1.example.com"]] as const) {
    f.cache.set(jid, host);
    f.local.set(jid, "delivered");
  }
  f.kept.set(BOB, true);
  f.router.accept(stanza(ALICE, BOB, { id: "1" }));
  assert.deepEqual(f.delivered, []);
  f.kept.set(BOB, "full");
  f.router.accept(stanza(ALICE, BOB, { id: "2" }));
  assert.deepEqual(f.delivered.map(conditionOf), ["resource-constraint"]);
  assert.match(await f.metrics.prometheus(), /without_room_total\{queue="handover"\} 1/);
  f.close();
});

Deno.test("Router keeps a stanza that bounced behind earlier ones at another node", () => {
  for (const kept of [true, "full"] as const) {
    const f = new RouterFixture();
    f.cache.set(ALICE, "dc1.example.com");
    f.local.set(ALICE, "delivered");
    f.cache.set(BOB, null);
    f.router.accept(stanza(ALICE, BOB, { id: "1" }));
    assert.equal(f.router.bouncing, 1);
    f.kept.set(BOB, kept);
    f.cache.set(BOB, "dc1.example.com");
    f.local.set(BOB, "delivered");
    f.router.revealed(parseJid(BOB));
    assert.equal(f.router.bouncing, 0);
    const answers = kept === true ? [] : ["resource-constraint"];
    assert.deepEqual(f.delivered.map(conditionOf), answers);
    f.close();
  }
});

Deno.test("Router.returned() looks up stanzas from a node that is gone anew, before those that waited", async () => {
  const f = new RouterFixture();
  f.local.set(BOB, "delivered");
  f.cache.set(BOB, "dc3.example.com");
  f.table.set(BOB, "dc1.example.com");
  const [first, second, third] = [1, 2, 3].map((sequence) => handed(`${sequence}`, { sequence }));
  for (const each of [first!, second!]) f.router.returned(each, "node-gone");
  f.router.returned(third!, "waited");
  await f.settled();
  assert.deepEqual(f.delivered.map(idOf), ["1", "2", "3"]);
  f.close();
});

Deno.test("Router.drain() gives up stanzas that wait within the datacenter", async () => {
  const f = new RouterFixture();
  f.cache.set(ALICE, "dc1.example.com");
  f.local.set(ALICE, "delivered");
  const link = new FakeLink();
  f.waiting.push(new Envelope(handed("1"), link, 5), new Envelope(handed("2")));
  await f.router.drain();
  assert.deepEqual(link.left, [5]);
  assert.deepEqual(f.delivered.map(conditionOf), ["service-unavailable"]);
  f.close();
});

Deno.test("Router delivers a stanza once that a node gives back late", async () => {
  const f = new RouterFixture();
  f.table.set(BOB, "dc1.example.com");
  f.local.set(BOB, "delivered");
  const own = { ...handed("1"), process: OWN_PROCESS };
  f.router.returned(new Envelope({ ...own, mayBeRepeat: true }), "node-gone");
  await f.settled();
  f.handedOver(new Envelope(own));
  assert.deepEqual(f.delivered.map(idOf), ["1"]);
  f.close();
});

Deno.test("Router.returned() lets the same stanza come back to where it was before", () => {
  const f = new RouterFixture();
  f.local.set(BOB, "delivered");
  const envelope = handed("1");
  f.handedOver(envelope);
  envelope.arrived("here"); // as a datacenter's side does
  f.cache.set(BOB, "dc2.example.com");
  f.router.returned(envelope, "unacknowledged");
  assert.deepEqual(f.sentTo("dc2.example.com"), ["1"]);
  f.handedOver(handed("1"));
  assert.deepEqual(f.delivered.map(idOf), ["1", "1"]);
  f.close();
});
