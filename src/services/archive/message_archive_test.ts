import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { CausewayError, FairShares, ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveFilter, ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf, InternalStore } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { GATHERING_MS } from "./archive_writer.ts";
import { MessageArchive } from "./message_archive.ts";
import type { Noting } from "./held_message.ts";
import type { ArchivableMessage } from "./message_archive.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const CREATIONS: ReadonlyMap<string, string> = new Map([[ALICE, "0a"], [BOB, "0b"]]);
const SIDES = ["sender", "recipient", "absent"] as const;
const [ALICE_ARCHIVE, BOB_ARCHIVE] = [archiveKeyOf(ALICE, "0a"), archiveKeyOf(BOB, "0b")];
const BODY = "<body>hi</body>";

/** Archives over a store of their own. */
class World implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  /** Creations of accounts, in the database and at this node. */
  readonly accounts = new Map(CREATIONS);
  readonly accountsHere = new Map(CREATIONS);
  here: "nobody" | "blocked" | "somebody" = "somebody";
  isBlocked = false;
  isContact = false;
  askRoster = () => Promise.resolve();
  isDown = false;
  searchesText = false;
  /** The option of the host. */
  isSearched = true;
  /** Messages that the store was given. */
  readonly given: ArchivedMessage[] = [];
  /** While set, the store answers after it. */
  hanging: Promise<void> | undefined;
  /** Answers of the store of accounts, each with the account that was asked for; not held by default. */
  readonly questions: { readonly account: string; answer(): void }[] = [];
  holdsQuestions = false;
  isAccountsDown = false;
  asked = 0;
  archive!: MessageArchive;
  budget = new FairShares();
  #store!: InternalStore;
  #directory!: string;
  #sequence = 0;

  static async open(budget = new FairShares()): Promise<World> {
    const world = new World();
    world.budget = budget;
    world.#directory = await Deno.makeTempDir({ prefix: "causeway-archive-" });
    world.#store = await InternalStore.open({ path: `${world.#directory}/store.sqlite` });
    const inner = world.#store.archives();
    const store: ArchiveStore = {
      get searchesText() {
        return world.searchesText;
      },
      append: async (messages, nowMs) => {
        await world.hanging;
        world.given.push(...messages);
        if (world.isDown) throw new CausewayError("storage/unreachable", "Cannot reach it");
        return await inner.append(messages, nowMs);
      },
      read: inner.read.bind(inner),
      count: inner.count.bind(inner),
      ends: inner.ends.bind(inner),
      preferences: inner.preferences.bind(inner),
      setPreferences: inner.setPreferences.bind(inner),
      removeAll: inner.removeAll.bind(inner),
      removeBefore: inner.removeBefore.bind(inner),
    };
    world.archive = new MessageArchive({
      hosts: new Map([["example.com", {
        defaultLimit: 50,
        maxLimit: 50,
        hasChatMarkers: false,
        hasGroupchats: false,
        hasStanzaIds: true,
        get isSearched() {
          return world.isSearched;
        },
        maxAgeMs: Infinity,
      }]]),
      storeOf: () => store,
      existing: async (host, localparts) => {
        const text = `${localparts[0]}@${host}`;
        world.asked++;
        if (world.isAccountsDown) throw new CausewayError("storage/unreachable", "Cannot reach it");
        if (world.holdsQuestions) {
          const { promise, resolve } = Promise.withResolvers<void>();
          world.questions.push({ account: text, answer: resolve });
          await promise;
        }
        const creation = world.accounts.get(text);
        return new Map(creation === undefined ? [] : [[localparts[0]!, creation]]);
      },
      refusalsFor: () => Promise.resolve(() => world.isBlocked),
      here: () => world.here,
      creationHere: ({ bare }) => world.accountsHere.get(bare.text),
      isContact: async () => {
        await world.askRoster();
        return world.isContact;
      },
      isUserHost: (domain) => domain === "example.com",
      budget,
      metrics: world.metrics,
      logger: SILENT_LOGGER,
      clock: world.clock,
    });
    return world;
  }

  get store(): ArchiveStore {
    return this.#store.archives();
  }

  message(from: string, to: string, content = BODY): ArchivableMessage {
    const text = `<message from='${from}' to='${to}' type='chat'>${content}</message>`;
    const stanza: Stanza = {
      kind: "message",
      type: "chat",
      from: parseJid(from),
      to: parseJid(to),
      bytes: new TextEncoder().encode(text),
    };
    return { stanza, process: 5, sequence: ++this.#sequence, sentAtUs: this.clock.wallUs() };
  }

  /** Waits until a condition holds; the store answers in its own time. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await turn();
  }

  async sequences(
    account: string,
    filter: ArchiveFilter = {},
    creation = CREATIONS.get(account) ?? "",
  ): Promise<readonly number[]> {
    const key = archiveKeyOf(account, creation);
    const page = await this.store.read(key, filter, { limit: 100, from: "start" });
    return page!.messages.map(({ sequence }) => sequence);
  }

  async value(name: string): Promise<number> {
    const text = await this.metrics.prometheus();
    const line = text.split("\n").find((each) => each.startsWith(name))!;
    return Number(line.slice(line.lastIndexOf(" ")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.holdsQuestions = false; // the archive asks at its end
    await this.archive.close();
    await this.#store.close();
    this.metrics.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a message may go on. */
async function ready(noting: Noting): Promise<void> {
  await new Promise<void>((resolve) => noting.whenReady(resolve));
}

async function settled(
  { clock }: World,
  noting: ReturnType<MessageArchive["note"]>,
): Promise<Noting> {
  ok(typeof noting === "object");
  await turn(); // a writer with nothing left to write rests
  clock.advance(GATHERING_MS);
  await ready(noting);
  await new Promise<void>((resolve) => noting.whenSettled(resolve));
  strictEqual(noting.isSettled, true);
  return noting;
}

Deno.test("MessageArchive gives a message to both archives, each with the other side", async () => {
  await using world = await World.open();
  const message = world.message(`${ALICE}/desk`, BOB);
  for (const side of ["sender", "recipient"] as const) {
    strictEqual((await settled(world, world.archive.note(message, side))).isStored, true);
  }
  const filter = (bare: string, resourcepart = "") => ({ peer: { bare, resourcepart } });
  deepStrictEqual(await world.sequences(ALICE, filter(BOB)), [1]);
  deepStrictEqual(await world.sequences(BOB, filter(ALICE, "desk")), [1]);
  deepStrictEqual(await world.sequences(BOB, filter(BOB)), []);
  const again = world.message(ALICE, ALICE);
  for (const side of ["sender", "recipient"] as const) {
    strictEqual((await settled(world, world.archive.note(again, side))).isStored, true);
  }
  deepStrictEqual(await world.sequences(ALICE), [1, 2], "a note to oneself is there once");
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive gives a store the text of messages where it searches them", async () => {
  await using world = await World.open();
  const note = async (content?: string) => {
    const message = world.message(`${ALICE}/desk`, BOB, content);
    for (const side of SIDES) await settled(world, world.archive.note(message, side));
    return world.given.splice(0).map(({ text }) => text);
  };
  strictEqual(world.archive.searchesText("example.com"), false);
  deepStrictEqual(await note(), [undefined, undefined, undefined]);
  world.searchesText = true;
  strictEqual(world.archive.searchesText("example.com"), true);
  strictEqual(world.archive.searchesText("example.org"), false);
  deepStrictEqual(await note(), ["hi", "hi", "hi"]);
  const encrypted = `${BODY}<encrypted xmlns='urn:xmpp:omemo:2'/>`;
  deepStrictEqual(await note(encrypted), ["", "", ""]);
  world.isSearched = false;
  strictEqual(world.archive.searchesText("example.com"), false);
  deepStrictEqual(await note(), [undefined, undefined, undefined]);
});

Deno.test("MessageArchive counts the text of a message that waits", async () => {
  await using world = await World.open();
  const long = `<body>${"x".repeat(10_000)}</body>`;
  const waiting = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.hanging = promise;
    const noting = world.archive.note(world.message(`${ALICE}/desk`, BOB, long), "sender");
    const { bytes } = world.budget;
    resolve();
    await settled(world, noting);
    return bytes;
  };
  const without = await waiting();
  world.searchesText = true;
  strictEqual(await waiting(), without + 20_000);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive keeps accounts apart that had one name one after another", async () => {
  await using world = await World.open();
  const note = (side: typeof SIDES[number]) =>
    settled(world, world.archive.note(world.message(`${ALICE}/desk`, BOB), side));
  await note("recipient");
  world.accounts.set(BOB, "0c"); // bob's client is still the one of the account before
  await note("recipient");
  await note("absent");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  deepStrictEqual(await world.sequences(BOB, {}, "0c"), [3]);
  // Clients of both, or none: the database is asked.
  world.accountsHere.delete(BOB);
  world.accountsHere.delete(ALICE);
  world.accounts.delete(ALICE);
  strictEqual((await note("recipient")).isStored, true);
  strictEqual((await note("sender")).isStored, false);
  deepStrictEqual(await world.sequences(BOB, {}, "0c"), [3, 4]);
  deepStrictEqual(await world.sequences(ALICE), []);
});

