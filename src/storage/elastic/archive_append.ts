import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/mod.ts";
import { randomHex } from "../../base/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchivePreferences } from "../archive_store.ts";
import { isArchiveWanted } from "../archive_store.ts";
import { storageError } from "../storage_error.ts";
import type { ArchiveHead, Reservation } from "./archive_head.ts";
import { finish, giveUp, reserve, stateOf, visibleUpTo } from "./archive_head.ts";
import type { ArchiveHeads } from "./archive_heads.ts";
import type { ArchivePlace, MessageDocument } from "./elastic_documents.ts";
import {
  contentOf,
  messageDocumentId,
  peerTerms,
  placeOf,
  preferencesDocumentId,
} from "./elastic_documents.ts";
import type { DocumentStamp } from "./elastic_dialect.ts";
import type { BulkOperation, DocumentName, IndexClient } from "./elastic_index.ts";
import { Patience } from "./patience.ts";
import { OLD_VOID_MS, sweepVoids } from "./void_sweep.ts";

/** Attempts of one batch whose reservations others give up. */
const MAX_TRIES = 6;
/**
 * Open reservations and void ranges of a head that is full: nobody reserves more. Both together become
 * void at most, and searches leave all void ranges out: servers count each as up to three of 1024
 * clauses.
 */
const [MAX_OPEN, MAX_VOIDS] = [64, 192];
/** Milliseconds after which what a head says about an attempt may be forgotten soon. */
const MAX_ATTEMPT_MS = OLD_VOID_MS / 2;
/**
 * Archives whose preferences are remembered, and bytes that these take. An archive without preferences
 * takes so many.
 */
const [MAX_REMEMBERED, MAX_REMEMBERED_BYTES, BARE_BYTES] = [20_000, 4_194_304, 200];

const ACTION = "archive messages in";

/** Objects behind the appending of messages. */
export interface ArchiveAppenderDeps {
  readonly index: IndexClient;
  readonly heads: ArchiveHeads;
  /** Name of the database in messages. */
  readonly place: string;
  readonly clock: Clock;
}

/** A message of a batch. */
interface Item {
  readonly message: ArchivedMessage;
  /** Its place in the batch. */
  readonly slot: number;
  readonly place: ArchivePlace;
  readonly name: DocumentName;
}

/** An item and its document. */
interface Placed {
  readonly item: Item;
  readonly document: MessageDocument;
}

/** State of a document with the id of a message. `counts`: readers see it, or will. */
type DocumentState =
  | { readonly kind: "missing" }
  | { readonly kind: "counts"; readonly position: number }
  | { readonly kind: "garbage"; readonly stamp: DocumentStamp };

/** One attempt at a batch. */
interface Attempt {
  readonly beganAt: Moment;
  /** The reservation in each bucket, and the head that has it. */
  readonly own: ReadonlyMap<number, { readonly range: Reservation; readonly head: ArchiveHead }>;
  /** Positions that must be visible at the end, by bucket. */
  readonly awaited: Map<number, number>;
}

/** A time on both clocks: one of them may stand still while the machine is suspended. */
interface Moment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Preferences as they are kept. */
export interface PreferencesDocument {
  readonly owner: string;
  readonly preferences: ArchivePreferences;
}

/** Preferences of an archive, and the number of its bucket's head when they were read. */
interface RememberedPreferences {
  readonly at: number;
  readonly preferences: ArchivePreferences | undefined;
}

