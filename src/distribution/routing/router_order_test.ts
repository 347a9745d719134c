import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import type { ReturnReason } from "../mod.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";
import type { Place } from "./testing/moving_accounts.ts";
import { OrderWorld } from "./testing/order_world.ts";

const ALICE = "alice@example.com/a";
const BOB = "bob@example.com/b";
const CAROL = "carol@example.com/c";
const DC2 = "dc2.example.com";

/** A fixture with bob at dc2, or nowhere, according to the cache. */
class Wandering extends RouterFixture {
  constructor(options: ConstructorParameters<typeof RouterFixture>[0] = {}) {
    super(options);
    this.cameTo(DC2);
  }

  cameTo(host: string): void {
    this.cache.set(BOB, host);
    this.table.set(BOB, host);
  }

  left(): void {
    this.cache.set(BOB, null);
    this.table.delete(BOB);
  }

  send(from: string, id: string, to = BOB): void {
    this.router.accept(stanza(from, to, { id }));
  }

  /** All stanzas that the lane holds. */
  held(): Envelope[] {
    return this.sent.splice(0).map(({ envelope }) => envelope);
  }

  /** Returns alice's first stanza, which a lane holds, while her second bounces. */
  heldBeforeBounced(): Envelope[] {
    this.send(ALICE, "1");
    const held = this.held();
    this.left();
    this.send(ALICE, "2");
    return held;
  }

  giveBack(envelopes: readonly Envelope[], reason: ReturnReason = "peer-restarted"): void {
    for (const envelope of envelopes) this.router.returned(envelope, reason);
  }
}

Deno.test("Router sends a returned stanza before later ones that bounce, whatever the cache knows", async () => {
  const knowledge: Record<string, (fixture: RouterFixture) => void> = {
    "memory still has the old place": (fixture) => fixture.cache.set(BOB, DC2),
    "nothing is known": (fixture) => fixture.cache.delete(BOB),
    "memory has a miss": (fixture) => fixture.cache.set(BOB, null),
  };
  for (const [what, know] of Object.entries(knowledge)) {
    const fixture = new Wandering();
    const gate = Promise.withResolvers<void>();
    for (const id of ["1", "2"]) fixture.send(ALICE, id);
    const held = fixture.held();
    fixture.left();
    for (const id of ["3", "4"]) fixture.send(ALICE, id);
    fixture.send(CAROL, "c");
    assert.equal(fixture.router.bouncing, 3);

    fixture.gate = gate.promise;
    fixture.table.set(BOB, DC2);
    know(fixture);
    fixture.giveBack(held);
    fixture.cameTo(DC2);
    fixture.router.revealed(parseJid(BOB));
    gate.resolve();
    await fixture.settled();
    const sent = fixture.sentTo(DC2);
    assert.deepEqual(sent.filter((id) => id !== "c"), ["1", "2", "3", "4"], what);
    assert.equal(sent.length, 5);
    fixture.close();
  }
});

for (const batch of [["1", "c", "2"], ["c", "1", "2"], ["1", "2", "c"]]) {
  Deno.test(`Router keeps two senders' order when ${batch} come back at once and more bounces`, async () => {
    const fixture = new Wandering();
    for (const id of batch) fixture.send(id === "c" ? CAROL : ALICE, id);
    const held = fixture.held();
    fixture.left();
    fixture.send(ALICE, "3");
    fixture.cameTo(DC2);
    fixture.giveBack(held);
    await fixture.settled();
    const sent = fixture.sentTo(DC2);
    assert.deepEqual(sent.filter((id) => id !== "c"), ["1", "2", "3"]);
    assert.equal(sent.length, 4);
    fixture.close();
  });
}

Deno.test("Router adds a returned stanza to those that bounce while a lookup holds its sender up", async () => {
  const fixture = new Wandering();
  const held = fixture.heldBeforeBounced();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.send(ALICE, "other", "dave@example.com/d");
  fixture.giveBack(held);
  fixture.cameTo(DC2);
  fixture.router.revealed(parseJid(BOB));
  await fixture.settled();
  assert.deepEqual(fixture.sentTo(DC2), ["1", "2"]);
  gate.resolve();
  await fixture.settled();
  fixture.close();
});