Deno.test("MessageArchive keeps a message whose session has gone while the store of accounts fails", async () => {
  await using world = await World.open();
  const { archive, clock } = world;
  world.accountsHere.clear();
  world.isAccountsDown = true;
  const notings = (["sender", "sender", "recipient"] as const).map((side) =>
    archive.note(world.message(ALICE, BOB), side) as Noting
  );
  let isReady = false;
  notings[2]!.whenReady(() => isReady = true);
  await world.until(() => world.asked === 2);
  await turn();
  clock.advance(1_000);
  await world.until(() => world.asked === 4);
  await turn();
  deepStrictEqual([isReady, ...notings.map((each) => each.isSettled)], [true, false, false, false]);
  world.isAccountsDown = false;
  clock.advance(1_000);
  await world.until(() => world.asked === 6);
  await turn();
  clock.advance(1_000);
  for (const noting of notings) await settled(world, noting);
  deepStrictEqual(await world.sequences(ALICE), [1, 2]);
  deepStrictEqual(await world.sequences(BOB), [3]);
  // A node that stops asks once more.
  clock.advance(5_000);
  world.isAccountsDown = true;
  archive.note(world.message(ALICE, BOB), "sender");
  await world.until(() => world.asked === 7);
  await turn();
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 1);
});

Deno.test("MessageArchive leaves alone what no archive takes", async () => {
  await using world = await World.open();
  const { archive } = world;
  const outside = world.message("x@example.org", "room.example.org");
  for (const side of SIDES) strictEqual(archive.note(outside, side), undefined);
  const state = "<active xmlns='http://jabber.org/protocol/chatstates'/>";
  for (const side of SIDES) {
    strictEqual(archive.note(world.message(ALICE, BOB, state), side), undefined);
  }
  strictEqual(archive.keep(world.message(ALICE, BOB, state), OUTCOME), false);
  strictEqual(archive.keep(world.message(ALICE, "room.example.org"), OUTCOME), false);
  for (const here of ["nobody", "blocked"] as const) {
    world.here = here;
    strictEqual(archive.isHere(world.message(ALICE, BOB)), false, here);
  }
});

