import assert from "node:assert/strict";
import type {
  ArchivedMessage,
  ArchiveFilter,
  ArchiveId,
  ArchivePageRequest,
  ArchiveStore,
  StoredMessage,
} from "../archive_store.ts";
import { archiveKeyOf } from "../archive_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface ArchiveStoreFixture extends AsyncDisposable {
  archives(): ArchiveStore;
  /** The archives of rooms, where they are apart. */
  roomArchives?(): ArchiveStore;
}

type Check = (store: ArchiveStore) => Promise<void>;

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.org"];
const NOW = 1_700_000_000_000;
const PROCESS = 2 ** 52 - 7;
const ALL: ArchivePageRequest = { limit: 1_000, from: "start" };

/**
 * Returns a message of alice's archive. `sequence` is its text too, unless it says otherwise. The text
 * is the stanza.
 */
export function conformanceArchived(
  sequence: number,
  fields: Partial<ArchivedMessage> = {},
): ArchivedMessage {
  const { text = `${sequence}`, ...others } = fields;
  return {
    archive: ALICE,
    process: PROCESS,
    sequence,
    peer: { bare: BOB, resourcepart: "" },
    sentAtMs: NOW,
    stanza: new TextEncoder().encode(text),
    text,
    ...others,
  };
}

function idOf(sequence: number): ArchiveId {
  return { process: PROCESS, sequence };
}

function textsOf(messages: readonly StoredMessage[] | undefined): readonly string[] | undefined {
  return messages?.map(({ stanza }) => new TextDecoder().decode(stanza));
}

async function read(
  store: ArchiveStore,
  filter: ArchiveFilter = {},
  page: Partial<ArchivePageRequest> = {},
  archive = ALICE,
): Promise<readonly string[] | undefined> {
  return textsOf((await store.read(archive, filter, { ...ALL, ...page }))?.messages);
}

async function append(store: ArchiveStore, ...messages: readonly ArchivedMessage[]): Promise<void> {
  const outcomes = await store.append(messages, NOW);
  assert.deepEqual(outcomes, messages.map(() => "stored"));
}

/** Reads an archive page by page, each behind the last message of the one before. */
class Follower {
  readonly seen: string[] = [];
  readonly #store: ArchiveStore;
  readonly #limit: number;
  #last: ArchiveId | undefined;

  constructor(store: ArchiveStore, limit: number) {
    this.#store = store;
    this.#limit = limit;
  }

