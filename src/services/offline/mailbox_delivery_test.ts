import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { OfflineStore } from "../../storage/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { BusyAccounts } from "./busy_accounts.ts";
import { HeldClaims } from "./held_claims.ts";
import { MailboxDelivery } from "./mailbox_delivery.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import type { Delivered, TestSession } from "./testing/offline_fixture.ts";
import {
  BOB,
  fullJid,
  message,
  OPTIONS,
  pass,
  settle,
  textOf,
  WatchedStore,
  withStore,
} from "./testing/offline_fixture.ts";

/** Deliveries of one node to the clients of bob. */
class Fixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly background = new BackgroundWork(this);
  readonly delivered: Delivered[] = [];
  readonly sessions: TestSession[] = [];
  /** Set to make the check of accounts wait. */
  check: Promise<void> | undefined;
  /** Resources of sessions whose account is gone. */
  readonly former = new Set<string>();
  readonly watched: WatchedStore;
  readonly busy = new BusyAccounts({ clock: this.clock, rested: () => {} });
  readonly claims: HeldClaims;
  readonly delivery: MailboxDelivery;
  /** Returns the store of the host. */
  storeOf = () => this.watched.store;
  /** Called before a message is given to a client. */
  delivering = (_text: string) => {};
  /** Messages that clients still take. */
  room = Infinity;
  readonly #store: OfflineStore;

  constructor(store: OfflineStore) {
    const { clock, logger, background, busy } = this;
    this.#store = store;
    this.watched = new WatchedStore(store);
    this.claims = new HeldClaims({
      randomId: () => crypto.getRandomValues(new Uint8Array(16)),
      background,
      metrics: new OfflineMetrics(new MetricsRegistry(clock), () => 0),
      logger,
    });
    this.delivery = new MailboxDelivery({
      storeOf: () => this.storeOf(),
      sessionsOf: () => this.sessions,
      isCurrent: async ({ resourcepart }) => {
        await this.check;
        return !this.former.has(resourcepart);
      },
      deliver: (to, stanza, { fate, number }) => {
        this.delivering(textOf(stanza));
        if (this.room === 0) return false;
        this.room--;
        this.delivered.push({ to: to.text, text: textOf(stanza), fate, number });
        return true;
      },
      claims: this.claims,
      busy,
      background,
      logger,
      clock,
    });
  }

  get texts(): string[] {
    return this.delivered.map(({ text }) => text);
  }

  /** Puts messages for bob into the store. */
  async fill(...texts: readonly string[]): Promise<void> {
    const expiresAtMs = this.clock.wallMs() + OPTIONS.lifetimeMs;
    const messages = texts.map((text) => {
      const { bytes: stanza, from } = message(text);
      return { sender: from.bare.text, stanza, sentAtMs: this.clock.wallMs(), expiresAtMs };
    });
    await this.#store.keep("bob", messages, { maxMessages: 1_000, maxBytes: 1_000_000 });
  }

  /** Lets the store fail once it has given the first page. */
  failAfterOnePage(): void {
    const { watched } = this;
    watched.isTouched = (method) => {
      if (method === "claimed" && this.delivered.length > 0) watched.failure = new Error("away");
      return method === "claimed";
    };
  }

  /** Lets the store answer again. */
  recover(): void {
    this.watched.isTouched = () => false;
  }

  logIn(resource: string, priority = 0): FullJid {
    const jid = fullJid(`${BOB}/${resource}`);
    this.sessions.push({ jid, priority, isOpen: true });
    this.delivery.open(jid.bare);
    return jid;
  }

  logOut(jid: FullJid): void {
    this.sessions.splice(this.sessions.findIndex((each) => each.jid === jid), 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.background.close();
    await this.claims.flush();
  }
}

async function withDelivery(
  work: (fixture: Fixture, store: OfflineStore) => Promise<void>,
): Promise<void> {
  await withStore(async (store) => {
    await using fixture = new Fixture(store);
    await work(fixture, store);
  });
}

Deno.test("MailboxDelivery gives messages to the latest client of the highest priority", () =>
  withDelivery(async (fixture) => {
    const { sessions, delivery } = fixture;
    const add = (resource: string, priority: number | undefined, isOpen = true) =>
      sessions.push({ jid: fullJid(`${BOB}/${resource}`), priority, isOpen });
    add("negative", -1);
    add("unavailable", undefined);
    add("closed", 7, false);
    const bob = fullJid(`${BOB}/x`).bare;
    assert.equal(delivery.hasTarget(bob), false);
    for (const [resource, priority] of [["low", 0], ["early", 5], ["late", 5]] as const) {
      add(resource, priority);
    }
    assert.equal(delivery.hasTarget(bob), true);
    await fixture.fill("1");
    delivery.open(bob);
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to }) => to), [`${BOB}/late`]);
  }));