const OUTCOME = { kept: () => {}, refused: () => {} };

Deno.test("MessageArchive takes a message for somebody absent if the account is there", async () => {
  await using world = await World.open();
  const note = (to: string) =>
    settled(world, world.archive.note(world.message(ALICE, to), "absent"));
  strictEqual((await note(BOB)).isStored, true);
  strictEqual((await note("nobody@example.com")).isStored, false);
  world.isBlocked = true;
  world.clock.advance(2_000);
  strictEqual((await note(BOB)).isStored, false);
  deepStrictEqual(await world.sequences(BOB), [1]);
  deepStrictEqual(await world.sequences("nobody@example.com"), []);
});

Deno.test("MessageArchive.keep() accepts what the archive has, and what a blocked person sends", async () => {
  await using world = await World.open();
  const keep = (message: ArchivableMessage) =>
    new Promise<string>((resolve) => {
      const outcome = { kept: () => resolve("kept"), refused: resolve };
      ok(world.archive.keep(message, outcome));
    });
  const message = world.message(ALICE, `${BOB}/gone`);
  await settled(world, world.archive.note(message, "absent"));
  strictEqual(await keep(message), "kept");
  strictEqual(await keep(world.message(ALICE, BOB)), "kept");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  strictEqual(await keep(world.message(ALICE, "nobody@example.com")), "service-unavailable");
  world.isBlocked = true;
  world.clock.advance(2_000); // what is known of the account has expired
  strictEqual(await keep(world.message(ALICE, BOB)), "kept");
  deepStrictEqual(await world.sequences(BOB), [1, 2]);
  world.isBlocked = false;
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "never", always: [], never: [] });
  strictEqual(await keep(world.message(ALICE, BOB)), "service-unavailable");
});

