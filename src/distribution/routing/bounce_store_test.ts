import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { fromLink, idOf, stanza } from "./testing/router_fixture.ts";
import { BounceStore } from "./bounce_store.ts";
import type { BounceOptions } from "./bounce_options.ts";
import { holdersOf } from "./holders_of.ts";
import { bindRoutingMetrics } from "./routing_metrics.ts";

const HOSTS = { globalHost: "example.com", hosts: new Set(["example.com"]) };

const BOB = "bob@example.com";
const KEY = parseJid(BOB);
/** Retries without a payer. */
const FREE = { payerOf: () => undefined, takeRetry: () => true, bookRetry: () => 0 };
const SENDERS = ["alice@example.com/a", "carol@example.com/c"];

Deno.test("BounceStore gives back a sender's stanzas in order, whatever the jitter", async () => {
  const dice = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 40 });
  await fc.assert(
    fc.asyncProperty(dice, async (units) => {
      const clock = new ManualClock();
      const metrics = new MetricsRegistry(new ManualClock());
      const given: string[] = [];
      let draws = 0;
      const store = new BounceStore({ resendAfterMs: 100, maxRetries: 3 }, {
        cached: () => null,
        relocate: (keys) => Promise.resolve(keys.map(() => undefined)),
        release: () => false,
        giveUp: (envelope: Envelope) => void given.push(idOf(envelope.stanza)),
        senderOf: ({ stanza }: Envelope) => stanza.from.text,
        holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
        ...FREE,
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
      // 100 + 200 + 400 ms, a tenth more, and one more retry for stanzas that wait for another.
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

Deno.test("BounceStore still holds an address to which a stanza comes back as the last one leaves", async () => {
  const metrics = new MetricsRegistry(new ManualClock());
  const clock = new ManualClock();
  const first = fromLink(stanza(SENDERS[0]!, BOB));
  const second = fromLink(stanza(SENDERS[0]!, BOB));
  let isHeld: boolean | undefined;
  let releases = 0;
  const store = new BounceStore({ resendAfterMs: 100 }, {
    cached: () => undefined,
    relocate: (keys) => Promise.resolve(keys.map(() => "dc2.example.com")),
    release: () => {
      if (++releases > 1) return true;
      store.holdAgain(first, KEY, true);
      queueMicrotask(() => isHeld = store.holds(KEY));
      return true;
    },
    giveUp: () => assert.fail(),
    senderOf: ({ stanza }: Envelope) => stanza.from.text,
    holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
    ...FREE,
  }, { metrics: bindRoutingMetrics(metrics), clock, random: { unit: () => 0.5 } });
  store.hold(second, KEY);
  await clock.advanceAsync(100);
  assert.equal(isHeld, true); // a later stanza waits behind it
  await clock.advanceAsync(100);
  assert.deepEqual([releases, store.size, store.holds(KEY)], [2, 0, false]);
  metrics.close();
});

Deno.test("BounceStore takes back more stanzas than a call can have arguments", async () => {
  const metrics = new MetricsRegistry(new ManualClock());
  let given = 0;
  const store = new BounceStore({}, {
    cached: () => null,
    relocate: (keys) => Promise.resolve(keys.map(() => undefined)),
    release: () => false,
    giveUp: () => void given++,
    senderOf: ({ stanza }: Envelope) => stanza.from.text,
    holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
    ...FREE,
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

/** A store whose recipients come online when they are revealed, with the fate of what it held. */
class Store {
  readonly sent: Envelope[] = [];
  readonly given: { readonly envelope: Envelope; readonly why: string }[] = [];
  readonly online = new Set<string>();
  readonly store: BounceStore;

  constructor(options: BounceOptions) {
    this.store = new BounceStore(options, {
      cached: (key) => this.online.has(key.text) ? "dc1.example.com" : null,
      relocate: (keys) => Promise.resolve(keys.map(() => undefined)),
      release: (envelope: Envelope) => this.sent.push(envelope) > 0,
      giveUp: (envelope: Envelope, why) => void this.given.push({ envelope, why }),
      senderOf: ({ stanza }: Envelope) => stanza.from.text,
      holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
      ...FREE,
    }, {
      metrics: bindRoutingMetrics(new MetricsRegistry(new ManualClock())),
      clock: new ManualClock(),
      random: { unit: () => 0.5 },
    });
  }

  /** @returns false when it came back at once */
  hold(from: string, to: string, cameFrom?: string): boolean {
    const envelope = fromLink(stanza(from, to));
    if (cameFrom !== undefined) envelope.arrived("link", cameFrom);
    const before = this.given.length;
    this.store.hold(envelope, envelope.stanza.to);
    return this.given.length === before;
  }

  login(address: string): void {
    this.online.add(address);
    this.store.reveal(parseJid(address));
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

Deno.test("BounceStore holds others' messages while many write to one address without a place", async () => {
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

/** A store under a clock that the test moves. It records its lookups. */
class Subject {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(new ManualClock());
  readonly lookups: string[][] = [];
  readonly spent: string[] = [];
  readonly released: string[] = [];
  readonly cache = new Map<string, string>();
  /** Local hosts by address, as Redis has them. */
  readonly table = new Map<string, string>();
  /** Retries that are left, by payer; a payer that is not listed has no limit. */
  readonly left = new Map<string, number>();
  readonly store: BounceStore;

  constructor() {
    this.store = new BounceStore({ resendAfterMs: 200, maxRetries: 4 }, {
      cached: (key) => this.cache.get(key.text),
      relocate: (keys) => {
        this.lookups.push(keys.map(({ text }) => text));
        return Promise.resolve(keys.map(({ text }) => this.table.get(text)));
      },
      release: ({ stanza }) => {
        this.released.push(idOf(stanza));
        return true;
      },
      giveUp: ({ stanza }) => void this.spent.push(idOf(stanza)),
      senderOf: ({ stanza }) => stanza.from.text,
      holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
      payerOf: ({ stanza }) => stanza.from.bare.text,
      takeRetry: ({ stanza }) => {
        const left = this.left.get(stanza.from.bare.text) ?? Infinity;
        if (left > 0) this.left.set(stanza.from.bare.text, left - 1);
        return left > 0;
      },
      bookRetry: () => 1000,
    }, {
      metrics: bindRoutingMetrics(this.metrics),
      clock: this.clock,
      random: { unit: () => 0.5 },
    });
  }

  hold(to: string, { from = SENDERS[0]!, id = to } = {}): void {
    this.store.hold(fromLink(stanza(from, to, { id })), parseJid(to));
  }

  close(): void {
    this.metrics.close();
  }
}

Deno.test("BounceStore looks up together all addresses of an account that are due", async () => {
  const subject = new Subject();
  const addresses = Array.from({ length: 50 }, (_, n) => `${BOB}/${n}`);
  for (const address of addresses) subject.hold(address);
  subject.hold("carol@example.com/c");
  await subject.clock.advanceAsync(3_100, 20);
  assert.deepEqual(subject.lookups, Array(4).fill([addresses, ["carol@example.com/c"]]).flat());
  assert.equal(subject.spent.length, 51);
  assert.equal(subject.clock.pendingTimers, 0);
  subject.close();
});

Deno.test("BounceStore.reveal() sends all that waits for the account after one lookup", async () => {
  const subject = new Subject();
  for (const to of [`${BOB}/other`, BOB, `${BOB}/phone`]) subject.hold(to);
  for (const to of [BOB, `${BOB}/phone`]) subject.table.set(to, "dc2.example.com");
  subject.store.reveal(parseJid(`${BOB}/phone`));
  await subject.clock.advanceAsync(0);
  assert.deepEqual(subject.lookups, [[`${BOB}/phone`, BOB, `${BOB}/other`]]);
  assert.deepEqual(subject.released, [`${BOB}/phone`, BOB]);
  await subject.store.stop();
  subject.close();
});

Deno.test("BounceStore.reveal() looks again for an address that was revealed during a lookup", async () => {
  const subject = new Subject();
  subject.hold(BOB);
  subject.store.reveal(KEY); // its lookup gets the answer from before the next line
  subject.table.set(BOB, "dc2.example.com");
  subject.store.reveal(KEY);
  for (let n = 0; n < 2; n++) await subject.clock.advanceAsync(0);
  assert.deepEqual([subject.lookups.length, subject.released], [2, [BOB]]);
  assert.equal(subject.clock.pendingTimers, 0);
  subject.close();
});

Deno.test("BounceStore.reveal() looks up a bounded number of addresses, the revealed one among them", async () => {
  const subject = new Subject();
  for (let n = 0; n < 100; n++) subject.hold(`${BOB}/${n}`);
  subject.store.reveal(parseJid(`${BOB}/99`));
  assert.equal(subject.lookups[0]!.length, 64);
  assert.equal(subject.lookups[0]![0], `${BOB}/99`);
  await subject.store.stop();
  subject.close();
});

Deno.test("BounceStore.reveal() costs few lookups for an account that comes and goes often", async () => {
  const subject = new Subject();
  const reveal = () => subject.store.reveal(parseJid(`${BOB}/phone`));
  for (let ms = 0; ms < 1000; ms += 20) {
    subject.hold(`${BOB}/gone`, { id: `${ms}` });
    reveal();
    await subject.clock.advanceAsync(20);
  }
  // 50 reveals: 8 at once, then 5 a second; and retries, which are due every 20 ms.
  const retries = subject.lookups.length;
  assert.ok(retries < 75, `${retries} lookups`);
  await subject.store.stop();
  assert.equal(subject.clock.pendingTimers, 0, "no timer of the last reveal is left");
  subject.close();
});

Deno.test("BounceStore.reveal() acts on the last of too many reveals, a moment later", async () => {
  const subject = new Subject();
  subject.hold(BOB);
  for (let n = 0; n < 20; n++) {
    subject.store.reveal(KEY);
    await subject.clock.advanceAsync(0);
  }
  assert.equal(subject.lookups.length, 8);
  subject.cache.set(BOB, "dc2.example.com");
  subject.store.reveal(KEY);
  assert.deepEqual(subject.released, []);
  await subject.clock.advanceAsync(200);
  assert.deepEqual(subject.released, [BOB]);
  assert.equal(subject.clock.pendingTimers, 0);
  subject.close();
});

Deno.test("BounceStore delays only retries that their sender's rate does not allow", async () => {
  const subject = new Subject();
  subject.left.set("alice@example.com", 1);
  for (const to of ["x@example.com", "y@example.com", "z@example.com"]) subject.hold(to);
  subject.hold("z@example.com", { from: SENDERS[1]!, id: "innocent" });
  await subject.clock.advanceAsync(200);
  // alice pays for x. carol, whose message is due too, pays for z.
  assert.deepEqual(subject.lookups.flat(), ["x@example.com", "z@example.com"]);
  assert.match(
    await subject.metrics.prometheus(),
    /causeway_lookups_delayed_total\{cause="retry"\} 1/,
  );
  subject.left.set("alice@example.com", Infinity);
  await subject.clock.advanceAsync(999);
  assert.ok(!subject.lookups.flat().includes("y@example.com"), "y waits for its retry");
  await subject.clock.advanceAsync(1);
  assert.ok(subject.lookups.flat().includes("y@example.com"));
  await subject.clock.advanceAsync(5_000, 20);
  assert.equal(subject.spent.length, 4, "all retries are made in the end");
  assert.equal(subject.clock.pendingTimers, 0);
  subject.close();
});

Deno.test("BounceStore makes no booked retry earlier when its sender writes more", async () => {
  const subject = new Subject();
  subject.left.set("alice@example.com", 0);
  subject.hold(BOB);
  await subject.clock.advanceAsync(200);
  for (let n = 0; n < 40; n++) {
    subject.hold(BOB, { from: "alice@example.com/desk", id: `${n}` });
    await subject.clock.advanceAsync(20);
  }
  assert.deepEqual(subject.lookups, []);
  await subject.clock.advanceAsync(200);
  assert.deepEqual(subject.lookups, [[BOB]]);
  await subject.store.stop();
  subject.close();
});

Deno.test("BounceStore.change() takes another pace and number of retries for what is held already", async () => {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(new ManualClock());
  let lookups = 0;
  let given = 0;
  const store = new BounceStore({ resendAfterMs: 100, maxRetries: 4 }, {
    cached: () => null,
    relocate: (keys) => {
      lookups++;
      return Promise.resolve(keys.map(() => undefined));
    },
    release: () => false,
    giveUp: () => void given++,
    senderOf: ({ stanza }: Envelope) => stanza.from.text,
    holdersOf: (envelope: Envelope) => holdersOf(envelope, HOSTS),
    ...FREE,
  }, { metrics: bindRoutingMetrics(metrics), clock, random: { unit: () => 0.5 } });
  store.hold(fromLink(stanza(SENDERS[0]!, BOB)), KEY);
  store.change({ resendAfterMs: 1000, maxRetries: 2 });
  await clock.advanceAsync(150); // the first retry was planned before
  assert.deepEqual([lookups, given], [1, 0]);
  await clock.advanceAsync(1700);
  assert.equal(lookups, 1, "the second comes after 2 s");
  await clock.advanceAsync(600);
  assert.deepEqual([lookups, given], [2, 1]);
  assert.equal(store.inspect(0, 9).length, 0);
  metrics.close();
});