Deno.test("Router sends stanzas returned a second time before those that wait since the first", async () => {
  const fixture = new Wandering();
  const dave = "dave@example.com/d";
  const gate = Promise.withResolvers<void>();
  fixture.cache.set(dave, DC2);
  fixture.table.set(dave, DC2);
  fixture.send(ALICE, "1");
  fixture.send(ALICE, "d", dave);
  fixture.send(ALICE, "2");
  const held = fixture.held();
  fixture.cache.delete(dave);
  fixture.gate = gate.promise;
  fixture.giveBack(held); // 1 is sent at once, 2 waits behind the one in a lookup
  fixture.giveBack(fixture.held());
  gate.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.sentTo(DC2).filter((id) => id !== "d"), ["1", "2"]);
  fixture.close();
});

Deno.test("Router takes a returned stanza although the bounce is full, once the place is known", async () => {
  const fixture = new Wandering({ bounce: { maxItems: 1 } });
  fixture.cache.set(ALICE, "dc1.example.com");
  fixture.local.set(ALICE, "delivered");
  fixture.send(ALICE, "1");
  fixture.router.answer(stanza(ALICE, BOB, { type: "error", id: "e" }), undefined);
  const held = fixture.held();
  fixture.left();
  fixture.send(ALICE, "2");
  fixture.cameTo(DC2);
  fixture.giveBack(held);
  await fixture.settled();
  assert.deepEqual([fixture.sentTo(DC2), fixture.delivered.map(conditionOf)], [
    ["1", "e", "2"],
    [],
  ]);
  fixture.close();
});

Deno.test("Router does not refuse a returned stanza out of retries while its place is known", async () => {
  const fixture = new Wandering();
  fixture.received(new Envelope({ ...fromLink(stanza(ALICE, BOB)), bounces: 4 }));
  const held = fixture.held();
  fixture.left();
  fixture.received(fromLink(stanza(ALICE, BOB, { id: "2" }), { sequence: 2 }));
  fixture.cameTo("dc3.example.com");
  fixture.giveBack(held);
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc3.example.com"), ["1", "2"]);
  fixture.close();
});

Deno.test("Router.drain() keeps the order of stanzas returned while it waits for a lookup", async () => {
  const fixture = new Wandering();
  const held = fixture.heldBeforeBounced();
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  fixture.table.set("dave@example.com", DC2);
  fixture.send(CAROL, "other", "dave@example.com/d");
  const drained = fixture.router.drain();
  fixture.cameTo(DC2);
  fixture.giveBack(held);
  gate.resolve();
  await drained;
  assert.deepEqual(fixture.sentTo(DC2).filter((id) => id !== "other"), ["1", "2"]);
  fixture.close();
});

Deno.test("Router.drain() leaves open a component's stanza behind one that it left open for another occupant", async () => {
  const fixture = new Wandering();
  const link = new FakeLink();
  await fixture.router.drain();
  fixture.left();
  const [a, b] = ["a", "b"].map((nick) => stanza(`room@muc.example.com/${nick}`, BOB));
  fixture.received(new Envelope(fromLink(a!), link, 1));
  await fixture.settled();
  fixture.cameTo(DC2);
  fixture.received(new Envelope(fromLink(b!, { sequence: 2 }), link, 2));
  await fixture.settled();
  assert.deepEqual([link.left, fixture.sentTo(DC2)], [[1, 2], []]);
  fixture.close();
});