Deno.test("MessageArchive.keep() answers within its time when the store fails, and stores nothing later", async () => {
  await using world = await World.open();
  world.isDown = true;
  let answer: string | undefined;
  world.archive.keep(world.message(ALICE, BOB), {
    kept: () => answer = "kept",
    refused: (condition) => answer = condition,
  });
  await world.until(() => world.archive.pending > 0);
  // Between two attempts no transaction has the message.
  for (let step = 0; step < 100 && answer === undefined; step++) {
    world.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  strictEqual(answer, "internal-server-error");
  world.isDown = false;
  world.clock.advance(10_000);
  await world.until(() => world.archive.pending === 0);
  deepStrictEqual(await world.sequences(BOB), []);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive.keep() answers within its time when the store hangs", async () => {
  await using world = await World.open();
  for (const isAccountHung of [true, false]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.holdsQuestions = isAccountHung;
    world.hanging = promise;
    let answer: string | undefined;
    const message = world.message(ALICE, BOB);
    world.archive.keep(message, {
      kept: () => answer = "kept",
      refused: (condition) => answer = condition,
    });
    if (isAccountHung) await world.until(() => world.questions.length === 1);
    else await world.until(() => world.archive.pending === 1);
    world.clock.advance(4_999);
    await turn();
    strictEqual(answer, undefined);
    world.clock.advance(1);
    await turn();
    strictEqual(answer, "internal-server-error");
    world.questions[0]!.answer();
    resolve();
    await world.until(() => world.budget.bytes === 0);
  }
  deepStrictEqual(await world.sequences(BOB), [2], "the store had the second one");
});

Deno.test("MessageArchive does not store a message later that was given up while a transaction had it", async () => {
  await using world = await World.open();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.hanging = promise;
  let answer: string | undefined;
  world.archive.keep(world.message(ALICE, BOB), {
    kept: () => answer = "kept",
    refused: (condition) => answer = condition,
  });
  await world.until(() => world.archive.pending === 1);
  world.clock.advance(5_000);
  await world.until(() => answer !== undefined);
  strictEqual(answer, "internal-server-error");
  world.isDown = true;
  resolve();
  await world.until(() => world.archive.pending === 0);
  world.isDown = false;
  strictEqual(world.budget.bytes, 0);
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 1);
  // Nothing waits for the store any more, so the next message is not late from the beginning.
  const next = await settled(world, world.archive.note(world.message(ALICE, BOB), "recipient"));
  strictEqual(next.isStored, true);
  strictEqual(await world.value("causeway_archive_late_total"), 1);
  deepStrictEqual(await world.sequences(BOB), [2]);
});

Deno.test("MessageArchive keeps the order of messages for somebody offline", async () => {
  await using world = await World.open();
  world.holdsQuestions = true;
  const kept: number[] = [];
  const keep = () => {
    const message = world.message(ALICE, BOB);
    const outcome = { kept: () => void kept.push(message.sequence), refused: () => {} };
    ok(world.archive.keep(message, outcome));
  };
  keep();
  const second = world.archive.note(world.message(ALICE, BOB), "absent");
  keep();
  await turn();
  // The answers to later questions come first.
  for (const { answer } of world.questions.toReversed()) answer();
  await settled(world, second);
  await world.until(() => kept.length === 2);
  deepStrictEqual(await world.sequences(BOB), [1, 2, 3]);
  strictEqual(world.asked, 1);
});

Deno.test("MessageArchive keeps the order of messages whose sender is looked for in the roster", async () => {
  await using world = await World.open();
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  const rosters: (() => void)[] = [];
  world.askRoster = () => new Promise((resolve) => void rosters.push(resolve));
  const carol = "carol@example.com";
  const notings = [ALICE, carol, ALICE].map((from) =>
    world.archive.note(world.message(from, BOB), "absent")
  );
  for (let answered = 0; answered < 2; answered++) {
    await world.until(() => rosters.length > 0);
    await turn();
    strictEqual(rosters.length, 1, "one question at a time");
    rosters.pop()!();
  }
  for (const noting of notings) await settled(world, noting);
  deepStrictEqual(await world.sequences(BOB), [1, 2, 3]);
});

