import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import type { AccountLogout } from "../../storage/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { LogoutNotes } from "./logout_notes.ts";

/** Creation of the accounts whose sessions end. */
const CREATION = "1";

/** The notes over a store that the test controls. */
class Setup {
  readonly clock = new ManualClock();
  readonly logger = new MemoryLogger();
  readonly metrics = new MetricsRegistry(this.clock);
  /** Rows that were written, one array for each transaction. */
  readonly written: (readonly AccountLogout[])[] = [];
  failure: Error | undefined;
  /** Host whose store alone fails. */
  failingHost: string | undefined;
  /** Creations of accounts that are not the ones of the sessions; undefined for those that are gone. */
  readonly others = new Map<string, string | undefined>();
  /** Localparts whose logouts were removed. */
  readonly removed: string[] = [];
  /** Set to make the store wait. */
  gate: Promise<void> | undefined;
  readonly notes = new LogoutNotes({
    storeOf: (host) =>
      host === "off.example" ? undefined : {
        note: async (logouts) => {
          await this.gate;
          if (this.failure !== undefined) throw this.failure;
          if (host === this.failingHost) throw new Error("away");
          this.written.push(logouts);
        },
        read: () => Promise.reject(new Error("not read here")),
        remove: (localpart) => {
          this.removed.push(localpart);
          return Promise.resolve();
        },
      },
    existing: (_, localparts) => {
      const creationOf = (name: string) => this.others.has(name) ? this.others.get(name) : CREATION;
      return Promise.resolve(
        new Map(localparts.flatMap((name) => {
          const creation = creationOf(name);
          return creation === undefined ? [] : [[name, creation]];
        })),
      );
    },
    metrics: this.metrics,
    logger: this.logger,
    clock: this.clock,
  });

  logOut(jid: string, content: string | undefined = undefined): void {
    this.notes.loggedOut(presenceOf(jid, content), CREATION);
  }

