import assert from "node:assert/strict";
import { CausewayError, FairShares, ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { OfflineStore } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { BackgroundWork } from "./background_work.ts";
import { BusyAccounts } from "./busy_accounts.ts";
import { DiscreetRefusals } from "./discreet_refusals.ts";
import { MailboxWriter } from "./mailbox_writer.ts";
import { OfflineMetrics } from "./offline_metrics.ts";
import { SilentEnds } from "./silent_ends.ts";
import {
  BOB,
  HOST,
  message,
  OPTIONS,
  settle,
  textOf,
  WatchedStore,
  withStore,
} from "./testing/offline_fixture.ts";

class Fixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly background = new BackgroundWork(this);
  readonly rested: string[] = [];
  readonly written: string[] = [];
  readonly outcomes: string[] = [];
  /** Creations of accounts, by bare JID. */
  readonly people = new Map([[BOB, "first"]]);
  /** Those who may see whether an account is online, by bare JID. */
  readonly contacts = new Set<string>();
  readonly budget = new FairShares({ maxBytes: 10_000_000 });
  readonly watched: WatchedStore;
  readonly writer: MailboxWriter;
  /** Text of a message whose sender cannot be told its end. */
  untold = "";
  /** Returns the creation of an account. */
  creationOf = (account: string) => Promise.resolve(this.people.get(account));
  /** Returns the store of the host. */
  storeOf = () => this.watched.store;

  constructor(store: OfflineStore) {
    const { clock, logger, background, budget } = this;
    const isUserHost = (domain: string) => domain === HOST || domain === "example.com";
    this.watched = new WatchedStore(store);
    const refusals = new DiscreetRefusals({
      maySee: (asker) => Promise.resolve(this.contacts.has(asker.bare.text)),
      isUserHost,
      budget,
      clock,
    });
    this.writer = new MailboxWriter({
      hosts: new Map([[HOST, OPTIONS]]),
      storeOf: () => this.storeOf(),
      creationOf: ({ text }: BareJid) => this.creationOf(text),
      isUserHost,
      randomId: () => crypto.getRandomValues(new Uint8Array(16)),
      refusals,
      silentEnds: new SilentEnds({ hasRosters: isUserHost, isUserHost, refusals }),
      busy: new BusyAccounts({ clock, rested: ({ text }) => void this.rested.push(text) }),
      background,
      budget,
      metrics: new OfflineMetrics(new MetricsRegistry(clock), () => 0),
      written: ({ text }) => void this.written.push(text),
      logger,
      clock,
    });
  }

  keep(text: string, from?: string, to?: string): boolean {
    return this.writer.keep(message(text, from, to), this.clock.wallMs(), {
      kept: () => {
        if (text === this.untold) throw new TypeError("a bug");
        this.outcomes.push(`${text} kept`);
      },
      refused: (condition) => void this.outcomes.push(`${text} ${condition}`),
      dropped: () => void this.outcomes.push(`${text} dropped`),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.background.close();
  }
}

async function withWriter(
  work: (fixture: Fixture, store: OfflineStore) => Promise<void>,
): Promise<void> {
  await withStore(async (store) => {
    await using fixture = new Fixture(store);
    await work(fixture, store);
  });
}

Deno.test("MailboxWriter writes messages that come meanwhile together, behind the first", () =>
  withWriter(async (fixture, store) => {
    const { writer, watched, budget } = fixture;
    const gate = Promise.withResolvers<void>();
    watched.gate = gate.promise;
    for (const text of ["1", "2", "3"]) assert.equal(fixture.keep(text), true);
    assert.equal(writer.pending, 3);
    assert.ok(budget.bytes > 0);
    gate.resolve();
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 kept", "2 kept", "3 kept"]);
    assert.deepEqual([fixture.written, fixture.rested], [[BOB], [BOB]]);
    assert.deepEqual([writer.pending, budget.bytes, watched.calls.get("keep")], [0, 0, 2]);
    assert.equal((await store.all("bob")).length, 3);
  }));

Deno.test("MailboxWriter tells no stranger that more messages of an account wait than may", () =>
  withWriter(async (fixture) => {
    const { writer, watched } = fixture;
    const gate = Promise.withResolvers<void>();
    watched.gate = gate.promise;
    for (let i = 0; i < 1_000; i++) fixture.keep(`${i}`);
    assert.equal(fixture.keep("stranger", "carol@example.com/desk"), true);
    fixture.contacts.add("dave@example.com");
    assert.equal(fixture.keep("contact", "dave@example.com/desk"), true);
    await settle();
    assert.deepEqual(fixture.outcomes, ["stranger dropped", "contact resource-constraint"]);
    assert.equal(writer.pending, 1_000);
    watched.failure = new Error("away");
    gate.resolve();
    await settle();
    assert.equal(writer.pending, 0);
  }));

Deno.test("MailboxWriter tells no stranger who floods that the node has no room for more", () =>
  withWriter(async (fixture) => {
    const { writer, watched, budget } = fixture;
    const gate = Promise.withResolvers<void>();
    watched.gate = gate.promise;
    const large = "x".repeat(200_000);
    for (let i = 0; i < 20; i++) fixture.keep(large, undefined, `user${i}@${HOST}`);
    assert.ok(writer.pending < 20, `${writer.pending}`);
    assert.deepEqual(fixture.outcomes, Array(20 - writer.pending).fill(`${large} dropped`));
    watched.failure = new Error("away");
    gate.resolve();
    await settle();
    assert.deepEqual([writer.pending, budget.bytes], [0, 0]);
  }));

Deno.test("MailboxWriter refuses what it cannot keep with the error that says why", () =>
  withWriter(async (fixture, store) => {
    fixture.keep("stranger", undefined, `nobody@${HOST}`);
    for (let i = 0; i < 6; i++) fixture.keep(`${i}`);
    await settle();
    assert.deepEqual(fixture.outcomes.toSorted(), [
      ...["0", "1", "2", "3", "4"].map((text) => `${text} kept`),
      "5 dropped",
      "stranger service-unavailable",
    ]);
    fixture.outcomes.length = 0;
    fixture.contacts.add("alice@example.com");
    fixture.keep("contact");
    await settle();
    assert.deepEqual(
      fixture.outcomes,
      ["contact resource-constraint"],
      "who may see that bob is away",
    );
    fixture.outcomes.length = 0;
    fixture.watched.failure = new Error("away");
    fixture.keep("6", "carol@example.com/x");
    await settle();
    assert.deepEqual(fixture.outcomes, ["6 internal-server-error"]);
    assert.equal((await store.all("bob")).length, 5);
    assert.deepEqual(await store.all("nobody"), []);
  }));

Deno.test("MailboxWriter tells no stranger by a message without words whether an account exists", () =>
  withWriter(async (fixture) => {
    fixture.contacts.add("dave@example.com");
    for (const from of ["carol@example.com/desk", "dave@example.com/desk"]) {
      for (const to of [BOB, `nobody@${HOST}`]) {
        const written = message("", from, to);
        const xml = "<message type='chat'><received xmlns='urn:xmpp:receipts' id='x'/></message>";
        const stanza = { ...written, bytes: new TextEncoder().encode(xml) };
        const note = (end: string) => void fixture.outcomes.push(`${from} ${to} ${end}`);
        const outcome = { kept: () => note("kept"), refused: note, dropped: () => note("dropped") };
        assert.equal(fixture.writer.keep(stanza, 0, outcome), true);
      }
    }
    await settle();
    assert.deepEqual(fixture.outcomes.toSorted(), [
      `carol@example.com/desk ${BOB} kept`,
      `carol@example.com/desk nobody@${HOST} dropped`,
      `dave@example.com/desk ${BOB} kept`,
      `dave@example.com/desk nobody@${HOST} service-unavailable`,
    ]);
  }));

Deno.test("MailboxWriter tells no stranger that the store has no room for so large a message", () =>
  withWriter(async (fixture, store) => {
    const gate = Promise.withResolvers<void>();
    fixture.watched.gate = gate.promise;
    const keep: OfflineStore["keep"] = async (localpart, messages, bounds) => {
      if (messages.some(({ stanza }) => stanza.length > 1_000)) {
        throw new CausewayError("storage/value-too-large", "Cannot keep so much");
      }
      return await fixture.watched.store.keep(localpart, messages, bounds);
    };
    const limited = new Proxy(store, {
      get: (target, key: keyof OfflineStore) => key === "keep" ? keep : target[key].bind(target),
    });
    fixture.storeOf = () => limited;
    fixture.contacts.add("dave@example.com");
    fixture.keep("1");
    await settle();
    const [stranger, contact] = ["s", "c"].map((each) => each.repeat(1_000));
    fixture.keep("2");
    fixture.keep(stranger!);
    fixture.keep(contact!, "dave@example.com/desk");
    fixture.keep("3");
    gate.resolve();
    await settle();
    assert.deepEqual(fixture.outcomes.toSorted(), [
      "1 kept",
      "2 kept",
      "3 kept",
      `${contact} resource-constraint`,
      `${stranger} dropped`,
    ]);
    assert.equal((await store.all("bob")).length, 3);
  }));

Deno.test("MailboxWriter leaves nothing behind of an account that is deleted meanwhile", () =>
  withWriter(async (fixture, store) => {
    const gate = Promise.withResolvers<void>();
    fixture.watched.gate = gate.promise;
    fixture.keep("1");
    await settle(); // the account was found, and the store is asked
    fixture.people.clear();
    gate.resolve();
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 service-unavailable"]);
    assert.deepEqual(await store.all("bob"), []);
  }));

Deno.test("MailboxWriter leaves nothing to the next owner of a name", () =>
  withWriter(async (fixture, store) => {
    const gate = Promise.withResolvers<void>();
    fixture.watched.gate = gate.promise;
    fixture.keep("1");
    await settle(); // the account was found, and the store is asked
    fixture.people.set(BOB, "second");
    gate.resolve();
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 service-unavailable"]);
    assert.deepEqual(await store.all("bob"), []);
    fixture.keep("2");
    await settle();
    assert.deepEqual(fixture.outcomes.slice(1), ["2 kept"]);
  }));

Deno.test("MailboxWriter takes nothing from the next owner of a name", () =>
  withWriter(async (fixture, store) => {
    const next = message("for the next owner");
    let looks = 0;
    fixture.creationOf = async () => {
      if (++looks % 2 === 1) return "first";
      // The name gets a new owner while messages for the earlier one are written, and a message.
      const kept = {
        sender: "dave@example.com",
        stanza: next.bytes,
        sentAtMs: 0,
        expiresAtMs: 1e15,
      };
      await store.keep("bob", [kept], { maxMessages: 100, maxBytes: 100_000 });
      return "second";
    };
    fixture.keep("1");
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 service-unavailable"]);
    const left = (await store.all("bob")).map(({ stanza }) => textOf({ ...next, bytes: stanza }));
    assert.deepEqual(left, ["for the next owner"]);
    const claim = { id: new Uint8Array(16).fill(1), nowMs: 0, forMs: 1_000 };
    assert.equal(await store.claim("bob", claim), 1, "a client of theirs can claim it");
  }));

Deno.test("MailboxWriter answers no error for a message that is on the disk", () =>
  withWriter(async (fixture, store) => {
    let isAway = false;
    fixture.creationOf = () => {
      if (isAway) return Promise.reject(new Error("away"));
      isAway = true;
      return Promise.resolve("first");
    };
    fixture.keep("1");
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 kept"]);
    assert.equal((await store.all("bob")).length, 1);
  }));

Deno.test("MailboxWriter goes on when the end of a message cannot be told", () =>
  withWriter(async (fixture) => {
    const { writer, budget, logger } = fixture;
    fixture.untold = "2";
    for (const text of ["1", "2", "3"]) fixture.keep(text);
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 kept", "3 kept"]);
    assert.deepEqual([writer.pending, budget.bytes], [0, 0]);
    assert.deepEqual([fixture.written, fixture.rested], [[BOB], [BOB]]);
    assert.deepEqual(logger.entries.map(({ event }) => event), ["offline.bug"]);
  }));

Deno.test("MailboxWriter refuses messages of a host whose store it cannot get", () =>
  withWriter(async (fixture) => {
    fixture.storeOf = () => {
      throw new TypeError("a bug");
    };
    fixture.keep("1");
    await settle();
    assert.deepEqual(fixture.outcomes, ["1 internal-server-error"]);
    assert.deepEqual([fixture.writer.pending, fixture.rested], [0, [BOB]]);
  }));