Deno.test("MailboxDelivery delivers nothing to a session whose account is gone, and all to the new owner's", () =>
  withDelivery(async (fixture) => {
    await fixture.fill("1", "2");
    fixture.former.add("old");
    const old = fixture.logIn("old");
    await settle();
    assert.deepEqual(fixture.delivered, []);
    fixture.logOut(old);
    fixture.logIn("new");
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/new 1`,
      `${BOB}/new 2`,
    ]);
  }));

Deno.test("MailboxDelivery passes by a session whose account is gone, whatever its priority", () =>
  withDelivery(async (fixture) => {
    await fixture.fill("1", "2");
    fixture.former.add("old");
    fixture.logIn("old", 5);
    fixture.logIn("new", 0);
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/new 1`,
      `${BOB}/new 2`,
    ]);
  }));

Deno.test("MailboxDelivery gives the rest to no session whose account is gone when a client leaves", () =>
  withDelivery(async (fixture) => {
    await fixture.fill("1", "2");
    fixture.former.add("old");
    fixture.logIn("old", 0);
    fixture.room = 1;
    const desk = fixture.logIn("desk", 5);
    await settle();
    fixture.logOut(desk);
    fixture.room = Infinity;
    await pass(fixture.clock, 1_000, 100);
    assert.deepEqual(fixture.texts, ["1"]);
    fixture.logIn("phone");
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/desk 1`,
      `${BOB}/phone 2`,
    ]);
  }));

Deno.test("MailboxDelivery turns from a client that left while its account was checked", () =>
  withDelivery(async (fixture) => {
    await fixture.fill("1");
    const check = Promise.withResolvers<void>();
    fixture.check = check.promise;
    fixture.logIn("phone", 0);
    fixture.logIn("desk", 5);
    await settle();
    fixture.sessions[1]!.isOpen = false;
    check.resolve();
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to }) => to), [`${BOB}/phone`]);
  }));

Deno.test("MailboxDelivery writes nothing for a login while no message waits", () =>
  withDelivery(async (fixture) => {
    fixture.logIn("desk");
    await settle();
    assert.deepEqual([...fixture.watched.calls], [["waiting", 1]]);
  }));

Deno.test("MailboxDelivery skips bytes that nobody can read, and delivers what is behind them", () =>
  withDelivery(async (fixture, store) => {
    const bad = { sender: "x", stanza: new Uint8Array([60, 1]), sentAtMs: 0, expiresAtMs: 9e15 };
    await store.keep("bob", [bad], OPTIONS);
    await fixture.fill("1");
    fixture.logIn("desk");
    await settle();
    assert.deepEqual(fixture.texts, ["1"]);
    await pass(fixture.clock, 1_000);
    assert.equal((await store.all("bob")).length, 1);
    assert.deepEqual(fixture.logger.entries.map(({ event }) => event), ["offline.unreadable"]);
  }));

Deno.test("MailboxDelivery holds no message in memory for a client that reads slowly", () =>
  withDelivery(async (fixture, store) => {
    await fixture.fill("1", "2", "3");
    fixture.room = 1;
    fixture.logIn("desk");
    await pass(fixture.clock, 1_000, 100);
    assert.deepEqual(fixture.texts, ["1"]);
    await store.removeAll("bob");
    fixture.room = Infinity;
    await pass(fixture.clock, 1_000, 100);
    assert.deepEqual(fixture.texts, ["1"], "what was removed meanwhile is not delivered");
  }));

Deno.test("MailboxDelivery turns at once to a client that comes while another one leaves", () =>
  withDelivery(async (fixture) => {
    await fixture.fill("1", "2");
    fixture.room = 1;
    const desk = fixture.logIn("desk");
    await settle();
    const [page, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    fixture.watched.gate = page.promise;
    fixture.logOut(desk);
    fixture.clock.advance(100);
    await settle();
    page.resolve();
    fixture.watched.gate = rest.promise; // the node has found that nobody is there, and reads what is left
    await settle();
    fixture.room = Infinity;
    fixture.logIn("phone");
    fixture.watched.gate = undefined;
    rest.resolve();
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/desk 1`,
      `${BOB}/phone 2`,
    ]);
  }));