Deno.test("MessageArchive asks the database nothing about a message that it has no room for", async () => {
  await using world = await World.open(new FairShares({ maxBytes: 100 }));
  strictEqual(world.archive.note(world.message(ALICE, BOB), "absent"), "resource-constraint");
  const refused = await new Promise((resolve) => {
    world.archive.keep(world.message(ALICE, BOB), { kept: () => {}, refused: resolve });
  });
  deepStrictEqual([refused, world.asked], ["resource-constraint", 0]);
});

Deno.test("MessageArchive lets messages go on when the store fails, and settles them when they are stored", async () => {
  await using world = await World.open();
  world.isDown = true;
  const noting = world.archive.note(world.message(ALICE, BOB), "recipient");
  ok(typeof noting === "object");
  await world.until(() => world.archive.pending > 0);
  world.clock.advance(1_000);
  await ready(noting);
  deepStrictEqual([noting.isSettled, noting.isStored], [false, false]);
  strictEqual(await world.value("causeway_archive_late_total"), 1);
  ok(world.budget.bytes > 0);
  world.isDown = false;
  world.clock.advance(10_000);
  await new Promise<void>((resolve) => noting.whenSettled(resolve));
  deepStrictEqual([noting.isStored, await world.sequences(BOB)], [true, [1]]);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive refuses what does not fit into its memory while the store fails", async () => {
  await using world = await World.open(new FairShares({ maxBytes: 20_000 }));
  world.isDown = true;
  let taken = 0;
  while (world.archive.note(world.message(ALICE, BOB), "sender") !== "resource-constraint") taken++;
  ok(taken > 0 && world.budget.bytes <= 20_000);
  const early = world.archive.note(world.message(ALICE, BOB), "sender", true);
  strictEqual(early, "resource-constraint");
  match(await world.metrics.prometheus(), /archive_messages_total\{outcome="refused"\} 1\n/);
});

Deno.test("MessageArchive leaves lanes room while the store is late, however much memory is free", async () => {
  await using world = await World.open();
  world.isDown = true;
  const noting = world.archive.note(world.message(ALICE, BOB), "sender");
  world.clock.advance(GATHERING_MS);
  await turn();
  world.clock.advance(1_000);
  ok(typeof noting === "object");
  await ready(noting);
  const content = `<body>${"x".repeat(50_000)}</body>`;
  let taken = 0;
  for (; taken < 1_000; taken++) {
    if (typeof world.archive.note(world.message(ALICE, BOB, content), "sender") !== "object") break;
  }
  ok(taken > 0 && world.budget.bytes <= 4_194_304, `${world.budget.bytes} bytes`);
  const other = world.message("carol@example.com", "dave@example.com");
  ok(typeof world.archive.note(other, "sender") === "object", "others find room");
  world.isDown = false;
  world.clock.advance(1_000);
  await world.until(() => world.archive.pending === 0);
  strictEqual((await world.sequences(ALICE)).length, Math.min(100, taken + 1));
  ok(typeof world.archive.note(world.message(ALICE, BOB), "sender") === "object");
  strictEqual(await world.value('causeway_archive_messages_total{outcome="refused"}'), 1);
});

/** Fills the share of a message's sender while the store is late. Returns a message without room. */
async function filledBy(world: World, from: string, to: string): Promise<ArchivableMessage> {
  world.isDown = true;
  world.accountsHere.set("yan@example.com", "0f");
  const first = world.archive.note(
    world.message("zoe@example.com", "yan@example.com"),
    "recipient",
  );
  await turn();
  world.clock.advance(1_000);
  await ready(first as Noting);
  const content = `<body>${"x".repeat(50_000)}</body>`;
  for (let taken = 0; taken < 1_000; taken++) {
    const message = world.message(from, to, content);
    if (world.archive.note(message, "recipient", true) === "resource-constraint") return message;
  }
  throw new Error("the share has no end");
}