  async readOn(): Promise<void> {
    for (;;) {
      const request = { from: "start", limit: this.#limit, after: this.#last } as const;
      const page = await this.#store.read(ALICE, {}, request);
      assert.ok(page, "the last message that it has read is there");
      this.seen.push(...textsOf(page.messages)!);
      this.#last = page.messages.at(-1) ?? this.#last;
      if (page.isComplete) return;
    }
  }
}

const CHECKS: Readonly<Record<string, Check>> = {
  async "messages come in the order in which they were added, with their own times"(store) {
    await append(store, conformanceArchived(3, { sentAtMs: NOW - 5 }), conformanceArchived(1));
    await append(store, conformanceArchived(2, { sentAtMs: NOW - 60_000, process: 7 }));
    const page = await store.read(ALICE, {}, ALL);
    assert.deepEqual(textsOf(page!.messages), ["3", "1", "2"]);
    assert.deepEqual(page!.messages.map(({ sentAtMs }) => sentAtMs), [NOW - 5, NOW, NOW - 60_000]);
    assert.deepEqual(page!.messages.map(({ process }) => process), [PROCESS, PROCESS, 7]);
    assert.equal(page!.isComplete, true);
    assert.deepEqual(await read(store, {}, {}, BOB), []);
    assert.deepEqual(await store.append([], NOW), []);
  },

  async "a time in the future is that of the store"(store) {
    await append(store, conformanceArchived(1, { sentAtMs: NOW + 1e12 }));
    const page = await store.read(ALICE, {}, ALL);
    assert.equal(page!.messages[0]!.sentAtMs, NOW);
  },

  async "a message is in an archive once, however often and by whomever it is added"(store) {
    const [one, two, three] = [1, 2, 3].map((each) => conformanceArchived(each));
    await append(store, one!, two!, one!);
    await append(store, two!, three!);
    await Promise.all(Array.from({ length: 6 }, () => append(store, one!, three!)));
    assert.deepEqual(await read(store), ["1", "2", "3"]);
    // Another process may give the same number, and another archive may have the same message.
    await append(store, { ...one!, process: 1 }, { ...one!, archive: BOB });
    assert.deepEqual(await read(store), ["1", "2", "3", "1"]);
    assert.deepEqual(await read(store, {}, {}, BOB), ["1"]);
  },

  async "a batch goes to many archives, each in its order"(store) {
    const archives = Array.from({ length: 250 }, (_, i) => `user${i}@example.com`);
    const messages = archives.flatMap((archive, i) =>
      [0, 1].map((each) => conformanceArchived(2 * i + each, { archive }))
    );
    await append(store, ...messages);
    await append(store, ...messages);
    for (const i of [0, 100, 249]) {
      assert.deepEqual(await read(store, {}, {}, archives[i]), [`${2 * i}`, `${2 * i + 1}`]);
    }
  },

  async "pages go forwards and backwards, and say when they end"(store) {
    await append(store, ...Array.from({ length: 7 }, (_, i) => conformanceArchived(i + 1)));
    const page = async (request: ArchivePageRequest) => {
      const { messages, isComplete } = (await store.read(ALICE, {}, request))!;
      return [textsOf(messages)!.join(" "), isComplete];
    };
    assert.deepEqual(await page({ limit: 3, from: "start" }), ["1 2 3", false]);
    assert.deepEqual(await page({ limit: 3, from: "start", after: idOf(3) }), ["4 5 6", false]);
    assert.deepEqual(await page({ limit: 3, from: "start", after: idOf(6) }), ["7", true]);
    assert.deepEqual(await page({ limit: 3, from: "start", after: idOf(4) }), ["5 6 7", true]);
    assert.deepEqual(await page({ limit: 3, from: "start", after: idOf(7) }), ["", true]);
    assert.deepEqual(await page({ limit: 3, from: "end" }), ["5 6 7", false]);
    assert.deepEqual(await page({ limit: 3, from: "end", before: idOf(5) }), ["2 3 4", false]);
    assert.deepEqual(await page({ limit: 3, from: "end", before: idOf(2) }), ["1", true]);
    assert.deepEqual(await page({ limit: 3, from: "end", before: idOf(1) }), ["", true]);
    const between = { limit: 9, after: idOf(2), before: idOf(5) };
    assert.deepEqual(await page({ ...between, from: "start" }), ["3 4", true]);
    assert.deepEqual(await page({ ...between, from: "end" }), ["3 4", true]);
    const crossed = { limit: 9, from: "start", after: idOf(5), before: idOf(2) } as const;
    assert.deepEqual(await page(crossed), ["", true]);
  },

  async "a message that an archive lacks is no place in it"(store) {
    await append(store, conformanceArchived(1), conformanceArchived(2, { archive: BOB }));
    const [unknown, others] = [idOf(9), idOf(2)];
    for (const id of [unknown, others, { ...idOf(1), process: 1 }]) {
      assert.equal(await read(store, {}, { after: id }), undefined);
      assert.equal(await read(store, {}, { before: id, from: "end" }), undefined);
      assert.equal(await read(store, { afterId: id }), undefined);
      assert.equal(await read(store, { beforeId: id }), undefined);
      assert.equal(await read(store, { ids: [idOf(1), id] }), undefined);
      assert.equal(await store.count(ALICE, { afterId: id }, 10), undefined);
    }
    assert.deepEqual(await read(store, { ids: [idOf(1)] }), ["1"]);
  },

  async "filters by person and resource, by time, and by id go together"(store) {
    const peer = (bare: string, resourcepart = "") => ({ bare, resourcepart });
    await append(
      store,
      conformanceArchived(1, { peer: peer(BOB, "phone"), sentAtMs: NOW - 4_000 }),
      conformanceArchived(2, { peer: peer(CAROL), sentAtMs: NOW - 3_000 }),
      conformanceArchived(3, { peer: peer(BOB, "Phone"), sentAtMs: NOW - 2_000 }),
      conformanceArchived(4, { peer: peer(BOB), sentAtMs: NOW - 9_000 }), // it came late
      conformanceArchived(5, { peer: peer(BOB, "phone"), sentAtMs: NOW }),
    );
    assert.deepEqual(await read(store, { peer: peer(BOB) }), ["1", "3", "4", "5"]);
    assert.deepEqual(await read(store, { peer: peer(BOB, "phone") }), ["1", "5"]);
    assert.deepEqual(await read(store, { peer: peer("Bob@example.com") }), []);
    assert.deepEqual(await read(store, { startMs: NOW - 3_000 }), ["2", "3", "5"]);
    assert.deepEqual(await read(store, { endMs: NOW - 3_000 }), ["1", "2", "4"]);
    assert.deepEqual(await read(store, { startMs: NOW - 3_000, endMs: NOW - 1 }), ["2", "3"]);
    assert.deepEqual(await read(store, { startMs: NOW + 1 }), []);
    assert.deepEqual(await read(store, { endMs: NOW - 9_001 }), []);
    assert.deepEqual(await read(store, { afterId: idOf(1), beforeId: idOf(5) }), ["2", "3", "4"]);
    assert.deepEqual(await read(store, { afterId: idOf(4), beforeId: idOf(2) }), []);
    const ids = [5, 1, 4, 1].map(idOf);
    assert.deepEqual(await read(store, { ids }), ["1", "4", "5"]);
    assert.deepEqual(await read(store, { ids, afterId: idOf(1), peer: peer(BOB, "phone") }), ["5"]);
    assert.deepEqual(await read(store, { peer: peer(BOB) }, { after: idOf(2), limit: 2 }), [
      "3",
      "4",
    ]);
    assert.deepEqual(await read(store, { endMs: NOW - 2_000 }, { from: "end", limit: 2 }), [
      "3",
      "4",
    ]);
  },

  async "times bound a query in an archive that grew over time"(store) {
    for (let i = 0; i < 50; i++) {
      const message = conformanceArchived(i, { sentAtMs: NOW + i * 1_000 - (i % 7) * 300 });
      assert.deepEqual(await store.append([message], NOW + i * 1_000), ["stored"]);
    }
    const sentAt = (i: number) => NOW + i * 1_000 - (i % 7) * 300;
    for (const [startMs, endMs] of [[NOW, NOW + 9_000], [sentAt(13), sentAt(27)], [0, NOW]]) {
      const expected = Array.from({ length: 50 }, (_, i) => i)
        .filter((i) => sentAt(i) >= startMs! && sentAt(i) <= endMs!).map(String);
      assert.deepEqual(await read(store, { startMs, endMs }), expected);
      assert.deepEqual(await read(store, { startMs, endMs }, { from: "end" }), expected);
    }
    // A clock that was set back does not change the order.
    assert.deepEqual(await store.append([conformanceArchived(99)], NOW - 1e9), ["stored"]);
    assert.deepEqual((await read(store))!.at(-1), "99");
    assert.deepEqual(await read(store, { endMs: NOW - 1e9 }), ["99"]);
    assert.deepEqual(await read(store, { startMs: NOW + 49_000 }), ["49"]);
  },

  async "pages by time hold what they should, whatever the order in which messages came"(store) {
    // Seconds, hours and months apart; some came much later than they were sent, or were sent later
    // than those that came behind them.
    const steps = [400, 3_000, 40, 7_200_000, 900_000, 86_400_000 * 3, 86_400_000 * 220];
    const messages: ArchivedMessage[] = [];
    let sentAtMs = NOW - 86_400_000 * 2_000;
    for (let i = 0; i < 56; i++) {
      sentAtMs += steps[i % steps.length]!;
      const out = i % 5 === 3 ? -86_400_000 * 500 : i % 11 === 4 ? 86_400_000 * 90 : 0;
      const peer = { bare: i % 3 === 0 ? CAROL : BOB, resourcepart: "" };
      messages.push(conformanceArchived(i, { sentAtMs: Math.min(sentAtMs + out, NOW), peer }));
    }
    await append(store, ...messages);
    for (let i = 0; i < 56; i += 11) {
      const time = messages[i]!.sentAtMs;
      for (
        const filter of [{ startMs: time }, { endMs: time }, { startMs: time, endMs: NOW - 9 }]
      ) {
        for (const peer of [undefined, messages[i]!.peer]) {
          const expected = messages.filter((each) =>
            each.sentAtMs >= (filter.startMs ?? 0) && each.sentAtMs <= (filter.endMs ?? NOW) &&
            (peer === undefined || each.peer.bare === peer.bare)
          ).map(({ sequence }) => `${sequence}`);
          const whole = { ...filter, ...(peer === undefined ? {} : { peer }) };
          for (const from of ["start", "end"] as const) {
            const page = (await store.read(ALICE, whole, { limit: 4, from }))!;
            const wanted = from === "start" ? expected.slice(0, 4) : expected.slice(-4);
            assert.deepEqual(textsOf(page.messages), wanted, JSON.stringify({ whole, from }));
            assert.equal(page.isComplete, expected.length <= 4);
          }
          assert.deepEqual(await read(store, whole), expected);
        }
      }
    }
  },

  async "times at the ends of the calendar bound a query, and leave nothing out by themselves"(
    store,
  ) {
    await append(store, conformanceArchived(1), conformanceArchived(2, { sentAtMs: NOW - 5 }));
    // The farthest times that a client can name (XEP-0082), with the offsets of time zones.
    const [first, last] = [Date.parse("0000-01-01T00:00:00+23:59"), 253_402_387_139_999];
    for (const from of ["start", "end"] as const) {
      assert.deepEqual(await read(store, { startMs: first, endMs: last }, { from }), ["1", "2"]);
      assert.deepEqual(await read(store, { startMs: first }, { from }), ["1", "2"]);
      assert.deepEqual(await read(store, { endMs: last }, { from }), ["1", "2"]);
      assert.deepEqual(await read(store, { startMs: last }, { from }), []);
      assert.deepEqual(await read(store, { endMs: first }, { from }), []);
      assert.deepEqual(await read(store, { startMs: last, endMs: first }, { from }), []);
    }
    assert.equal(await store.count(ALICE, { startMs: first, endMs: last }, 10), 2);
    assert.equal(await store.count(ALICE, { startMs: last, endMs: first }, 10), 0);
  },

  async "whoever reads on gets each message once while many write"(store) {
    const [writers, rounds] = [6, 15];
    let isWriting = true;
    const write = async (writer: number) => {
      for (let round = 0; round < rounds; round++) {
        const own = [0, 1].map((each) => conformanceArchived(1_000 * writer + 2 * round + each));
        // Some write to other archives too, before or behind alice's by their keys.
        const other = { ...own[0]!, archive: `user${writer}@example.com` };
        await append(store, ...(writer % 2 === 0 ? [other, ...own] : own));
      }
    };
    const followers = [1, 3, 50].map((limit) => new Follower(store, limit));
    const follow = async (follower: Follower) => {
      while (isWriting) await follower.readOn();
    };
    const following = followers.map(follow);
    try {
      await Promise.all(Array.from({ length: writers }, (_, i) => write(i)));
    } finally {
      isWriting = false;
    }
    await Promise.all(following);
    const all = (await read(store))!;
    assert.equal(new Set(all).size, 2 * writers * rounds);
    assert.equal(all.length, 2 * writers * rounds);
    for (const follower of followers) {
      await follower.readOn();
      assert.deepEqual(follower.seen, all);
    }
    // Each writer's messages are in its order.
    for (let writer = 0; writer < writers; writer++) {
      const own = all.map(Number).filter((each) => Math.trunc(each / 1_000) === writer);
      assert.deepEqual(own, own.toSorted((one, other) => one - other));
    }
  },

  async "count() and ends() tell the size of a result and the ends of an archive"(store) {
    assert.equal(await store.count(ALICE, {}, 10), 0);
    assert.equal(await store.ends(ALICE), undefined);
    const messages = Array.from({ length: 5 }, (_, i) => conformanceArchived(i, { sentAtMs: i }));
    await append(store, ...messages, conformanceArchived(7, { archive: BOB }));
    assert.equal(await store.count(ALICE, {}, 10), 5);
    assert.equal(await store.count(ALICE, {}, 3), 3);
    assert.equal(await store.count(ALICE, { startMs: 2, afterId: idOf(0) }, 10), 3);
    assert.deepEqual(await store.ends(ALICE), {
      first: { ...idOf(0), sentAtMs: 0 },
      last: { ...idOf(4), sentAtMs: 4 },
    });
  },

  async "preferences keep messages out"(store) {
    assert.equal(await store.preferences(ALICE), undefined);
    const preferences = {
      byDefault: "roster",
      always: [`${CAROL}/work`, "dave@example.com"],
      never: [CAROL, "dave@example.com/spam"],
    } as const;
    await store.setPreferences(ALICE, preferences);
    assert.deepEqual(await store.preferences(ALICE), preferences);
    const from = (sequence: number, jid: string, isContact?: boolean) => {
      const [bare, resourcepart = ""] = jid.split("/");
      return conformanceArchived(sequence, { peer: { bare: bare!, resourcepart }, isContact });
    };
    const outcomes = await store.append([
      from(1, BOB),
      from(2, BOB, true),
      from(3, BOB, false),
      from(4, CAROL),
      from(5, `${CAROL}/work`),
      from(6, `${CAROL}/home`),
      from(7, "dave@example.com/any"),
      from(8, "dave@example.com/spam"),
      { ...from(9, CAROL), archive: BOB },
    ], NOW);
    assert.deepEqual(outcomes, [
      ...["ask-roster", "stored", "unwanted", "unwanted", "stored", "unwanted"],
      ...["stored", "unwanted", "stored"],
    ]);
    assert.deepEqual(await read(store), ["2", "5", "7"]);
    const changed = { byDefault: "never", always: [], never: [] } as const;
    await store.setPreferences(ALICE, changed);
    assert.deepEqual(await store.preferences(ALICE), changed);
    const [again, fresh] = await store.append([from(2, BOB), from(10, BOB)], NOW);
    assert.deepEqual([again, fresh], ["stored", "unwanted"], "what is there stays there");
    const copied = [from(12, BOB), from(13, CAROL)].map((each) => ({ ...each, isCopied: true }));
    await append(store, ...copied);
    assert.deepEqual(await read(store), ["2", "5", "7", "12", "13"]);
    await store.setPreferences(ALICE, { ...changed, byDefault: "always" });
    await append(store, from(11, BOB));
  },

  async "removeAll() removes an archive and its preferences, and nothing else"(store) {
    const many = Array.from({ length: 2_500 }, (_, i) => conformanceArchived(i));
    for (let i = 0; i < many.length; i += 500) await append(store, ...many.slice(i, i + 500));
    await append(store, conformanceArchived(1, { archive: BOB }));
    await store.setPreferences(ALICE, { byDefault: "never", always: [], never: [] });
    await store.removeAll(ALICE);
    await store.removeAll(ALICE);
    assert.deepEqual(await read(store), []);
    assert.equal(await store.ends(ALICE), undefined);
    assert.equal(await store.preferences(ALICE), undefined);
    assert.deepEqual(await read(store, {}, {}, BOB), ["1"]);
    await append(store, conformanceArchived(7));
    assert.deepEqual(await read(store), ["7"]);
  },

  async "accounts of one name that were made one after another have archives of their own"(store) {
    const keys = ["", "0a", "0b"].map((creation) => archiveKeyOf(ALICE, creation));
    const [ofNone, ofFirst, ofSecond] = keys as [string, string, string];
    const other = archiveKeyOf(`${ALICE}x`, "0a");
    // In one batch, and each by itself.
    await append(
      store,
      ...[ofFirst, other, ofSecond, ofNone].map((archive) => conformanceArchived(1, { archive })),
    );
    for (const [i, archive] of [...keys, other].entries()) {
      await append(store, conformanceArchived(2 + i, { archive }));
      assert.deepEqual(await read(store, {}, {}, archive), ["1", `${2 + i}`]);
      const preferences = { byDefault: "always", always: [`${i}@example.com`], never: [] } as const;
      await store.setPreferences(archive, preferences);
    }
    assert.deepEqual((await store.preferences(ofSecond))?.always, ["2@example.com"]);
    assert.equal(await read(store, {}, { after: idOf(3) }, ofSecond), undefined);
    await store.removeAll(ALICE);
    for (const archive of keys) {
      assert.deepEqual(await read(store, {}, {}, archive), []);
      assert.equal(await store.preferences(archive), undefined);
    }
    assert.deepEqual(await read(store, {}, {}, other), ["1", "5"]);
    // A message of the first account that comes late is not the second one's.
    await append(store, conformanceArchived(6, { archive: ofFirst }));
    assert.deepEqual(await read(store, {}, {}, ofSecond), []);
    assert.equal(await store.ends(ofSecond), undefined);
    await append(store, conformanceArchived(7, { archive: ofSecond }));
    assert.deepEqual(await read(store, {}, {}, ofSecond), ["7"]);
    assert.deepEqual(await read(store, {}, {}, ofFirst), ["6"]);
  },

  async "removeAll() keeps the archive of whoever has taken the name meanwhile"(store) {
    const [ofFirst, ofSecond, ofThird] = ["0a", "0b", "0c"].map((each) =>
      archiveKeyOf(ALICE, each)
    );
    const preferences = { byDefault: "always", always: ["x@example.com"], never: [] } as const;
    for (const archive of [ofFirst!, ofSecond!]) {
      await append(store, conformanceArchived(1, { archive }));
      await store.setPreferences(archive, preferences);
    }
    await store.removeAll(ALICE, () => Promise.resolve(ofSecond));
    assert.deepEqual(await read(store, {}, {}, ofFirst), []);
    assert.equal(await store.preferences(ofFirst!), undefined);
    assert.deepEqual(await read(store, {}, {}, ofSecond), ["1"]);
    assert.deepEqual(await store.preferences(ofSecond!), preferences);
    // An account that is made right behind the question keeps its archive too.
    let owner: string | undefined;
    const makeThird = async () => {
      const before = owner;
      if (owner === undefined) {
        owner = ofThird;
        await append(store, conformanceArchived(1, { archive: ofThird! }));
        await store.setPreferences(ofThird!, preferences);
      }
      return before;
    };
    await store.removeAll(ALICE, makeThird);
    assert.deepEqual(await read(store, {}, {}, ofSecond), []);
    assert.deepEqual(await read(store, {}, {}, ofThird), ["1"]);
    assert.deepEqual(await store.preferences(ofThird!), preferences);
    await store.removeAll(ALICE, () => Promise.resolve(ofThird));
    assert.deepEqual(await read(store, {}, {}, ofThird), ["1"]);
  },

  async "removeBefore() removes old messages, by archive and by host, some at a time"(store) {
    const ofSecond = archiveKeyOf(ALICE, "0b");
    const day = 86_400_000;
    const add = async (archive: string, ...ages: readonly number[]) => {
      const messages = ages.map((age, i) =>
        conformanceArchived(i, { archive, sentAtMs: NOW - age * day, text: `${age}` })
      );
      for (const message of messages) await append(store, message);
    };
    await add(ALICE, 9, 3, 7, 1, 8); // they came late, in no order
    await add(ofSecond, 9, 2);
    await add(BOB, 6, 5, 4);
    await add(CAROL, 9, 9, 9, 1);
    const preferences = { byDefault: "never", always: [], never: [] } as const;
    await store.setPreferences(CAROL, preferences);
    const before = (days: number) => ({ sentBeforeMs: NOW - days * day });
    const remove = (days: number, scope: { host?: string; archive?: string }, limit = 100) =>
      store.removeBefore({ ...before(days), ...scope }, limit);

    assert.equal(await remove(10, {}), 0);
    assert.equal(await remove(7, { archive: ALICE }), 2, "a message of that time stays");
    assert.deepEqual(await read(store), ["3", "7", "1"]);
    assert.deepEqual(await read(store, {}, {}, ofSecond), ["9", "2"]);
    assert.equal(await remove(2, { archive: "nobody@example.com 0c" }), 0);

    assert.equal(await remove(5, { host: "example.com" }, 2), 2);
    assert.equal(await remove(5, { host: "example.com" }, 2), 1);
    assert.equal(await remove(5, { host: "example.com" }, 2), 0);
    assert.deepEqual(await read(store), ["3", "1"]);
    assert.deepEqual(await read(store, {}, {}, ofSecond), ["2"]);
    assert.deepEqual(await read(store, {}, {}, BOB), ["5", "4"]);
    assert.deepEqual(await read(store, {}, {}, CAROL), ["9", "9", "9", "1"]);

    assert.equal(await remove(0, {}), 9);
    assert.equal(await store.ends(ALICE), undefined);
    assert.deepEqual(await store.preferences(CAROL), preferences);
    await store.setPreferences(CAROL, { ...preferences, byDefault: "always" });
    // An archive that was emptied goes on as any other.
    await append(
      store,
      conformanceArchived(11, { archive: CAROL, sentAtMs: NOW - 3 * day, text: "3" }),
      conformanceArchived(12, { archive: CAROL, sentAtMs: NOW - day, text: "1" }),
    );
    assert.equal(await remove(2, { host: "example.org" }), 1);
    assert.deepEqual(await read(store, {}, {}, CAROL), ["1"]);
  },

  async "removeBefore() removes many messages, while others remove and add some"(store) {
    const many = Array.from(
      { length: 2_500 },
      (_, i) => conformanceArchived(i, { sentAtMs: NOW - 1_000 + Math.trunc(i / 2_300) * 1_000 }),
    );
    for (let i = 0; i < many.length; i += 500) await append(store, ...many.slice(i, i + 500));
    const age = { sentBeforeMs: NOW, host: "example.com" };
    const removed = await Promise.all([
      store.removeBefore(age, 5_000),
      append(store, conformanceArchived(9_000)),
      store.removeBefore(age, 5_000),
    ]);
    assert.equal(removed[0] + removed[2], 2_300);
    assert.equal(await store.count(ALICE, {}, 1_000), 201);
    assert.equal(await store.removeBefore(age, 5_000), 0);
  },

  async "removeBefore() goes through an archive in many calls, and takes what comes in between"(
    store,
  ) {
    const age = { sentBeforeMs: NOW, host: "example.com" };
    const addOld = (first: number, count: number) =>
      append(
        store,
        ...Array.from(
          { length: count },
          (_, i) => conformanceArchived(first + i, { sentAtMs: NOW - 1_000 + i }),
        ),
      );
    const removals = async (calls: number) => {
      const counts: number[] = [];
      for (let i = 0; i < calls; i++) counts.push(await store.removeBefore(age, 2));
      return counts;
    };
    await addOld(0, 5);
    await append(store, conformanceArchived(5, { sentAtMs: NOW }));
    assert.deepEqual(await removals(2), [2, 2]);
    await addOld(6, 2);
    assert.deepEqual(await removals(3), [2, 1, 0]);
    assert.deepEqual(await read(store), ["5"]);
    // The next archive of that name begins anew.
    await addOld(8, 3);
    assert.deepEqual(await removals(1), [2]);
    await store.removeAll(ALICE);
    await addOld(11, 3);
    assert.deepEqual(await removals(3), [2, 1, 0]);
    assert.deepEqual(await read(store), []);
  },

  async "clockMs() is the time of the database, where it tells any"(store) {
    const databaseMs = await store.clockMs?.();
    if (databaseMs === undefined) return;
    const offMs = databaseMs - Date.now();
    assert.ok(Math.abs(offMs) < 60_000, `${offMs} ms ahead`);
  },

  async "words find the messages that have all of them, where text is searched"(store) {
    if (!store.searchesText) return;
    const texts = [
      "The quick brown fox",
      "A quick answer, \u00fcbermorgen",
      "Nothing",
      'fox & "QUICK"; it\'s 100% | (really) :* <->',
      "quicker foxes",
    ];
    await append(
      store,
      ...texts.map((text, i) => conformanceArchived(i, { text })),
      conformanceArchived(10, { text: undefined, stanza: new TextEncoder().encode("quick") }),
      conformanceArchived(11, { text: "", stanza: new TextEncoder().encode("quick") }),
      conformanceArchived(12, { archive: BOB, text: "a quick one" }),
    );
    const found = async (text: string, page: Partial<ArchivePageRequest> = {}) =>
      (await read(store, { text }, page))!.map((each) => texts.indexOf(each));
    assert.deepEqual(await found("quick"), [0, 1, 3]);
    assert.deepEqual(await found("quick", { from: "end", limit: 2 }), [1, 3]);
    assert.deepEqual(await found("Fox QUICK"), [0, 3]);
    assert.deepEqual(await found("\u00dcbermorgen"), [1]);
    assert.deepEqual(await found("fox nothing"), []);
    assert.deepEqual(await found("fox | nothing"), []);
    assert.deepEqual(await found("'fox\" & ((quick:* % _"), [0, 3]);
    for (const text of AWKWARD_TEXTS) await read(store, { text });
    assert.equal(await store.count(ALICE, { text: "quick" }, 10), 3);
    assert.deepEqual(await read(store, { text: "quick" }, {}, BOB), ["a quick one"]);
    await store.removeAll(ALICE);
    assert.deepEqual(await found("quick"), []);
  },

  async "what is added while an archive is removed is in an archive that works"(store) {
    await append(store, ...Array.from({ length: 20 }, (_, i) => conformanceArchived(i)));
    const adding = Array.from(
      { length: 10 },
      (_, i) => append(store, conformanceArchived(100 + i)),
    );
    await Promise.all([store.removeAll(ALICE), ...adding, store.removeAll(ALICE)]);
    await append(store, conformanceArchived(1_000), conformanceArchived(1_001));
    assert.deepEqual((await read(store))!.slice(-2), ["1000", "1001"]);
  },

  async "metacharacters, NUL, characters beyond the BMP and 1 MB are kept as they are"(store) {
    for (const [index, text] of [...AWKWARD_TEXTS, MEGABYTE_XML].entries()) {
      const archive = `${text.slice(0, 20)}${index}@'; --`;
      const peer = { bare: `${text.slice(0, 300)}@x`, resourcepart: text.slice(0, 200) };
      await append(store, conformanceArchived(index, { archive, peer, text }));
      const [found] = (await read(store, { peer }, {}, archive))!;
      assert.ok(found === text);
      await store.setPreferences(archive, { byDefault: "always", always: [peer.bare], never: [] });
      assert.deepEqual((await store.preferences(archive))!.always, [peer.bare]);
    }
  },
};

/**
 * Registers the tests that every `ArchiveStore` passes unchanged; `open` gives an empty backend. Where
 * archives of rooms are apart, they pass the same tests at the same time.
 */
export function archiveStoreConformance(
  name: string,
  open: () => Promise<ArchiveStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: archives: ${behaviour}`, async () => {
      await using fixture = await open();
      const stores = [fixture.archives(), fixture.roomArchives?.()];
      const checked = stores.filter((store) => store !== undefined).map(check);
      for (const outcome of await Promise.allSettled(checked)) {
        if (outcome.status === "rejected") throw outcome.reason;
      }
    });
  }
}
