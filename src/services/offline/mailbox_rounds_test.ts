import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { OfflineStore } from "../../storage/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { MailboxRounds } from "./mailbox_rounds.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { fullJid, HOST, OPTIONS, pass } from "./testing/offline_fixture.ts";

const DESK = fullJid(`bob@${HOST}/desk`);
const PHONE = fullJid(`bob@${HOST}/phone`);
const CAROL = fullJid(`carol@${HOST}/desk`);

class Fixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly background = new BackgroundWork(this);
  /** Questions to the store for accounts that have waiting messages. */
  readonly asked: (readonly string[])[] = [];
  /** Accounts that have some. */
  readonly waiting = new Set<string>();
  /** Accounts that rounds found. */
  readonly found: string[] = [];
  /** Expired messages that each of the next removals finds. */
  expired: number[] = [];
  removals = 0;
  /** Set to make the store fail. */
  failure: Error | undefined;
  // Rounds call these two methods alone.
  readonly #store = {
    waiting: (localparts) => {
      this.asked.push(localparts);
      if (this.failure !== undefined) return Promise.reject(this.failure);
      return Promise.resolve(localparts.filter((name) => this.waiting.has(name)));
    },
    removeExpired: () => {
      this.removals++;
      return Promise.resolve(this.expired.shift() ?? 0);
    },
  } as Partial<OfflineStore> as OfflineStore;
  readonly rounds = new MailboxRounds({
    hosts: new Map([[HOST, OPTIONS]]),
    storeOf: () => this.#store,
    background: this.background,
    metrics: new OfflineMetrics(new MetricsRegistry(new ManualClock()), () => 0),
    found: ({ text }) => void this.found.push(text),
    logger: this.logger,
    clock: this.clock,
  });

  async [Symbol.asyncDispose](): Promise<void> {
    await this.background.close();
  }
}

Deno.test("MailboxRounds finds waiting messages of accounts that have clients here", async () => {
  await using fixture = new Fixture();
  const { rounds, clock, asked, found, waiting } = fixture;
  assert.equal(rounds.add(DESK), true);
  assert.equal(rounds.add(DESK), false);
  for (const client of [PHONE, CAROL]) rounds.add(client);
  rounds.start();
  waiting.add("bob");
  await pass(clock, 15_000);
  assert.deepEqual([asked, found], [[["bob", "carol"]], [`bob@${HOST}`]]);
  for (const client of [DESK, CAROL]) rounds.delete(client);
  await pass(clock, 15_000);
  assert.deepEqual(asked.at(-1), ["bob"], "whose phone is still here");
  rounds.delete(PHONE);
  await pass(clock, 15_000);
  assert.equal(asked.length, 2);
});

Deno.test("MailboxRounds goes on while the store fails", async () => {
  await using fixture = new Fixture();
  const { rounds, clock, logger, found, waiting } = fixture;
  rounds.add(DESK);
  waiting.add("bob");
  rounds.start();
  fixture.failure = new Error("away");
  await pass(clock, 15_000);
  assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.not-looked"]);
  fixture.failure = undefined;
  await pass(clock, 15_000);
  assert.deepEqual(found, [`bob@${HOST}`]);
});

Deno.test("MailboxRounds removes expired messages each minute until none is left", async () => {
  await using fixture = new Fixture();
  fixture.expired = [500, 20];
  fixture.rounds.start();
  await pass(fixture.clock, 15_000);
  assert.equal(fixture.removals, 3);
  await pass(fixture.clock, 45_000);
  assert.equal(fixture.removals, 3);
  await pass(fixture.clock, 15_000);
  assert.equal(fixture.removals, 4);
});

Deno.test("MailboxRounds ends when the background work is closed", async () => {
  const { rounds, clock, background } = new Fixture();
  rounds.start();
  await background.close();
  assert.equal(clock.pendingTimers, 0);
});