/** Has a message wait for room; returns the outcomes of its wait. */
function wait(world: World, message: ArchivableMessage): (boolean | Noting)[] {
  const outcomes: (boolean | Noting)[] = [];
  void world.archive.whenRoom(message, {
    side: "recipient",
    sinceMs: world.clock.monotonicMs(),
    attempt: () => {
      const noting = world.archive.note(message, "recipient", true);
      if (typeof noting === "object") outcomes.push(noting);
      return noting !== "resource-constraint";
    },
  }).then((hasRoom) => outcomes.push(hasRoom));
  return outcomes;
}

Deno.test("MessageArchive.whenRoom() has a message wait until the store takes those before it", async () => {
  await using world = await World.open();
  const message = await filledBy(world, ALICE, BOB);
  const outcomes = wait(world, message);
  await turn();
  deepStrictEqual(outcomes, []);
  strictEqual(await world.value("causeway_archive_senders_waiting"), 1);
  const other = wait(world, world.message("carol@example.com", "dave@example.com"));
  await turn();
  strictEqual(other[1], true, "others find room");
  world.isDown = false;
  world.clock.advance(1_000);
  await world.until(() => outcomes.length === 2);
  strictEqual(outcomes[1], true);
  await world.until(() => world.archive.pending === 0);
  strictEqual((await world.sequences(BOB)).at(-1), message.sequence);
  strictEqual(await world.value("causeway_archive_senders_waiting"), 0);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive.whenRoom() refuses a session's message after five seconds, a component's after one", async () => {
  for (const [from, waitMs] of [[ALICE, 5_000], ["gateway.example.net", 1_000]] as const) {
    await using world = await World.open();
    const message = await filledBy(world, from, BOB);
    const outcomes = wait(world, message);
    const { bytes } = world.budget;
    world.clock.advance(waitMs - 250);
    await turn();
    deepStrictEqual(outcomes, []);
    world.clock.advance(250);
    await turn();
    deepStrictEqual(outcomes, [false]);
    strictEqual(world.budget.bytes, bytes, "a message that waits is not held");
    strictEqual(await world.value('causeway_archive_messages_total{outcome="refused"}'), 1);
  }
});

Deno.test("MessageArchive.hurry() has messages wait for room for a second", async () => {
  await using world = await World.open();
  const outcomes = wait(world, await filledBy(world, ALICE, BOB));
  world.archive.hurry();
  world.clock.advance(1_000);
  await turn();
  deepStrictEqual(outcomes, [false]);
});

Deno.test("MessageArchive takes a refused message back", async () => {
  await using world = await World.open();
  for (const side of SIDES) {
    const noting = world.archive.note(world.message(ALICE, BOB), side);
    ok(typeof noting === "object");
    noting.takeBack();
    strictEqual((await settled(world, noting)).isStored, false, side);
  }
  await settled(world, world.archive.note(world.message(ALICE, BOB), "sender"));
  deepStrictEqual([await world.sequences(ALICE), await world.sequences(BOB)], [[4], []]);
  strictEqual(world.budget.bytes, 0);
});

Deno.test("MessageArchive asks the roster where preferences want contacts alone", async () => {
  await using world = await World.open();
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  const note = () => settled(world, world.archive.note(world.message(ALICE, BOB), "recipient"));
  strictEqual((await note()).isStored, false);
  world.isContact = true;
  strictEqual((await note()).isStored, true);
  deepStrictEqual(await world.sequences(BOB), [2]);
});

