import assert from "node:assert/strict";
import type { StanzaErrorCondition } from "../../xmpp/mod.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com/desk", "bob@example.com"];

/** A router whose keeper takes what the test says, and answers when it says so. */
class Fixture extends RouterFixture {
  readonly asked: string[] = [];
  readonly outcomes: {
    kept(): void;
    refused(condition: StanzaErrorCondition): void;
    dropped(): void;
  }[] = [];
  isTaking = true;

  constructor(maxItems?: number) {
    super({
      bounce: {
        resendAfterMs: 100,
        maxRetries: 1,
        ...(maxItems !== undefined && { maxItems }),
      },
    });
    this.local.set(ALICE, "delivered");
    this.cache.set(ALICE, "dc1.example.com");
    this.offline = {
      keep: (message, _sentAtMs, outcome) => {
        this.asked.push(idOf(message)!);
        if (this.isTaking) this.outcomes.push(outcome);
        return this.isTaking;
      },
      refuse: (message, { refused, dropped }) => {
        this.asked.push(`full ${idOf(message)}`);
        const kept = () => assert.fail("There was no room.");
        if (this.isTaking) this.outcomes.push({ kept, refused, dropped });
        return this.isTaking;
      },
    };
  }

  /** Lets a stanza that finds nobody use up its retry. */
  async giveUp(): Promise<void> {
    await this.settled();
    this.clock.advance(1_000);
    await this.settled();
  }
}

const message = (id: string) => stanza(ALICE, BOB, { kind: "message", type: "chat", id });

Deno.test("Router settles a message that finds nobody once it is kept, after the last retry", async () => {
  const fixture = new Fixture();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  await fixture.settled();
  assert.deepEqual(fixture.asked, [], "it bounces");
  await fixture.giveUp();
  assert.deepEqual([fixture.asked, client.settled], [["1"], []]);
  fixture.outcomes[0]!.kept();
  assert.deepEqual([client.settled, fixture.delivered], [[7], []]);
  fixture.close();
});

Deno.test("Router answers a message that could not be kept, or is not one to keep", async () => {
  for (const isTaking of [true, false]) {
    const fixture = new Fixture();
    fixture.isTaking = isTaking;
    fixture.router.accept(message("1"));
    await fixture.giveUp();
    fixture.outcomes[0]?.refused("internal-server-error");
    const expected = isTaking ? "internal-server-error" : "service-unavailable";
    assert.deepEqual(fixture.delivered.map(conditionOf), [expected]);
    fixture.close();
  }
});

Deno.test("Router tells no stranger by an error that a message found no room to bounce in", async () => {
  for (const type of ["chat", "normal", "headline"] as const) {
    const fixture = new Fixture(5); // one for each sender and recipient
    const client = new FakeLink();
    const flood = (id: string) => stanza(ALICE, BOB, { kind: "message", type, id });
    for (const id of [1, 2, 3]) fixture.router.accept(flood(`${id}`), client, id);
    await fixture.settled();
    assert.deepEqual(fixture.asked, ["full 2", "full 3"]);
    assert.deepEqual([client.settled, fixture.delivered], [[], []]);
    fixture.outcomes[0]!.dropped();
    assert.deepEqual([client.settled, fixture.delivered], [[2], []]);
    fixture.outcomes[1]!.refused("resource-constraint");
    assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
    const shown = await fixture.metrics.prometheus();
    assert.match(shown, /without_room_total\{queue="bounce"\} 2/);
    assert.match(shown, /dropped_total\{reason="refused"\} 1/);
    fixture.close();
  }
});

Deno.test("Router answers at once when anybody may know that a message found no room to bounce in", async () => {
  const fixture = new Fixture(5);
  fixture.isTaking = false;
  for (const id of ["1", "2"]) fixture.router.accept(message(id));
  // No other client gets a message of this type in the place of one that is gone.
  fixture.router.accept(stanza(ALICE, `${BOB}/gone`, { kind: "message", type: "normal", id: "3" }));
  await fixture.settled();
  assert.deepEqual(fixture.asked, ["full 2"]);
  assert.deepEqual(fixture.delivered.map(conditionOf), Array(2).fill("resource-constraint"));
  fixture.close();
});

Deno.test("Router drops a message without room, and settles it like one that was kept", async () => {
  const fixture = new Fixture();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  await fixture.giveUp();
  fixture.outcomes[0]!.dropped();
  assert.deepEqual([client.settled, fixture.delivered], [[7], []]);
  const shown = await fixture.metrics.prometheus();
  assert.match(shown, /causeway_stanzas_dropped_total\{reason="refused"\} 1/);
  fixture.close();
});

Deno.test("Router has a message to a resource that is gone kept if it is a chat, or was rerouted", async () => {
  const fixture = new Fixture();
  const to = `${BOB}/gone`;
  fixture.router.accept(stanza(ALICE, to, { type: "normal", id: "1" }));
  await fixture.giveUp();
  assert.deepEqual([fixture.asked, fixture.delivered.map(conditionOf)], [[], [
    "service-unavailable",
  ]]);
  fixture.router.accept(stanza(ALICE, to, { type: "chat", id: "2" }));
  fixture.router.accept(stanza(ALICE, BOB, { type: "normal", id: "3" }));
  await fixture.giveUp();
  const returned = fromLink(stanza(ALICE, to, { type: "normal", id: "4" }));
  fixture.router.returned(returned, "unacknowledged");
  await fixture.giveUp();
  assert.deepEqual(fixture.asked.toSorted(), ["2", "3", "4"]);
  fixture.close();
});

Deno.test("Router asks the keeper for no other error and no other stanza", async () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "resource-constraint");
  fixture.router.accept(message("1"));
  fixture.router.accept(stanza(ALICE, `${BOB}/desk`, { kind: "iq", type: "get", id: "2" }));
  fixture.local.delete(BOB);
  fixture.router.accept(stanza(ALICE, `${BOB}/x`, { kind: "iq", type: "get", id: "3" }));
  await fixture.giveUp();
  assert.deepEqual(fixture.asked, []);
  assert.equal(fixture.delivered.length, 3);
  fixture.close();
});

Deno.test("Router gives a kept message that ends its clients' streams back to its sender", () => {
  const fixture = new Fixture();
  const told: string[] = [];
  const keeper = { settle: () => void told.push("settled"), stays: () => void told.push("stays") };
  const envelope = fixture.router.envelopKept(message("1"), keeper, 1, 5_000);
  fixture.router.returned(envelope, "unreadable");
  assert.deepEqual([told, fixture.delivered.map(conditionOf)], [["settled"], ["not-acceptable"]]);
  fixture.close();
});

Deno.test("Router leaves a kept message to its keeper when its client is gone", async () => {
  const fixture = new Fixture();
  const told: string[] = [];
  const keeper = {
    settle: (number: number) => void told.push(`${number} settled`),
    stays: (number?: number) => void told.push(`${number} stays`),
  };
  const envelopes = [1, 2].map((number) =>
    fixture.router.envelopKept(message(`${number}`), keeper, number, 5_000)
  );
  assert.equal(envelopes[0]!.sentAtUs, 5_000_000);
  fixture.router.returned(envelopes[0]!, "unacknowledged");
  await fixture.giveUp();
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.local.set(BOB, "delivered");
  fixture.router.returned(envelopes[1]!, "unacknowledged");
  await fixture.giveUp();
  assert.deepEqual(told, ["1 stays", "2 settled"]);
  assert.deepEqual([fixture.asked, fixture.delivered.map(idOf)], [[], ["2"]]);
  fixture.close();
});
