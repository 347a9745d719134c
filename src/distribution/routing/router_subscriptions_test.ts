import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import type { PresenceType } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import type { RouterDeps } from "./router_options.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];

function presence(type: PresenceType, id = "1", to = BOB) {
  return stanza(ALICE, to, { kind: "presence", type, id });
}

/** A router whose keeper writes when the test says so. */
class Fixture extends RouterFixture {
  readonly noted: string[] = [];
  /** Calls to keepers. */
  readonly told: string[] = [];
  readonly written = Promise.withResolvers<void>();
  isBroken = false;

  constructor(budget?: RouterDeps["budget"]) {
    super({}, budget);
    this.local.set(`${ALICE}`, "ignored");
    this.requests = {
      note: (stanza) => {
        this.noted.push(`${stanza.type} ${idOf(stanza)}`);
        if (stanza.type !== "subscribe") return undefined;
        const id = idOf(stanza);
        return this.written.promise.then(() =>
          this.isBroken ? undefined : {
            settle: () => void this.told.push(`${id} settled`),
            stays: () => void this.told.push(`${id} stays`),
          }
        );
      },
    };
  }
}

Deno.test("Router settles a subscription request once it is kept, wherever its contact is", async () => {
  for (const host of ["dc1.example.com", "dc2.example.com", null]) {
    const fixture = new Fixture();
    const client = new FakeLink();
    fixture.cache.set(BOB, host);
    fixture.local.set(BOB, "delivered");
    fixture.router.accept(presence("subscribe"), client, 7);
    await fixture.settled();
    assert.deepEqual([client.settled, fixture.sent, fixture.delivered], [[], [], []]);
    fixture.written.resolve();
    await fixture.settled();
    assert.deepEqual(client.settled, [7], `${host}`);
    assert.equal(fixture.sent.length, host === "dc2.example.com" ? 1 : 0);
    assert.equal(fixture.delivered.length, host === "dc1.example.com" ? 1 : 0);
    assert.equal(fixture.router.bouncing, 0);
    if (host === null) assert.deepEqual(fixture.told, ["1 stays"]);
    fixture.close();
  }
});

Deno.test("Router tells a request's keeper whether another node has it", async () => {
  const fixture = new Fixture();
  fixture.written.resolve();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(presence("subscribe", "1"));
  fixture.router.accept(presence("subscribe", "2"));
  await fixture.settled();
  assert.deepEqual(fixture.told, []);
  fixture.sent[0]!.envelope.settle();
  fixture.router.returned(fixture.sent[1]!.envelope, "expired");
  assert.deepEqual(fixture.told, ["1 settled", "2 stays"]);
  assert.deepEqual(fixture.delivered, [], "no error is sent");
  fixture.close();
});

Deno.test("Router leaves a request for a user who is here but unavailable to its keeper", async () => {
  const fixture = new Fixture();
  fixture.written.resolve();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "ignored");
  fixture.router.accept(presence("subscribe"));
  await fixture.settled();
  assert.deepEqual(fixture.told, ["1 stays"]);
  fixture.close();
});

Deno.test("Router keeps the order of presence that manages a subscription", async () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc2.example.com");
  for (const [i, type] of (["subscribe", "unsubscribe", "subscribed"] as const).entries()) {
    fixture.router.accept(presence(type, `${i}`));
  }
  fixture.router.accept(stanza(`${ALICE}/x`, BOB, { id: "message" }));
  assert.deepEqual(fixture.noted, ["subscribe 0"]);
  fixture.written.resolve();
  await fixture.settled();
  assert.deepEqual(fixture.noted, ["subscribe 0", "unsubscribe 1", "subscribed 2"]);
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["message", "0", "1", "2"]);
  fixture.close();
});

Deno.test("Router keeps a request from another datacenter or node before that one may forget it", async () => {
  const fixture = new Fixture();
  const link = new FakeLink();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.received(new Envelope(fromLink(presence("subscribe", "1")), link, 1));
  const handed = fromLink(presence("subscribe", "2"), { sequence: 2 });
  fixture.handedOver(new Envelope(handed, link, 2));
  await fixture.settled();
  assert.deepEqual(link.settled, []);
  fixture.written.resolve();
  await fixture.settled();
  assert.deepEqual(link.settled, [1, 2]);
  assert.deepEqual(fixture.delivered.map(idOf), ["1", "2"]);
  fixture.close();
});

