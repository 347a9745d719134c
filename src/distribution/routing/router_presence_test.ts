import assert from "node:assert/strict";
import type { PresenceType } from "../../xmpp/mod.ts";
import { fromLink, RouterFixture, stanza } from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];

function presence(type: PresenceType, to = BOB, from = ALICE) {
  return stanza(from, to, { kind: "presence", type, id: "1" });
}

/** A router whose global and local host have rosters. */
class Fixture extends RouterFixture {
  readonly taken: string[] = [];

  constructor() {
    super();
    this.presence = {
      serves: (domain) => domain === "example.com" || domain === "dc1.example.com",
      take: (envelope) => {
        this.taken.push(`${envelope.stanza.type} ${envelope.stanza.to.text}`);
        envelope.settle();
      },
    };
    this.requests = {
      note: () => {
        throw new Error("Rosters keep the requests");
      },
    };
  }
}

Deno.test("Router gives subscriptions of accounts to the presence server, wherever they come from", () => {
  const fixture = new Fixture();
  for (const type of ["subscribe", "subscribed", "unsubscribe", "unsubscribed"] as const) {
    fixture.router.accept(presence(type));
    fixture.received(fromLink(presence(type, "bob@dc1.example.com")));
  }
  assert.equal(fixture.taken.length, 8);
  assert.deepEqual([fixture.delivered, fixture.sent, fixture.lookups], [[], [], []]);
});

Deno.test("Router brings a subscription stanza to a full JID to that client, and never holds it", async () => {
  const fixture = new Fixture();
  fixture.cache.set(`${BOB}/x`, "dc2.example.com");
  fixture.router.accept(presence("subscribe", `${BOB}/x`));
  assert.equal(fixture.sent[0]?.host, "dc2.example.com");
  fixture.router.accept(presence("subscribe", `${BOB}/gone`));
  await fixture.settled();
  assert.deepEqual([fixture.taken, fixture.router.bouncing], [[], 0]);
});

Deno.test("Router has a probe that enters here allowed first", () => {
  const fixture = new Fixture();
  fixture.router.accept(presence("probe"));
  assert.deepEqual(fixture.taken, [`probe ${BOB}`]);
  fixture.received(fromLink(presence("probe", "bob@dc1.example.com")));
  assert.equal(fixture.taken.length, 2, "the rosters of a local host lie at its datacenter");
});

Deno.test("Router takes presence over a link to an account as meant for this datacenter", () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.local.set(BOB, "delivered");
  for (const [sequence, type] of (["probe", "available", "unavailable"] as const).entries()) {
    fixture.received(fromLink(presence(type, BOB, `${ALICE}/x`), { sequence }));
  }
  assert.deepEqual(fixture.delivered.map(({ type }) => type), [
    "probe",
    "available",
    "unavailable",
  ]);
  assert.deepEqual([fixture.sent, fixture.lookups, fixture.taken], [[], [], []]);
});

Deno.test("Router sends a client's presence for an account to every datacenter where that has sessions", () => {
  const fixture = new Fixture();
  const session = { resourcepart: "x" };
  fixture.spread.set(
    BOB,
    ["dc1", "dc2", "dc3"].map((dc) => ({ ...session, host: `${dc}.example.com` })),
  );
  fixture.sessions.set(BOB, { isHere: true, isResourceHere: false, priority: -1 });
  fixture.local.set(BOB, "delivered");
  for (const host of ["dc1.example.com", "dc3.example.com"]) {
    fixture.cache.set(BOB, host);
    for (const type of ["available", "unavailable"] as const) {
      let settled = 0;
      fixture.router.accept(presence(type, BOB, `${ALICE}/x`), { settle: () => void settled++ });
      const sent = fixture.sent.splice(0);
      assert.deepEqual(sent.map((each) => each.host).toSorted(), [
        "dc2.example.com",
        "dc3.example.com",
      ]);
      assert.deepEqual(sent.map(({ envelope }) => envelope.isCopy), [false, false]);
      assert.deepEqual(fixture.delivered.splice(0).map((each) => each.type), [type]);
      for (const { envelope } of sent) {
        assert.equal(settled, 0, "once all have it");
        envelope.settle();
      }
      assert.equal(settled, 1);
    }
  }
  fixture.router.accept(presence("error", BOB, `${ALICE}/x`));
  assert.deepEqual(fixture.sent.map((each) => each.host), ["dc3.example.com"]);
});

Deno.test("Router sends presence that comes back to one datacenter alone", async () => {
  const fixture = new Fixture();
  fixture.spread.set(
    BOB,
    ["dc2", "dc3"].map((dc) => ({ host: `${dc}.example.com`, resourcepart: dc })),
  );
  fixture.table.set(BOB, "dc2.example.com");
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(presence("available", BOB, `${ALICE}/x`));
  const [{ envelope }] = fixture.sent.splice(0) as [typeof fixture.sent[number]];
  fixture.router.returned(envelope, "peer-gone");
  await fixture.settled();
  assert.deepEqual(fixture.sent.map(({ host }) => host), ["dc2.example.com"]);
});

Deno.test("Router.sendTo() sends to one datacenter, wherever else the account is", () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc3.example.com");
  fixture.spread.set(
    BOB,
    ["dc1", "dc2", "dc3"].map((dc) => ({ host: `${dc}.example.com`, resourcepart: dc })),
  );
  fixture.local.set(BOB, "delivered");
  fixture.router.sendTo("dc2.example.com", presence("available", BOB, `${ALICE}/x`));
  fixture.router.sendTo("dc1.example.com", presence("available", BOB, `${ALICE}/x`));
  assert.deepEqual(fixture.sent.map(({ host }) => host), ["dc2.example.com"]);
  assert.equal(fixture.delivered.length, 1);
});

Deno.test("Router routes presence of hosts without rosters as it always did", () => {
  const fixture = new Fixture();
  fixture.presence = undefined;
  fixture.requests = undefined;
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.received(fromLink(presence("available", BOB, `${ALICE}/x`)));
  fixture.router.accept(presence("unavailable"));
  assert.deepEqual(fixture.sent.map(({ host }) => host), ["dc2.example.com", "dc2.example.com"]);
});

Deno.test("Router lets no probe out of a datacenter whose configuration has no rosters", () => {
  const fixture = new Fixture();
  fixture.presence = undefined;
  fixture.requests = undefined;
  for (const to of [BOB, `${BOB}/x`]) {
    fixture.cache.set(to, "dc2.example.com");
    let isSettled = false;
    fixture.router.accept(presence("probe", to), { settle: () => void (isSettled = true) });
    assert.ok(isSettled);
    // The nodes of this datacenter ask each other for the presence of an account's own resources.
    fixture.router.copy(presence("probe", to, `${BOB}/y`));
  }
  assert.deepEqual([fixture.sent, fixture.lookups], [[], []]);
  fixture.router.accept(presence("probe", "bob@dc2.example.com"));
  assert.equal(fixture.sent.length, 1, "dc2 has the rosters of its own host, and looks there");
});