Deno.test("MailboxDelivery waits until the rest is free before it turns to another client", () =>
  withDelivery(async (fixture) => {
    const { watched, clock } = fixture;
    await fixture.fill("1", "2");
    fixture.room = 1;
    const desk = fixture.logIn("desk");
    await settle();
    fixture.logOut(desk);
    const [page, rest, release] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    watched.gate = page!.promise;
    clock.advance(100);
    await settle();
    page!.resolve();
    watched.gate = rest!.promise; // the node gives the rest back, and reads what is left
    await settle();
    watched.gate = release!.promise;
    clock.advance(20);
    await settle();
    watched.gate = undefined;
    fixture.room = Infinity;
    fixture.logIn("phone");
    rest!.resolve(); // it turns to the phone, for which the rest is not free yet
    await settle();
    release!.resolve();
    await settle();
    assert.deepEqual(fixture.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/desk 1`,
      `${BOB}/phone 2`,
    ]);
  }));

const SIXTY = Array.from({ length: 60 }, (_, index) => `${index}`);

Deno.test("MailboxDelivery reads on after a failure, while newer messages wait", () =>
  withDelivery(async (fixture) => {
    await fixture.fill(...SIXTY);
    fixture.failAfterOnePage();
    fixture.logIn("desk");
    await settle();
    assert.deepEqual(fixture.texts, SIXTY.slice(0, 50));
    fixture.recover();
    assert.equal(fixture.busy.holds(message("newer")), true);
    await pass(fixture.clock, 1_000);
    assert.deepEqual(fixture.texts, SIXTY);
    assert.equal(fixture.busy.holds(message("newer")), false);
    assert.deepEqual(
      fixture.logger.entries.map(({ event }) => event),
      ["offline.not-delivered"],
    );
  }));

Deno.test("MailboxDelivery frees what it could not read once the store answers and no client is there", () =>
  withDelivery(async (fixture, store) => {
    const { clock } = fixture;
    await fixture.fill(...SIXTY);
    fixture.failAfterOnePage();
    const desk = fixture.logIn("desk");
    await pass(clock, 60_000);
    fixture.logOut(desk);
    fixture.recover();
    assert.deepEqual(await store.waiting(["bob"], clock.wallMs()), []);
    await pass(clock, 20_000);
    assert.deepEqual(await store.waiting(["bob"], clock.wallMs()), ["bob"]);
    fixture.logIn("phone");
    await settle();
    assert.deepEqual(
      fixture.delivered.slice(50).map(({ to, text }) => `${to} ${text}`),
      SIXTY.slice(50).map((text) => `${BOB}/phone ${text}`),
    );
  }));

Deno.test("MailboxDelivery ends with the background work while the store fails", () =>
  withDelivery(async (fixture) => {
    const timersBefore = fixture.clock.pendingTimers;
    await fixture.fill(...SIXTY);
    fixture.failAfterOnePage();
    fixture.logIn("desk");
    await settle();
    await fixture.background.close();
    assert.equal(fixture.watched.calls.get("claimed"), 3, "the second page is asked for twice");
    assert.equal(fixture.clock.pendingTimers, timersBefore);
  }));

Deno.test("MailboxDelivery rests when it cannot get the store, and delivers once it can", () =>
  withDelivery(async (fixture) => {
    const { storeOf, busy, logger } = fixture;
    await fixture.fill("1");
    fixture.storeOf = () => {
      throw new TypeError("a bug");
    };
    const desk = fixture.logIn("desk");
    await settle();
    assert.equal(busy.holds(message("newer")), false);
    assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.bug"]);
    fixture.storeOf = storeOf;
    fixture.delivery.open(desk.bare);
    await settle();
    assert.deepEqual(fixture.texts, ["1"]);
  }));

Deno.test("MailboxDelivery holds no claim for a message that it failed to give to a client", () =>
  withDelivery(async (fixture) => {
    const { clock, busy, logger } = fixture;
    const timersBefore = clock.pendingTimers;
    await fixture.fill("1");
    fixture.delivering = () => {
      throw new TypeError("a bug");
    };
    fixture.logIn("desk");
    await settle();
    assert.equal(busy.holds(message("newer")), false);
    assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.bug"]);
    await pass(clock, 21_000);
    assert.equal(clock.pendingTimers, timersBefore, "nothing is renewed any more");
  }));
