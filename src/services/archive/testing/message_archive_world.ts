import { ok, strictEqual } from "node:assert/strict";
import { CausewayError, FairShares, ManualClock } from "../../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../../observe/mod.ts";
import type { ArchivedMessage, ArchiveFilter, ArchiveStore } from "../../../storage/mod.ts";
import { archiveKeyOf, InternalStore } from "../../../storage/mod.ts";
import { parseJid } from "../../../xmpp/mod.ts";
import type { Stanza } from "../../../xmpp/mod.ts";
import { GATHERING_MS } from "../archive_writer.ts";
import { MessageArchive } from "../message_archive.ts";
import type { Noting } from "../held_message.ts";
import type { ArchivableMessage } from "../message_archive.ts";

export const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
export const CREATIONS: ReadonlyMap<string, string> = new Map([[ALICE, "0a"], [BOB, "0b"]]);

export const SIDES = ["sender", "recipient", "absent"] as const;
export const [ALICE_ARCHIVE, BOB_ARCHIVE] = [archiveKeyOf(ALICE, "0a"), archiveKeyOf(BOB, "0b")];

export const BODY = "<body>hi</body>";

/** Archives over a store of their own. */
export class ArchiveWorld implements AsyncDisposable {
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

  static async open(budget = new FairShares()): Promise<ArchiveWorld> {
    const world = new ArchiveWorld();
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

/** Waits for the end of this turn of the event loop. */
export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a message may go on. */
export async function ready(noting: Noting): Promise<void> {
  await new Promise<void>((resolve) => noting.whenReady(resolve));
}

/** Waits until a message is in its archive. */
export async function settled(
  { clock }: ArchiveWorld,
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
