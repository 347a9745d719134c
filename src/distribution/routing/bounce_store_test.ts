import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { fromLink, idOf, stanza } from "./_router_fixture.ts";
import { BounceStore } from "./bounce_store.ts";
import type { BounceOptions } from "./bounce_store.ts";
import { holdersOf } from "./holders_of.ts";
import { bindRoutingMetrics } from "./routing_metrics.ts";

const HOSTS = { globalHost: "example.com", hosts: new Set(["example.com"]) };

const BOB = "bob@example.com";
const KEY = parseJid(BOB);
const SENDERS = ["alice@example.com/a", "carol@example.com/c"];

Deno.test("BounceStore gives a sender's stanzas back in their order, whatever the jitter", async () => {
  const dice = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 40 });
  await fc.assert(
    fc.asyncProperty(dice, async (units) => {
      const clock = new ManualClock();
      const metrics = new MetricsRegistry(new ManualClock());
      const given: string[] = [];
      let draws = 0;
      const store = new BounceStore({ resendAfterMs: 100, maxRetries: 3 }, {
        cached: () => null,
        relocate: () => Promise.resolve(undefined),
        release: () => false,
        giveUp: (envelope: Envelope) => void given.push(idOf(envelope.stanza)),
        senderOf: ({ stanza }: Envelope) => stanza.from.text,
        holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
      }, {
        metrics: bindRoutingMetrics(metrics),
        clock,
        random: { unit: () => units[draws++ % units.length]! },
      });
      for (let n = 0; n < 10; n++) {
        for (const sender of SENDERS) {
          store.hold(fromLink(stanza(sender, BOB, { id: `${sender} ${n}` })), KEY);
        }
      }
      // 100 + 200 + 400 ms, a tenth more, and one look more for those that wait for another.
      for (let ms = 0; ms < 1200; ms += 5) await clock.advanceAsync(5);
      for (const sender of SENDERS) {
        const wanted = Array.from({ length: 10 }, (_, n) => `${sender} ${n}`);
        assert.deepEqual(given.filter((id) => id.startsWith(sender)), wanted);
      }
      assert.equal(store.size, 0);
      assert.equal(clock.pendingTimers, 0);
      metrics.close();
    }),
    { numRuns: 20 },
  );
});

Deno.test("BounceStore takes back more than a call has room for arguments", async () => {
  const metrics = new MetricsRegistry(new ManualClock());
  let given = 0;
  const store = new BounceStore({}, {
    cached: () => null,
    relocate: () => Promise.resolve(undefined),
    release: () => false,
    giveUp: () => void given++,
    senderOf: ({ stanza }: Envelope) => stanza.from.text,
    holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
  }, {
    metrics: bindRoutingMetrics(metrics),
    clock: new ManualClock(),
    random: { unit: () => 0.5 },
  });
  store.hold(fromLink(stanza(SENDERS[0]!, BOB)), KEY);
  const returned = fromLink(stanza(SENDERS[1]!, BOB));
  for (let n = 0; n < 300_000; n++) assert.equal(store.holdAgain(returned, KEY, true), true);
  await store.stop();
  assert.equal(given, 300_001);
  metrics.close();
});

/** A store whose recipients come online when they are revealed, and what became of what it held. */
class Store {
  readonly sent: Envelope[] = [];
  readonly given: { readonly envelope: Envelope; readonly why: string }[] = [];
  readonly online = new Set<string>();
  readonly store: BounceStore;

  constructor(options: BounceOptions) {
    this.store = new BounceStore(options, {
      cached: (key) => this.online.has(key.text) ? "dc1.example.com" : null,
      relocate: () => Promise.resolve(undefined),
      release: (envelope: Envelope) => this.sent.push(envelope) > 0,
      giveUp: (envelope: Envelope, why) => void this.given.push({ envelope, why }),
      senderOf: ({ stanza }: Envelope) => stanza.from.text,
      holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
    }, {
      metrics: bindRoutingMetrics(new MetricsRegistry(new ManualClock())),
      clock: new ManualClock(),
      random: { unit: () => 0.5 },
    });
  }

  /** @returns false when it came back at once */
  hold(from: string, to: string, cameFrom?: string): boolean {
    const envelope = fromLink(stanza(from, to));
    envelope.cameFrom = cameFrom;
    const before = this.given.length;
    this.store.hold(envelope, envelope.stanza.to);
    return this.given.length === before;
  }

  login(address: string): void {
    this.online.add(address);
    this.store.reveal(address);
  }
}

for (
  const [what, bound] of [["items", { maxItems: 1000 }], ["bytes", {
    maxBytes: 1_400_000,
  }]] as const
) {
  Deno.test(`BounceStore holds others' messages while one sender keeps it full of ${what}`, async () => {
    const test = new Store(bound);
    const delivered: string[] = [];
    for (let n = 0; n < 10; n++) {
      // One account with many resources, to a new address each time, until it is refused.
      for (let i = 0; test.hold(`eve@example.com/${i}`, `nobody${n}-${i}@example.com`); i++);
      const carol = `carol${n}@example.com`;
      assert.equal(test.hold(`alice${n}@example.com/a`, carol), true, `message ${n}`);
      test.login(carol);
      delivered.push(test.sent.pop()!.stanza.to.text);
    }
    assert.equal(delivered.length, 10);
    assert.ok(test.given.every(({ why }) => why === "full"));
    assert.ok(test.given.every(({ envelope }) => envelope.stanza.from.localpart === "eve"));
    await test.store.stop();
    assert.equal(test.store.size, 0);
  });
}

Deno.test("BounceStore holds others' messages while many write to one address that is nowhere", async () => {
  const test = new Store({ maxItems: 1000 });
  for (let n = 0; test.hold(`eve${n}@example.com/e`, "nobody@example.com"); n++);
  for (let n = 0; n < 10; n++) {
    assert.equal(test.hold(`alice${n}@example.com/a`, `carol${n}@example.com`), true);
  }
  assert.equal(test.store.size, 210);
  await test.store.stop();
});

Deno.test("BounceStore holds messages from here while a datacenter fills its share with made-up senders", async () => {
  const test = new Store({ maxItems: 1000 });
  for (let n = 0; test.hold(`eve${n}@example.com/e`, `x${n}@example.com`, "dc9.example.com"); n++);
  assert.equal(test.store.size, 500);
  for (let n = 0; n < 10; n++) {
    assert.equal(test.hold(`alice${n}@example.com/a`, `carol${n}@example.com`), true);
  }
  await test.store.stop();
});