  /** Lets time pass, and everything that follows from it happen. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setTimeout(resolve));
  }

  get names(): string[] {
    return this.written.flat().map(({ localpart }) => localpart);
  }
}

function presenceOf(jid: string, status: string | undefined): Stanza {
  const child = status === undefined ? undefined : element("status", {}, status);
  const presence = element("presence", { type: "unavailable" }, child);
  const from = parseJid(jid);
  return buildStanza(presence, { from, to: from.bare });
}

Deno.test("LogoutNotes writes gathered logouts with their time and status in one transaction", async () => {
  const setup = new Setup();
  setup.logOut("alice@example.com/1", "Tee & <Kuchen> 😀");
  setup.clock.advance(5);
  setup.logOut("bob@example.com/1");
  await setup.pass(20);
  const start = new ManualClock().wallMs();
  assert.deepEqual(
    setup.written.map((each) =>
      each.map(({ localpart, atMs, status }) => ({ localpart, atMs, status }))
    ),
    [[
      { localpart: "alice", atMs: start, status: "Tee & <Kuchen> 😀" },
      { localpart: "bob", atMs: start + 5, status: "" },
    ]],
  );
  assert.equal(setup.notes.waiting, 0);
  await setup.pass(60_000);
  assert.equal(setup.written.length, 1);
});

Deno.test("LogoutNotes writes the newest logout of an account that has several", async () => {
  const setup = new Setup();
  for (const status of ["one", "two", "three"]) setup.logOut("alice@example.com/1", status);
  await setup.pass(20);
  assert.deepEqual(setup.written.flat().map(({ status }) => status), ["three"]);
});

Deno.test("LogoutNotes divides many logouts into transactions, each of one host", async () => {
  const setup = new Setup();
  for (let i = 0; i < 250; i++) setup.logOut(`user${i}@example.com/1`);
  for (let i = 0; i < 3; i++) setup.logOut(`other${i}@dc1.example.com/1`);
  setup.logOut("nobody@off.example/1");
  await setup.pass(20);
  assert.deepEqual(setup.written.map(({ length }) => length), [100, 100, 50, 3]);
  assert.equal(new Set(setup.names).size, 253);
  assert.ok(!setup.names.includes("nobody"));
});

Deno.test("LogoutNotes keeps the beginning of a long status, without cutting a character", async () => {
  const setup = new Setup();
  setup.logOut("alice@example.com/1", "😀".repeat(1000));
  await setup.pass(20);
  assert.equal(setup.written[0]![0]!.status, "😀".repeat(256));
});

Deno.test("LogoutNotes waits while the store fails, and writes the newest when it is back", async () => {
  const setup = new Setup();
  setup.failure = new Error("away");
  setup.logOut("alice@example.com/1", "one");
  await setup.pass(20);
  setup.logOut("alice@example.com/1", "two");
  setup.logOut("bob@example.com/1");
  await setup.pass(1000);
  assert.deepEqual([setup.written, setup.notes.waiting], [[], 2]);
  setup.failure = undefined;
  await setup.pass(5000);
  assert.deepEqual(setup.written.flat().map(({ status }) => status), ["two", ""]);
  assert.deepEqual(setup.logger.entries.filter(({ level }) => level !== "debug"), []);
});

Deno.test("LogoutNotes writes the logouts of a host while the store of another one fails", async () => {
  const setup = new Setup();
  setup.failingHost = "example.com";
  setup.logOut("alice@example.com/1");
  setup.logOut("bob@dc1.example.com/1");
  setup.logOut("carol@example.com/1");
  setup.logOut("dave@dc1.example.com/1");
  await setup.pass(20);
  assert.deepEqual([setup.names, setup.notes.waiting], [["bob", "dave"], 2]);
  setup.failingHost = undefined;
  await setup.pass(5000);
  assert.deepEqual(setup.names, ["bob", "dave", "alice", "carol"]);
});

Deno.test("LogoutNotes keeps a logout that comes while an older one is written", async () => {
  const setup = new Setup();
  const gate = Promise.withResolvers<void>();
  setup.gate = gate.promise;
  setup.logOut("alice@example.com/1", "one");
  await setup.pass(20);
  setup.logOut("alice@example.com/1", "two");
  gate.resolve();
  await setup.pass(20);
  await setup.pass(20);
  assert.deepEqual(setup.written.flat().map(({ status }) => status), ["one", "two"]);
});

Deno.test("LogoutNotes drops and counts logouts above its bound", async () => {
  const setup = new Setup();
  setup.failure = new Error("away");
  for (let i = 0; i < 50_001; i++) setup.logOut(`user${i}@example.com/1`);
  setup.logOut("user7@example.com/1", "again");
  assert.equal(setup.notes.waiting, 50_000);
  assert.match(await setup.metrics.prometheus(), /causeway_last_activity_dropped_total 1\n/);
  setup.failure = undefined;
  await setup.notes.close();
  assert.equal(setup.names.length, 50_000);
});

Deno.test("LogoutNotes.forget() drops what waits, and waits for what is being written", async () => {
  const setup = new Setup();
  const gate = Promise.withResolvers<void>();
  setup.gate = gate.promise;
  setup.logOut("alice@example.com/1");
  await setup.pass(20);
  setup.logOut("alice@example.com/1");
  setup.logOut("bob@example.com/1");
  let isForgotten = false;
  const forgetting = setup.notes.forget(parseJid("alice@example.com").bare)
    .then(() => isForgotten = true);
  await setup.pass(0);
  assert.equal(isForgotten, false);
  gate.resolve();
  await forgetting;
  await setup.notes.close();
  assert.deepEqual(setup.names, ["alice", "bob"]);
});

Deno.test("LogoutNotes leaves no logout of an account that was deleted while it waited", async () => {
  const setup = new Setup();
  setup.failure = new Error("away");
  for (const name of ["alice", "bob", "carol"]) setup.logOut(`${name}@example.com/1`, "Secret");
  await setup.pass(20);
  setup.others.set("alice", undefined).set("bob", "2"); // bob's name has a new owner
  setup.failure = undefined;
  await setup.pass(5000);
  assert.deepEqual(
    [setup.names, setup.removed],
    [["carol"], []],
    "a new owner has a logout of its own",
  );
  assert.equal(setup.notes.waiting, 0);
});

Deno.test("LogoutNotes leaves no logout of an account that is deleted while it is written", async () => {
  const setup = new Setup();
  const gate = Promise.withResolvers<void>();
  setup.gate = gate.promise;
  for (const name of ["alice", "bob", "carol"]) setup.logOut(`${name}@example.com/1`, "Secret");
  await setup.pass(20);
  setup.others.set("alice", undefined).set("bob", "2");
  gate.resolve();
  await setup.pass(0);
  assert.deepEqual(setup.removed, ["alice", "bob"]);
  assert.equal(setup.notes.waiting, 0);
});

Deno.test("LogoutNotes.close() writes what waits at once, and gives up where that fails", async () => {
  const setup = new Setup();
  setup.logOut("alice@example.com/1");
  await setup.notes.close();
  assert.deepEqual(setup.names, ["alice"]);
  const failing = new Setup();
  failing.failure = new Error("away");
  failing.logOut("alice@example.com/1");
  await failing.notes.close();
  await failing.pass(60_000);
  assert.deepEqual(failing.written, []);
});