Deno.test("MessageArchive keeps a message while the roster fails, and asks it again", async () => {
  await using world = await World.open();
  const { archive, clock } = world;
  await world.store.setPreferences(BOB_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  let isAway = true;
  let asked = 0;
  world.askRoster = () => {
    asked++;
    return isAway ? Promise.reject(new Error("away")) : Promise.resolve();
  };
  const noting = archive.note(world.message(ALICE, BOB), "recipient") as Noting;
  let isReady = false;
  noting.whenReady(() => isReady = true);
  await world.until(() => asked === 1);
  await turn();
  deepStrictEqual([isReady, noting.isSettled, archive.pending], [false, false, 1]);
  clock.advance(1_000);
  await world.until(() => asked === 2);
  await turn();
  deepStrictEqual([isReady, noting.isSettled], [true, false], "it goes on, and is kept");
  await archive.caughtUp(parseJid(BOB).bare, BOB_ARCHIVE); // waits for no roster that is late
  isAway = false;
  clock.advance(1_000);
  await settled(world, noting);
  deepStrictEqual(await world.sequences(BOB), [1]);
  // An error has told the sender: nothing is kept for longer.
  isAway = true;
  const refused: string[] = [];
  const outcome = { kept() {}, refused: (condition: string) => void refused.push(condition) };
  archive.keep(world.message(ALICE, BOB), outcome);
  await world.until(() => asked === 4);
  clock.advance(5_000);
  await world.until(() => refused.length > 0);
  deepStrictEqual([refused, world.budget.bytes], [["internal-server-error"], 0]);
  // A node that stops has no time to ask again.
  archive.note(world.message(ALICE, BOB), "recipient");
  await world.until(() => archive.pending === 1 && asked >= 5);
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 2);
});

Deno.test("MessageArchive.caughtUp() waits for what an archive is still to have, and for no other", async () => {
  await using world = await World.open();
  const { archive, clock } = world;
  const caughtUp = (account: string) => {
    const key = archiveKeyOf(account, CREATIONS.get(account)!);
    return archive.caughtUp(parseJid(account).bare, key);
  };
  await caughtUp(ALICE);
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  world.hanging = answer;
  archive.note(world.message(ALICE, BOB), "sender");
  await caughtUp(BOB);
  let isOver = false;
  const over = caughtUp(ALICE).then(() => isOver = true);
  await turn();
  strictEqual(isOver, false);
  resolve();
  await over;
  deepStrictEqual(await world.sequences(ALICE), [1], "nobody had to wait until it had gathered");
  // The roster is asked first.
  await world.store.setPreferences(ALICE_ARCHIVE, { byDefault: "roster", always: [], never: [] });
  world.isContact = true;
  archive.note(world.message(ALICE, BOB), "sender");
  await caughtUp(ALICE);
  deepStrictEqual(await world.sequences(ALICE), [1, 2]);
  // A store that fails holds nobody up for long, and then nobody at all.
  world.isDown = true;
  archive.note(world.message(ALICE, BOB), "sender");
  const later = caughtUp(ALICE);
  await turn();
  clock.advance(1_000);
  await later;
  await caughtUp(ALICE);
});

Deno.test("MessageArchive waits for a message that the roster is asked about, when it is read and closed", async () => {
  await using world = await World.open();
  const { archive } = world;
  const carol = "carol@example.com";
  const preferences = { byDefault: "roster", always: [carol], never: [] } as const;
  await world.store.setPreferences(ALICE_ARCHIVE, preferences);
  world.isContact = true;
  for (const to of [BOB, carol]) archive.note(world.message(ALICE, to), "sender");
  await archive.caughtUp(parseJid(ALICE).bare, ALICE_ARCHIVE);
  deepStrictEqual(await world.sequences(ALICE), [2, 1], "not for the last one alone");
  archive.note(world.message(ALICE, BOB), "recipient");
  archive.note(world.message(ALICE, BOB), "sender");
  world.clock.advance(GATHERING_MS);
  await turn();
  await archive.close();
  strictEqual(await world.value('causeway_archive_messages_total{outcome="failed"}'), 0);
  deepStrictEqual(await world.sequences(ALICE), [2, 1, 4]);
});

Deno.test("MessageArchive.stamped() tells the recipient the id of an archived message alone", async () => {
  await using world = await World.open();
  const { stanza, ...id } = world.message(
    ALICE,
    BOB,
    `${BODY}<stanza-id xmlns='urn:xmpp:sid:0' by='${BOB}' id='x'/>`,
  );
  const text = (isArchived: boolean) =>
    new TextDecoder().decode(world.archive.stamped({ ...id, stanza, isArchived }).bytes);
  ok(text(true).includes(`<stanza-id xmlns='urn:xmpp:sid:0' by='${BOB}' id='5-1'/>`));
  ok(!text(false).includes("stanza-id"));
  const { bytes } = world.archive.unclaimed(stanza);
  ok(!new TextDecoder().decode(bytes).includes("stanza-id"), "nor the id that others made up");
});