/** Adds messages to the archives of an index, as `ArchiveStore.append` says. */
export class ArchiveAppender {
  readonly #deps: ArchiveAppenderDeps;
  /** By archive. */
  readonly #remembered = new LRUCache<string, RememberedPreferences>({
    max: MAX_REMEMBERED,
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: bytesOf,
  });

  constructor(deps: ArchiveAppenderDeps) {
    this.#deps = deps;
  }

  async append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    if (messages.length === 0) return [];
    const buckets = await this.#deps.index.buckets();
    const outcomes = new Array<ArchiveOutcome>(messages.length).fill("stored");
    let left: readonly Item[] = messages.map((message, slot) => {
      const place = placeOf(message.archive, buckets);
      const { routing } = place;
      return { message, slot, place, name: { id: messageDocumentId(place, message), routing } };
    });
    for (let tries = 0; left.length > 0; tries++) {
      if (tries === MAX_TRIES) throw this.#error("conflict");
      left = await this.#try(left, { outcomes, nowMs, tries });
    }
    return outcomes;
  }

  /** Returns the items of buckets in which this attempt was given up, by another writer or by itself. */
  async #try(
    items: readonly Item[],
    { outcomes, nowMs, tries }: {
      readonly outcomes: ArchiveOutcome[];
      readonly nowMs: number;
      readonly tries: number;
    },
  ): Promise<readonly Item[]> {
    const counts = new Map<number, number>();
    for (const { place: { bucket } } of items) counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    const token = randomHex(12);
    /** Buckets that may have the reservation. True: messages may have been written into it. */
    const touched = new Map<number, boolean>();
    let attempt: Attempt;
    let heads: ReadonlyMap<number, ArchiveHead>;
    try {
      attempt = await this.#reserve(counts, { token, tries, touched });
      const wanted = await this.#wanted(items, attempt, outcomes);
      for (const { place: { bucket } } of wanted) touched.set(bucket, true);
      const overtaken = await this.#write(place(wanted, attempt, nowMs), attempt);
      const clockMs = this.#deps.clock.wallMs();
      heads = await this.#changeAll(
        counts.keys(),
        (head, bucket) =>
          overtaken.has(bucket) ? giveUp(head, new Set([token]), clockMs) : finish(head, token),
      );
    } catch (thrown) {
      for (const [bucket, isUsed] of touched) this.#deps.heads.abandon(bucket, token, isUsed);
      throw thrown;
    }
    this.#refuseLate(attempt);
    const givenUp = new Set<number>();
    for (const [bucket, { range }] of attempt.own) {
      if (stateOf(heads.get(bucket)!, range.from).kind !== "void") continue;
      givenUp.add(bucket);
      attempt.awaited.delete(bucket);
    }
    await this.#untilVisible(attempt.awaited, heads);
    await sweepVoids(heads, this.#deps);
    return items.filter(({ place }) => givenUp.has(place.bucket));
  }

  async #reserve(
    counts: ReadonlyMap<number, number>,
    { token, tries, touched }: {
      readonly token: string;
      readonly tries: number;
      readonly touched: Map<number, boolean>;
    },
  ): Promise<Attempt> {
    for (let attempts = 1;; attempts++) {
      const beganAt = momentOf(this.#deps.clock);
      const full = new Set<number>();
      const heads = await this.#changeAll(counts.keys(), (head, bucket) => {
        full.delete(bucket);
        if (isFull(head)) {
          full.add(bucket);
          return undefined;
        }
        touched.set(bucket, false);
        return reserve(head, { token, count: counts.get(bucket)!, tries });
      });
      if (full.size === 0) {
        const own = new Map<number, { readonly range: Reservation; readonly head: ArchiveHead }>();
        for (const [bucket, head] of heads) {
          own.set(bucket, { range: head.open.find((each) => each.token === token)!, head });
        }
        return { beganAt, own, awaited: new Map() };
      }
      // Nobody is to wait meanwhile for what is reserved in the others.
      const others = [...counts.keys()].filter((bucket) => !full.has(bucket));
      await this.#changeAll(others, (head) => finish(head, token));
      if (attempts === MAX_TRIES) throw this.#error("overloaded"); // others are always faster
      await this.#makeRoom(full);
    }
  }

  /**
   * Makes room in heads that are full: removes old void ranges, and waits for open reservations. Gives
   * up those that stay for too long.
   *
   * @throws CausewayError `storage/overloaded` when there is none, such as with too many void ranges
   *   that are not old
   */
  async #makeRoom(buckets: ReadonlySet<number>): Promise<void> {
    const { heads } = this.#deps;
    for (const bucket of buckets) heads.distrust(bucket);
    await sweepVoids(await heads.read([...buckets]), this.#deps);
    const now = await heads.read([...buckets]);
    const hasNone = [...now.values()].some(({ voids }) => voids.length >= MAX_VOIDS);
    if (hasNone) throw this.#error("overloaded");
    await this.#until((head) => head.open.length < MAX_OPEN, {
      positions: new Map([...buckets].map((bucket) => [bucket, Infinity])),
      heads: now,
      failure: "overloaded",
    });
  }

  /**
   * Refuses to go on with an attempt that has taken so long that others may have given it up, removed
   * its messages, and forgotten that. What it has stored is found by the next one.
   */
  #refuseLate({ beganAt }: Attempt): void {
    const now = momentOf(this.#deps.clock);
    const tookMs = Math.max(now.wallMs - beganAt.wallMs, now.monotonicMs - beganAt.monotonicMs);
    if (tookMs > MAX_ATTEMPT_MS) throw this.#error("conflict");
  }

  /** Changes one head for each bucket, all at the same time. */
  async #changeAll(
    buckets: Iterable<number>,
    apply: (head: ArchiveHead, bucket: number) => ArchiveHead | undefined,
  ): Promise<ReadonlyMap<number, ArchiveHead>> {
    const changes = [...buckets].map(async (bucket) =>
      [
        bucket,
        await this.#deps.heads.change(bucket, (head) => apply(head, bucket)),
      ] as const
    );
    // All of them end before a failure is reported: what is changed later is not seen by `abandon`.
    await Promise.allSettled(changes);
    return new Map(await Promise.all(changes));
  }

  /** Returns the items that preferences want, each document once. Notes the outcome of the others. */
  async #wanted(
    items: readonly Item[],
    attempt: Attempt,
    outcomes: ArchiveOutcome[],
  ): Promise<readonly Item[]> {
    const preferences = await this.#preferencesOf(items, attempt.own);
    const wanted = new Map<string, Item>();
    const denied: Item[] = [];
    for (const item of items) {
      const answer = isArchiveWanted(preferences.get(item.place.archive), item.message);
      outcomes[item.slot] = "stored"; // an earlier attempt may have noted something else
      if (wanted.has(item.name.id)) continue;
      if (answer === true) wanted.set(item.name.id, item);
      else {
        denied.push(item);
        outcomes[item.slot] = answer === false ? "unwanted" : "ask-roster";
      }
    }
    // A message that is there stays there.
    const states = await this.#settle(denied, attempt);
    for (const item of denied) {
      if (states.get(item)!.kind === "counts") outcomes[item.slot] = "stored";
    }
    return [...wanted.values()];
  }

  /** Returns the preferences of those archives that have some. */
  async #preferencesOf(
    items: readonly Item[],
    own: Attempt["own"],
  ): Promise<ReadonlyMap<string, ArchivePreferences>> {
    const preferences = new Map<string, ArchivePreferences>();
    const unknown = new Map<string, { readonly place: ArchivePlace; readonly at: number }>();
    for (const { place } of items) {
      const at = own.get(place.bucket)!.head.preferences;
      if (at === 0) continue; // nobody in this bucket has ever set some
      const known = this.#remembered.get(place.archive);
      if (known?.at !== at) unknown.set(place.archive, { place, at });
      else if (known.preferences !== undefined) preferences.set(place.archive, known.preferences);
    }
    const wanted = [...unknown.values()];
    const names = wanted.map(({ place }) => ({
      id: preferencesDocumentId(place),
      routing: place.routing,
    }));
    const found = await this.#deps.index.get<PreferencesDocument>(ACTION, names, ["preferences"]);
    for (const [i, { place: { archive }, at }] of wanted.entries()) {
      const read = found[i]!.content?.preferences;
      if (read !== undefined) preferences.set(archive, read);
      this.#remembered.set(archive, { at, preferences: read });
    }
    return preferences;
  }

  /**
   * Writes documents. One that is there already counts, or is replaced if it is garbage.
   *
   * Returns the buckets in which the attempt was overtaken: a message counts behind its range already,
   * and it has written later ones of the same archive into its range. They would be in the wrong order.
   */
  async #write(documents: readonly Placed[], attempt: Attempt): Promise<ReadonlySet<number>> {
    const counted = new Map<Item, number>();
    for (const { document: { bucket, position } } of documents) expect(attempt, bucket, position);
    let left = documents;
    let operations = left.map((each): BulkOperation => operationOf(each, "create"));
    while (left.length > 0) {
      this.#refuseLate(attempt);
      const outcomes = await this.#deps.index.change(ACTION, operations);
      const refused = left.filter((_, i) => outcomes[i]!.kind !== "done");
      const states = await this.#settle(refused.map(({ item }) => item), attempt);
      for (const [item, state] of states) {
        if (state.kind === "counts") counted.set(item, state.position);
      }
      left = refused.filter(({ item }) => !counted.has(item));
      operations = left.map((each) => {
        const state = states.get(each.item)!;
        return state.kind === "garbage"
          ? { ...operationOf(each, "index"), stamp: state.stamp }
          : operationOf(each, "create"); // it was removed meanwhile
      });
    }
    return overtakenIn(documents, counted, attempt);
  }

  /**
   * Finds out which messages are there already, and waits for the writers of those that may not count
   * in the end. The attempt awaits those that count.
   *
   * A writer with older positions gives up a newer one at once, and a newer one waits for an older
   * one. So no two wait for each other.
   */
  async #settle(
    items: readonly Item[],
    attempt: Attempt,
  ): Promise<ReadonlyMap<Item, DocumentState>> {
    const { index, heads, clock } = this.#deps;
    const patience = new Patience(clock);
    const states = new Map<Item, DocumentState>();
    let left = items;
    while (left.length > 0) {
      if (patience.isExhausted) throw this.#error("conflict");
      const names = left.map(({ name }) => name);
      const found = await index.get<Pick<MessageDocument, "position">>(ACTION, names, ["position"]);
      const there = left.filter((_, i) => found[i]!.content !== undefined);
      const now = await heads.read([...new Set(there.map(({ place }) => place.bucket))]);
      const slow = new Map<number, Set<string>>();
      const waiting: Item[] = [];
      for (const [i, item] of left.entries()) {
        const { content, stamp } = found[i]!;
        if (stamp === undefined || content === undefined) {
          states.set(item, { kind: "missing" });
          continue;
        }
        const { bucket } = item.place;
        const { position } = content;
        const { range, head: first } = attempt.own.get(bucket)!;
        // The server repeats a request of its own accord when a copy of the index is lost.
        if (position >= range.from && position <= range.to) {
          states.set(item, { kind: "counts", position });
          continue;
        }
        const state = stateOf(now.get(bucket)!, position);
        // A void range may be swept, and forgotten, after its garbage was found here.
        if (state.kind === "void" || stateOf(first, position).kind === "void") {
          states.set(item, { kind: "garbage", stamp });
        } else if (state.kind !== "open") {
          expect(attempt, bucket, position);
          states.set(item, { kind: "counts", position });
        } else {
          waiting.push(item);
          const { reservation } = state;
          if (reservation.from > range.from || patience.isOver(reservation)) {
            slow.set(bucket, (slow.get(bucket) ?? new Set()).add(reservation.token));
          }
        }
      }
      left = waiting;
      if (left.length > 0 && slow.size === 0) await patience.pause();
      await this.#giveUp(slow);
    }
    return states;
  }

  /** Waits until readers see these positions. Gives up writers that keep them from it for too long. */
  async #untilVisible(
    positions: ReadonlyMap<number, number>,
    heads: ReadonlyMap<number, ArchiveHead>,
  ): Promise<void> {
    await this.#until((head, bucket) => visibleUpTo(head) >= positions.get(bucket)!, {
      positions,
      heads,
      failure: "conflict",
    });
  }

  /** Waits until heads are as they should be. Gives up writers that begin up to `positions`. */
  async #until(
    isDone: (head: ArchiveHead, bucket: number) => boolean,
    { positions, heads, failure }: {
      readonly positions: ReadonlyMap<number, number>;
      /** The heads as they were read or written last. */
      readonly heads: ReadonlyMap<number, ArchiveHead>;
      /** Failure when it waits in vain. */
      readonly failure: "conflict" | "overloaded";
    },
  ): Promise<void> {
    const patience = new Patience(this.#deps.clock);
    let now = heads;
    let left = [...positions];
    for (;;) {
      left = left.filter(([bucket]) => !isDone(now.get(bucket)!, bucket));
      if (left.length === 0) return;
      if (patience.isExhausted) throw this.#error(failure);
      const slow = new Map<number, Set<string>>();
      for (const [bucket, position] of left) {
        const tokens = patience.tooSlow(now.get(bucket)!, position);
        if (tokens.length > 0) slow.set(bucket, new Set(tokens));
      }
      if (slow.size === 0) await patience.pause();
      await this.#giveUp(slow);
      now = await this.#deps.heads.read(left.map(([bucket]) => bucket));
    }
  }

  async #giveUp(slow: ReadonlyMap<number, ReadonlySet<string>>): Promise<void> {
    const nowMs = this.#deps.clock.wallMs();
    await this.#changeAll(
      slow.keys(),
      (head, bucket) => giveUp(head, slow.get(bucket)!, nowMs),
    );
  }

  #error(failure: "conflict" | "overloaded") {
    return storageError(failure, { action: ACTION, place: this.#deps.place });
  }
}