Deno.test("Router keeps a stanza that bounces behind an earlier one at a node that the recipient has left", async () => {
  const account = "bob@example.com";
  const bounds = { bounce: 1000, lookup: 1000, handover: 1000, lane: 1000 };
  const world = new OrderWorld({ [account]: ["b"] }, bounds);
  const moved = (place: Place) => {
    world.move(account, "b", place);
    world.learn(account);
  };
  const send = (from: string, id: string) => world.send(stanza(from, BOB, { id }));
  moved(DC2);
  send(CAROL, "c1");
  moved("n2");
  send(ALICE, "1");
  moved("nobody");
  send(CAROL, "c2"); // bounces
  world.giveBack(DC2, "peer-restarted"); // c1 bounces too: nothing goes on until all are back
  moved("n2");
  send(ALICE, "2"); // may go to n2 at once, but waits behind carol's
  moved("n3");
  await world.settled();
  world.work("n3", Infinity); // n2 is slow
  await world.end();
  const ofAlice = world.arrived.filter(({ entry }) => entry.pair.startsWith(ALICE));
  assert.deepEqual(ofAlice.map(({ entry }) => entry.id), ["1", "2"]);
});

Deno.test("Router keeps every sender's order and gives each stanza one fate, whatever happens when", async () => {
  const senders = [ALICE, CAROL, "room@muc.example.com/x"];
  const step = fc.record({
    kind: fc.constantFrom(
      ...["send", "send", "send", "leave", "come", "come", "reveal", "forget"],
      ...["restart", "gone", "deliver", "turn", "clock", "gate", "other"],
    ),
    of: fc.nat({ max: 2 }),
    ms: fc.nat({ max: 300 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const fixture = new Wandering();
      fixture.domains.add("muc.example.com");
      for (const sender of senders) {
        fixture.cache.set(sender, "dc1.example.com");
        fixture.local.set(sender, "delivered");
      }
      const arrived: string[] = [];
      const arrive = (most: number) => {
        for (const { envelope, host } of fixture.sent.splice(0, most)) {
          if (host === DC2) arrived.push(idOf(envelope.stanza));
        }
      };
      const counts = [0, 0, 0];
      let open: (() => void) | undefined;
      for (const { kind, of, ms } of steps) {
        if (kind === "send") fixture.send(senders[of]!, `${of}-${++counts[of]!}`);
        else if (kind === "leave") fixture.left();
        else if (kind === "come") fixture.cameTo(DC2);
        else if (kind === "reveal") fixture.router.revealed(parseJid(BOB));
        else if (kind === "forget") fixture.cache.delete(BOB);
        else if (kind === "restart") fixture.giveBack(fixture.held());
        else if (kind === "gone") fixture.giveBack(fixture.held(), "peer-gone");
        else if (kind === "deliver") arrive(of);
        else if (kind === "turn") await fixture.settled();
        else if (kind === "clock") fixture.clock.advance(ms);
        else if (kind === "other") {
          fixture.cache.delete("dave@example.com/d");
          fixture.table.set("dave@example.com", "dc3.example.com");
          fixture.send(senders[of]!, "other", "dave@example.com/d");
        } else {
          open?.();
          const gate = open === undefined ? Promise.withResolvers<void>() : undefined;
          fixture.gate = gate?.promise;
          open = gate?.resolve;
        }
      }
      open?.();
      fixture.gate = undefined;
      for (let round = 0; round < 12; round++) {
        await fixture.settled();
        fixture.clock.advance(700);
      }
      await fixture.settled();
      arrive(Infinity);
      const answered = fixture.delivered.map(idOf).filter((id) => id !== "other");
      for (const of of senders.keys()) {
        const numbers = arrived.filter((id) => id.startsWith(`${of}-`)).map((id) =>
          Number(id.slice(2))
        );
        assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b));
      }
      const all = counts.flatMap((count, of) =>
        Array.from({ length: count }, (_, at) => `${of}-${at + 1}`)
      );
      const isOther = (id: string) => id === "other";
      const fates = [...arrived.filter((id) => !isOther(id)), ...answered];
      assert.deepEqual(fates.toSorted(), all.toSorted());
      assert.equal(fixture.router.bouncing, 0);
      fixture.close();
    }),
    { numRuns: 2000 },
  );
});