Deno.test("Router notes only users' subscriptions, and no copies", async () => {
  const fixture = new Fixture();
  fixture.table.set("echo.example.com", "dc2.example.com");
  for (const to of ["echo.example.com", "dc2.example.com", "x@dc2.example.com", "example.com"]) {
    fixture.router.accept(presence("subscribe", "1", to));
  }
  fixture.router.copy(presence("subscribe"));
  fixture.router.accept(presence("available"));
  await fixture.settled();
  assert.deepEqual(fixture.noted, []);
  fixture.router.accept(presence("subscribe", "1", "carol@dc1.example.com"));
  assert.deepEqual(fixture.noted, ["subscribe 1"]);
  fixture.written.resolve();
  await fixture.settled();
  fixture.close();
});

Deno.test("Router routes a request that could not be kept like any stanza of its sender", async () => {
  const fixture = new Fixture();
  fixture.isBroken = true;
  fixture.written.resolve();
  const client = new FakeLink();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(presence("subscribe"), client, 7);
  await fixture.settled();
  assert.deepEqual(client.settled, []);
  fixture.sent[0]!.envelope.settle();
  assert.deepEqual(client.settled, [7]);
  fixture.close();
});

Deno.test("Router leaves a request that finds no room to its keeper, and refuses it once", async () => {
  const full = new FairShares({ maxBytes: 1 });
  const fixture = new Fixture({ lookup: full, bounce: full });
  const client = new FakeLink();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(presence("subscribe"), client, 7);
  assert.deepEqual(client.settled, [7]);
  fixture.written.resolve();
  await fixture.settled();
  assert.deepEqual([fixture.sent.length, fixture.told, client.settled], [0, ["1 stays"], [7]]);
  assert.match(
    await fixture.metrics.prometheus(),
    /causeway_stanzas_dropped_total\{reason="refused"\} 1/,
  );
  fixture.close();
});

Deno.test("Router sends no error when an answer to a request, or its end, finds no session", async () => {
  for (const type of ["subscribed", "unsubscribe", "unsubscribed"] as const) {
    const fixture = new Fixture();
    fixture.local.set(ALICE, "delivered");
    fixture.cache.set(ALICE, "dc1.example.com");
    fixture.router.accept(presence(type));
    for (let i = 0; i < 100; i++) {
      fixture.clock.advance(100);
      await fixture.settled();
    }
    assert.equal(fixture.router.bouncing, 0);
    assert.deepEqual(fixture.delivered.map(conditionOf), [], type);
    assert.match(
      await fixture.metrics.prometheus(),
      /causeway_stanzas_dropped_total\{reason="no-route"\} 1/,
    );
    fixture.close();
  }
});

Deno.test("Router sends a kept request of another datacenter's user with that datacenter as origin", () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc3.example.com");
  const keeper = { settle: () => {}, stays: () => {} };
  // A store's record of the request, which has the stanza's bytes beside the place of its entry.
  const entry = { stanza: new Uint8Array(4), origin: "dc2.example.com", process: 5, sequence: 8 };
  const from = (sender: string) => stanza(sender, BOB, { kind: "presence", type: "subscribe" });
  fixture.router.acceptKept(from("dave@dc2.example.com"), keeper, entry);
  fixture.router.acceptKept(from(ALICE), keeper, entry);
  assert.deepEqual(fixture.noted, [], "it is kept already");
  assert.deepEqual(
    fixture.sent.map(({ envelope: { origin, process, sequence } }) => [origin, process, sequence]),
    [["dc2.example.com", 5, 8], ["dc1.example.com", 1, 2]],
  );
  const { stanza: sent } = fixture.sent[0]!.envelope;
  assert.equal(sent.from.text, "dave@dc2.example.com");
  fixture.close();
});
