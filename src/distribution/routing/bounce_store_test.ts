import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { fromLink, idOf, stanza } from "./_router_fixture.ts";
import { BounceStore } from "./bounce_store.ts";
import { bindRoutingMetrics } from "./routing_metrics.ts";

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
