import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { HeldClaim, OfflineStore } from "../../storage/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { HeldClaims } from "./held_claims.ts";
import type { MessageClaim } from "./message_claim.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { pass } from "./testing/offline_fixture.ts";

class Fixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly background = new BackgroundWork(this);
  /** Calls of the store. */
  readonly calls: string[] = [];
  /** Set to make the store fail. */
  failure: Error | undefined;
  /** Set to make removals wait. */
  gate: Promise<void> | undefined;
  /** Messages that the next claim finds. */
  found = 1;
  readonly claims = new HeldClaims({
    randomId: () => new Uint8Array(16),
    background: this.background,
    metrics: new OfflineMetrics(new MetricsRegistry(new ManualClock()), () => 0),
    logger: this.logger,
  });
  // Claims call these four methods alone.
  readonly #store = {
    claim: (localpart) => this.#call(`claim ${localpart}`).then(() => this.found),
    renew: (claims) => this.#call(`renew ${namesOf(claims)}`),
    remove: (localpart, _id, which) => this.#call(`remove ${localpart} ${which}`, this.gate),
    release: (localpart, _id, which) => this.#call(`release ${localpart} ${which}`),
  } as Partial<OfflineStore> as OfflineStore;

  async claim(localpart: string): Promise<MessageClaim> {
    const claim = await this.#claim(localpart);
    assert.ok(claim !== undefined);
    this.calls.length = 0;
    return claim;
  }

  async claimNothing(localpart: string): Promise<void> {
    this.found = 0;
    assert.equal(await this.#claim(localpart), undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.background.close();
  }

  #claim(localpart: string): Promise<MessageClaim | undefined> {
    return this.claims.claim(this.#store, { localpart, nowMs: this.clock.wallMs() });
  }

  async #call(what: string, gate = Promise.resolve()): Promise<void> {
    this.calls.push(what);
    await gate;
    if (this.failure !== undefined) throw this.failure;
  }
}

function namesOf(claims: readonly HeldClaim[]): string {
  return claims.map(({ localpart }) => localpart).join(" ");
}

Deno.test("HeldClaims renews all claims together until they are done", async () => {
  await using fixture = new Fixture();
  const { clock, calls } = fixture;
  const bobs = await fixture.claim("bob");
  const carols = await fixture.claim("carol");
  for (const claim of [bobs, carols]) claim.sending(1);
  for (const claim of [bobs, carols]) claim.finish();
  await pass(clock, 40_000);
  assert.deepEqual(calls, ["renew bob carol", "renew bob carol"]);
  bobs.settle(1);
  await pass(clock, 20_000);
  assert.deepEqual(calls.slice(2), ["remove bob 1", "renew carol"]);
  carols.stays(1);
  await pass(clock, 60_000);
  assert.deepEqual(calls.slice(4), ["release carol 1"]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("HeldClaims renews a claim whose messages are still being read", async () => {
  await using fixture = new Fixture();
  const claim = await fixture.claim("bob");
  claim.sending(1);
  claim.settle(1);
  await pass(fixture.clock, 20_000);
  assert.deepEqual(fixture.calls, ["remove bob 1", "renew bob"]);
});

Deno.test("HeldClaims holds no claim that found no message", async () => {
  await using fixture = new Fixture();
  await fixture.claimNothing("bob");
  assert.equal(fixture.clock.pendingTimers, 0);
});

Deno.test("HeldClaims gathers removals for a moment", async () => {
  await using fixture = new Fixture();
  const { clock, calls } = fixture;
  const claim = await fixture.claim("bob");
  for (const sequence of [1, 2, 3]) claim.sending(sequence);
  for (const sequence of [1, 2, 3]) claim.settle(sequence);
  await pass(clock, 19, 19);
  assert.deepEqual(calls, []);
  await pass(clock, 1, 1);
  assert.deepEqual(calls, ["remove bob 1,2,3"]);
});

Deno.test("HeldClaims holds its claims for longer before it removes anything", async () => {
  await using fixture = new Fixture();
  const { clock, calls, logger } = fixture;
  const claim = await fixture.claim("bob");
  fixture.failure = new Error("away");
  claim.sending(1);
  claim.settle(1);
  claim.finish();
  await pass(clock, 1_000);
  assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.not-removed"]);
  fixture.failure = undefined;
  await pass(clock, 40_000);
  assert.deepEqual(calls, ["remove bob 1", "renew bob", "remove bob 1"]);
});

Deno.test("HeldClaims renews its claims while a removal that it tries again takes long", async () => {
  await using fixture = new Fixture();
  const { clock, calls } = fixture;
  const claim = await fixture.claim("bob");
  for (const sequence of [1, 2]) claim.sending(sequence);
  claim.settle(1);
  fixture.failure = new Error("away");
  await pass(clock, 1_000);
  fixture.failure = undefined;
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  await pass(clock, 120_000);
  const renewals = calls.filter((call) => call === "renew bob").length;
  gate.resolve();
  assert.deepEqual([renewals, calls.length - renewals], [6, 2]);
});

Deno.test("HeldClaims gathers what comes during a slow removal for one flush behind it", async () => {
  await using fixture = new Fixture();
  const { clock, calls } = fixture;
  const bobs = await fixture.claim("bob");
  const carols = await fixture.claim("carol");
  for (const sequence of [1, 2, 3]) carols.sending(sequence);
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  bobs.sending(1);
  bobs.settle(1);
  await pass(clock, 20, 20);
  for (const sequence of [1, 2, 3]) {
    carols.settle(sequence);
    await pass(clock, 1_000);
  }
  const callsMeanwhile = [...calls];
  gate.resolve();
  await pass(clock, 20, 20);
  assert.deepEqual(callsMeanwhile, ["remove bob 1"]);
  assert.deepEqual(calls, ["remove bob 1", "remove carol 1,2,3"]);
});

Deno.test("HeldClaims goes on after a renewal that failed", async () => {
  await using fixture = new Fixture();
  const { clock, calls, logger } = fixture;
  const claim = await fixture.claim("bob");
  claim.sending(1);
  fixture.failure = new Error("away");
  await pass(clock, 40_000);
  assert.deepEqual(calls, ["renew bob", "renew bob"]);
  assert.deepEqual(logger.entries.map(({ event }) => event), Array(2).fill("offline.not-renewed"));
});
