import assert from "node:assert/strict";
import { FairShares, ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { OfflineStore } from "../../storage/mod.ts";
import type { BareJid, FullJid } from "../../xmpp/mod.ts";
import { OfflineMessages } from "./offline_messages.ts";
import type { Delivered, TestSession } from "./testing/offline_fixture.ts";
import {
  BOB,
  fullJid,
  HOST,
  message,
  OPTIONS,
  pass,
  settle,
  textOf,
  WatchedStore,
  withStore,
} from "./testing/offline_fixture.ts";

/** One node over a store that it may share with others. */
class Node implements AsyncDisposable {
  readonly clock: ManualClock;
  readonly delivered: Delivered[] = [];
  readonly sessions: TestSession[] = [];
  readonly revealed: string[] = [];
  readonly outcomes: string[] = [];
  readonly people = new Set([BOB]);
  readonly logger = new MemoryLogger();
  readonly offline: OfflineMessages;
  readonly watched: WatchedStore;
  /** Messages that clients still take. */
  room = Infinity;
  /** The id of the latest claim. */
  lastId = new Uint8Array();
  #ids = 0;

  constructor(name: number, { store, clock }: { store: OfflineStore; clock: ManualClock }) {
    this.clock = clock;
    this.watched = new WatchedStore(store);
    this.offline = new OfflineMessages({
      hosts: new Map([[HOST, OPTIONS]]),
      storeOf: () => this.watched.store,
      creationOf: ({ text }: BareJid) => Promise.resolve(this.people.has(text) ? "" : undefined),
      maySee: () => Promise.resolve(false),
      isUserHost: (domain) => domain === HOST || domain === "example.com",
      hasRosters: (domain) => domain === HOST || domain === "example.com",
      sessionsOf: () => this.sessions,
      isCurrent: () => Promise.resolve(true),
      revealed: ({ text }) => void this.revealed.push(text),
      deliver: (to, stanza, { fate, number }) => {
        if (this.room === 0) return false;
        this.room--;
        this.delivered.push({ to: to.text, text: textOf(stanza), fate, number });
        return true;
      },
      randomId: () => this.lastId = new Uint8Array(16).fill(name * 50 + ++this.#ids),
      budget: new FairShares(),
      metrics: new MetricsRegistry(clock),
      logger: this.logger,
      clock,
    });
  }

  get texts(): string[] {
    return this.delivered.map(({ text }) => text);
  }

  keep(text: string, from?: string, to?: string): boolean {
    return this.offline.keep(message(text, from, to), this.clock.wallMs(), {
      kept: () => void this.outcomes.push(`${text} kept`),
      refused: (condition) => void this.outcomes.push(`${text} ${condition}`),
      dropped: () => void this.outcomes.push(`${text} dropped`),
    });
  }

  logIn(resource: string, priority = 0): FullJid {
    const jid = fullJid(`${BOB}/${resource}`);
    this.sessions.push({ jid, priority, isOpen: true });
    this.offline.presence(jid, priority);
    return jid;
  }

  logOut(jid: FullJid): void {
    this.sessions.splice(this.sessions.findIndex((each) => each.jid === jid), 1);
    this.offline.closed(jid);
  }

  /** The client acknowledges all that it was sent. */
  acknowledge(): void {
    for (const { fate, number } of this.delivered) fate.settle(number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.offline.close();
  }
}

async function withNodes(
  work: (one: Node, other: Node, store: OfflineStore, clock: ManualClock) => Promise<void>,
): Promise<void> {
  await withStore(async (store) => {
    const clock = new ManualClock();
    await using one = new Node(1, { store, clock });
    await using other = new Node(2, { store, clock });
    await work(one, other, store, clock);
  });
}

Deno.test("OfflineMessages keeps messages, and delivers them in order to the first client", () =>
  withNodes(async (one, other, store, clock) => {
    for (const text of ["1", "2", "3"]) assert.equal(one.keep(text), true);
    await settle();
    assert.deepEqual(one.outcomes, ["1 kept", "2 kept", "3 kept"]);
    other.logIn("negative", -1);
    await settle();
    assert.deepEqual(other.delivered, []);
    other.logIn("desk", 0);
    await settle();
    assert.deepEqual(other.delivered.map(({ to, text }) => `${to} ${text}`), [
      `${BOB}/desk 1`,
      `${BOB}/desk 2`,
      `${BOB}/desk 3`,
    ]);
    assert.equal((await store.all("bob")).length, 3, "until the client has them");
    other.acknowledge();
    await pass(clock, 1_000);
    assert.deepEqual(await store.all("bob"), []);
    one.logIn("phone");
    await settle();
    assert.deepEqual(one.delivered, []);
  }));

Deno.test("OfflineMessages gives each message to one of two clients that log in at once", () =>
  withNodes(async (one, other) => {
    for (let i = 0; i < 5; i++) one.keep(`${i}`, `user${i}@example.com/x`);
    await settle();
    one.logIn("desk");
    other.logIn("phone");
    await settle();
    const all = [...one.texts, ...other.texts];
    assert.deepEqual(all.toSorted(), ["0", "1", "2", "3", "4"]);
  }));

Deno.test("OfflineMessages keeps what a vanished client did not take, for the next one", () =>
  withNodes(async (one, other) => {
    for (const text of ["1", "2"]) one.keep(text);
    await settle();
    const desk = one.logIn("desk");
    await settle();
    assert.deepEqual(one.texts, ["1", "2"]);
    one.delivered[0]!.fate.settle(one.delivered[0]!.number);
    one.logOut(desk);
    one.delivered[1]!.fate.stays(one.delivered[1]!.number);
    await pass(one.clock, 1_000);
    other.logIn("phone");
    await settle();
    assert.deepEqual(other.texts, ["2"]);
  }));

Deno.test("OfflineMessages delivers what a dead node had claimed, once the claim has ended", () =>
  withNodes(async (one, other, store, clock) => {
    one.keep("1");
    await settle();
    one.logIn("desk");
    await settle();
    assert.deepEqual(one.texts, ["1"]);
    await one.offline.close(); // it renews nothing any more, as a dead node does
    other.offline.start();
    other.logIn("phone");
    await pass(clock, 30_000);
    assert.deepEqual(other.delivered, [], "the claim still holds");
    await store.renew([{ localpart: "bob", id: one.lastId }], -1); // the database's clock has gone on
    await pass(clock, 15_000);
    assert.deepEqual(other.texts, ["1"]);
  }));

Deno.test("OfflineMessages holds its claim for as long as a client takes to acknowledge", () =>
  withNodes(async (one, other, store, clock) => {
    one.keep("1");
    await settle();
    one.logIn("desk");
    await settle();
    other.offline.start();
    other.logIn("phone");
    await pass(clock, 200_000);
    assert.deepEqual(other.delivered, []);
    assert.equal(one.watched.calls.get("renew"), 10, "each time before a third of it is over");
    one.acknowledge();
    await pass(clock, 1_000);
    assert.deepEqual(await store.all("bob"), []);
  }));

Deno.test("OfflineMessages lets messages wait behind older ones, and not for long", () =>
  withNodes(async (one, _other, _store, clock) => {
    const later = message("later");
    assert.equal(one.offline.holds(later), false);
    one.keep("1");
    await settle();
    const gate = Promise.withResolvers<void>();
    one.watched.gate = gate.promise;
    one.logIn("desk");
    assert.equal(one.offline.holds(later), true);
    assert.equal(one.offline.holds({ ...later, type: "headline" }), false);
    assert.equal(one.offline.holds(message("x", undefined, `carol@${HOST}`)), false);
    gate.resolve();
    await settle();
    assert.deepEqual([one.texts, one.revealed], [["1"], [BOB]]);
    assert.equal(one.offline.holds(later), false);
    one.watched.gate = Promise.withResolvers<void>().promise;
    const slow = Promise.withResolvers<void>();
    one.watched.gate = slow.promise;
    one.logIn("phone");
    clock.advance(1_999);
    assert.equal(one.offline.holds(later), true);
    clock.advance(1);
    assert.equal(one.offline.holds(later), false, "a slow store");
    slow.resolve();
    await settle();
  }));

Deno.test("OfflineMessages delivers a message that was being written when its client came", () =>
  withNodes(async (one, other, _store, clock) => {
    const gate = Promise.withResolvers<void>();
    one.watched.gate = gate.promise;
    one.keep("1");
    one.sessions.push({ jid: fullJid(`${BOB}/desk`), priority: 0, isOpen: true });
    gate.resolve();
    await settle();
    assert.deepEqual(one.texts, ["1"], "on the same node, at once");
    one.sessions.length = 0;
    other.offline.start();
    other.logIn("phone");
    await settle();
    one.keep("2");
    await settle();
    assert.deepEqual(other.delivered, []);
    await pass(clock, 15_000);
    assert.deepEqual(other.texts, ["2"], "on another node, when it looks");
  }));

Deno.test("OfflineMessages leaves the rest to a later look when a client reads too slowly", () =>
  withNodes(async (one, _other, store, clock) => {
    for (const text of ["1", "2", "3"]) one.keep(text);
    await settle();
    one.room = 1;
    one.offline.start();
    one.logIn("desk");
    await pass(clock, 4_000, 100);
    assert.deepEqual(await store.waiting(["bob"], clock.wallMs()), [], "the node still tries");
    await pass(clock, 2_000, 100);
    assert.deepEqual(await store.waiting(["bob"], clock.wallMs()), ["bob"], "it has given up");
    assert.deepEqual(one.texts, ["1"]);
    one.room = Infinity;
    await pass(clock, 15_000);
    assert.deepEqual(one.texts, ["1", "2", "3"]);
  }));

Deno.test("OfflineMessages takes no message for hosts without it, and none of a chat state", () =>
  withNodes((one) => {
    assert.equal(one.keep("1", undefined, "bob@example.com"), false);
    assert.equal(one.keep("1", undefined, HOST), false);
    const stanza = message("1");
    assert.equal(one.offline.keep({ ...stanza, type: "headline" }, 0, FAILS), false);
    return Promise.resolve();
  }));

const FAILS = {
  dropped: () => assert.fail("it is not to be taken"),
  kept: () => assert.fail("it is not to be kept"),
  refused: () => assert.fail("it is not to be taken"),
};

Deno.test("OfflineMessages.close() leaves no timer when a claim is made meanwhile", () =>
  withNodes(async (one, _other, _store, clock) => {
    const timersBefore = clock.pendingTimers;
    one.keep("1");
    await settle();
    const gate = Promise.withResolvers<void>();
    one.watched.gate = gate.promise;
    one.logIn("desk");
    const closed = one.offline.close();
    gate.resolve();
    await closed;
    assert.equal(clock.pendingTimers, timersBefore);
  }));

Deno.test("OfflineMessages gives the room of messages that have expired to others soon", () =>
  withNodes(async (one, _other, store, clock) => {
    for (let i = 0; i < 5; i++) one.keep(`${i}`);
    one.offline.start();
    await pass(clock, OPTIONS.lifetimeMs - 10_000, 15_000);
    assert.equal((await store.all("bob")).length, 5);
    await pass(clock, 100_000, 5_000);
    assert.deepEqual(await store.all("bob"), []);
  }));