/** Returns the bytes of memory that preferences take, at most. */
function bytesOf({ preferences }: RememberedPreferences): number {
  const named = [...preferences?.always ?? [], ...preferences?.never ?? []];
  return named.reduce((sum, jid) => sum + BARE_BYTES + 2 * jid.length, BARE_BYTES);
}

/** True for a head in which nobody reserves more. */
function isFull({ open, voids }: ArchiveHead): boolean {
  return open.length >= MAX_OPEN || voids.length >= MAX_VOIDS;
}

function momentOf(clock: Clock): Moment {
  return { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
}

/** Notes that a position must be visible at the end. */
function expect({ awaited }: Attempt, bucket: number, position: number): void {
  awaited.set(bucket, Math.max(awaited.get(bucket) ?? 0, position));
}

/** Gives items their positions, in order. */
function place(items: readonly Item[], { own }: Attempt, nowMs: number): readonly Placed[] {
  const next = new Map<number, number>();
  return items.map((item) => {
    const { message, place: { bucket, archive, owner, host } } = item;
    const position = next.get(bucket) ?? own.get(bucket)!.range.from;
    next.set(bucket, position + 1);
    const { peer, sentAtMs, text, process, sequence, stanza } = message;
    return {
      item,
      document: {
        bucket,
        archive,
        owner,
        host,
        peer: peerTerms(peer),
        position,
        // Another clock may be ahead of this one. Nothing is visible before it was sent.
        sent_at: Math.min(Math.trunc(sentAtMs), Math.trunc(nowMs)),
        ...(text === undefined || text === "" ? {} : { text }),
        process,
        sequence,
        stanza: contentOf(stanza),
      },
    };
  });
}

/**
 * Returns the buckets with messages in the range of an attempt that belong behind one which another
 * writer has behind that range. `documents` are in order.
 */
function overtakenIn(
  documents: readonly Placed[],
  counted: ReadonlyMap<Item, number>,
  { own }: Attempt,
): ReadonlySet<number> {
  const archives = new Set<string>();
  const buckets = new Set<number>();
  for (const { item, document: { archive, bucket, position } } of documents) {
    const { from, to } = own.get(bucket)!.range;
    const at = counted.get(item) ?? position;
    if (at > to) archives.add(archive);
    else if (at >= from && archives.has(archive)) buckets.add(bucket);
  }
  return buckets;
}

function operationOf({ item, document }: Placed, kind: "create" | "index"): BulkOperation {
  return { kind, ...item.name, document };
}
