import assert from "node:assert/strict";
import type { StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { Archive, ArchiveSides } from "./ports.ts";
import {
  conditionOf,
  FakeLink,
  fromLink,
  idOf,
  OWN_PROCESS,
  RouterFixture,
  stanza,
} from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com/desk", "bob@example.com"];

/** Archives that take messages when the test says so. */
class FakeArchive implements Archive {
  /** Id and sides of each message. */
  readonly noted: string[] = [];
  readonly asked: string[] = [];
  readonly outcomes: { kept(): void; refused(condition: StanzaErrorCondition): void }[] = [];
  readonly #open = new Map<string, { ready(): void; settle(): void }>();
  isFull = false;

  note({ stanza }: Envelope, { isSender, recipient }: ArchiveSides) {
    if (stanza.type === "error") return undefined;
    this.noted.push(`${idOf(stanza)}${isSender ? " sender" : ""} ${recipient ?? "elsewhere"}`);
    if (this.isFull) return "resource-constraint" as const;
    const [ready, settled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const noting = {
      ready: ready.promise,
      settled: settled.promise,
      isSettled: false,
      isRecipients: recipient !== undefined,
    };
    this.#open.set(idOf(stanza)!, {
      ready: ready.resolve,
      settle: () => {
        noting.isSettled = true;
        ready.resolve();
        settled.resolve();
      },
    });
    return noting;
  }

  keep({ stanza }: Envelope, outcome: (typeof this.outcomes)[number]): boolean {
    this.asked.push(idOf(stanza)!);
    this.outcomes.push(outcome);
    return true;
  }

  /** Has the archives have a message, for good or not yet. */
  end(id: string, how: "ready" | "settle" = "settle"): void {
    this.#open.get(id)![how]();
  }
}

class Fixture extends RouterFixture {
  readonly archive: FakeArchive;

  constructor() {
    const archive = new FakeArchive();
    super({ bounce: { resendAfterMs: 100, maxRetries: 1 } }, undefined, OWN_PROCESS, archive);
    this.archive = archive;
    this.local.set(ALICE, "delivered");
    this.cache.set(ALICE, "dc1.example.com");
  }

  /** Puts bob at this datacenter. */
  isHere(): void {
    this.sessions.set(BOB, { isHere: true, isResourceHere: false, priority: 0 });
    this.cache.set(BOB, "dc1.example.com");
    this.cache.set(`${BOB}/x`, "dc1.example.com");
    this.local.set(BOB, "delivered");
  }

  get ids(): readonly (string | undefined)[] {
    return this.delivered.map(idOf);
  }
}

const message = (id: string) => stanza(ALICE, BOB, { kind: "message", type: "chat", id });
const request = (id: string) => stanza(ALICE, `${BOB}/x`, { kind: "iq", type: "get", id });

Deno.test("Router delivers a message once the archives have it, and keeps the sender's order", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 1);
  fixture.router.accept(request("2"));
  fixture.router.accept(message("3"), client, 3);
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  assert.deepEqual(fixture.archive.noted, ["1 sender known", "3 sender known"], "it looks ahead");
  fixture.archive.end("3");
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  fixture.archive.end("1");
  await fixture.settled();
  assert.deepEqual(fixture.ids, ["1", "2", "3"]);
  assert.deepEqual([...client.settled].toSorted(), [1, 3]);
  assert.equal(fixture.archive.noted.length, 2, "nothing is archived twice");
  fixture.close();
});

Deno.test("Router settles a message that went on too early once the archives have it", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  fixture.archive.end("1", "ready");
  await fixture.settled();
  assert.deepEqual([fixture.ids, client.settled], [["1"], []]);
  fixture.archive.end("1");
  await fixture.settled();
  assert.deepEqual(client.settled, [7]);
  fixture.close();
});

Deno.test("Router has the recipient's archive take a message where it may be delivered", async () => {
  const fixture = new Fixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(message("there"));
  fixture.archive.end("there");
  await fixture.settled();
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["there"]);
  fixture.cache.delete(BOB);
  fixture.router.accept(message("nobody"));
  await fixture.settled();
  fixture.archive.end("nobody");
  await fixture.settled();
  fixture.isHere();
  const carol = stanza("carol@example.com/x", BOB, { kind: "message", type: "chat", id: "in" });
  fixture.received(fromLink(carol));
  fixture.archive.end("in");
  await fixture.settled();
  assert.deepEqual(fixture.archive.noted, [
    "there sender elsewhere",
    "nobody sender unseen",
    "in known",
  ]);
  assert.ok(fixture.ids.includes("in"));
  fixture.close();
});

Deno.test("Router settles a message that finds nobody once the archive has it, or answers it", async () => {
  for (const isKept of [true, false]) {
    const fixture = new Fixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.settled();
    fixture.archive.end("1");
    await fixture.settled();
    fixture.clock.advance(1_000);
    await fixture.settled();
    assert.deepEqual([fixture.archive.asked, client.settled], [["1"], []]);
    if (isKept) fixture.archive.outcomes[0]!.kept();
    else fixture.archive.outcomes[0]!.refused("internal-server-error");
    await fixture.settled();
    const expected = isKept ? [] : ["internal-server-error"];
    assert.deepEqual(fixture.delivered.map(conditionOf), expected);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router answers a message for which the archives have no room", async () => {
  const fixture = new Fixture();
  fixture.isHere();
  fixture.archive.isFull = true;
  fixture.router.accept(message("1"));
  await fixture.settled();
  assert.deepEqual(fixture.delivered.map(conditionOf), ["resource-constraint"]);
  fixture.close();
});
