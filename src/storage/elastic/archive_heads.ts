import type { Clock } from "../../base/mod.ts";
import { backoffMs } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { ArchiveHead } from "./archive_head.ts";
import { EMPTY_HEAD, finish, giveUp } from "./archive_head.ts";
import type { DocumentStamp } from "./elastic_dialect.ts";
import { headDocumentId } from "./elastic_documents.ts";
import type { BulkOperation, IndexClient } from "./elastic_index.ts";

/** Attempts at a change of a head that others change at the same time. */
const MAX_ATTEMPTS = 40;
/** Pauses between them, behind the first ones. Their length is random. */
const PAUSES = { firstMs: 2, maxMs: 100, jitter: 1 } as const;
const EAGER_ATTEMPTS = 2;
/** Reservations of one bucket that are remembered to be released. A head has no more open ones. */
const MAX_ABANDONED = 64;

const ACTION = "change an archive in";

/** A change; undefined: the head is as it should be. Called again when others came in between. */
type Apply = (head: ArchiveHead) => ArchiveHead | undefined;

interface Change {
  readonly bucket: number;
  readonly apply: Apply;
  readonly resolve: (head: ArchiveHead) => void;
  readonly reject: (thrown: unknown) => void;
  attempts: number;
}

/** A head as it was read or written last, and the state of its document; none: there is none. */
interface KnownHead {
  readonly head: ArchiveHead;
  readonly stamp: DocumentStamp | undefined;
}

interface HeadDocument {
  readonly head: ArchiveHead;
}

/** Objects behind the heads of an index. */
export interface ArchiveHeadsDeps {
  readonly index: IndexClient;
  /** Name of the database in messages. */
  readonly place: string;
  readonly clock: Clock;
}

/**
 * The heads of an index. A change names the state of the document that it was made from, so that of
 * two changes of one state one fails, and is made anew from the other's result. Changes of this
 * process that come while others are under way go together.
 */
export class ArchiveHeads {
  readonly #deps: ArchiveHeadsDeps;
  readonly #known = new Map<number, KnownHead>();
  /** Buckets that others have changed too, lately: what is known of them is probably old. */
  readonly #shared = new Set<number>();
  /**
   * Reservations of this process that the next change of their bucket releases, by token. True: their
   * positions may be in use, and become void.
   */
  readonly #abandoned = new Map<number, Map<string, boolean>>();
  #queue: Change[] = [];
  #isRunning = false;

  constructor(deps: ArchiveHeadsDeps) {
    this.#deps = deps;
  }

  /**
   * Changes a head. Resolves to its new state.
   *
   * @throws CausewayError with a code `storage/…`; it may have been changed nevertheless
   */
  async change(bucket: number, apply: Apply): Promise<ArchiveHead> {
    const { promise, resolve, reject } = Promise.withResolvers<ArchiveHead>();
    this.#queue.push({ bucket, apply, resolve, reject, attempts: 0 });
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
    }
    return await promise;
  }

  /** Reads heads anew. */
  async read(buckets: readonly number[]): Promise<ReadonlyMap<number, ArchiveHead>> {
    const heads = new Map<number, ArchiveHead>();
    for (const [bucket, { head }] of await this.#fetch(buckets)) heads.set(bucket, head);
    return heads;
  }

  /** Makes the next change of a bucket read its head anew. */
  distrust(bucket: number): void {
    this.#shared.add(bucket);
  }

  /**
   * Releases a reservation, as soon as something else changes its bucket. Of very many the oldest ones
   * are forgotten: whoever waits behind them gives them up.
   *
   * @param isUsed false when no message was sent with one of its positions: they need not become void
   */
  abandon(bucket: number, token: string, isUsed: boolean): void {
    const tokens = this.#abandoned.get(bucket) ?? new Map<string, boolean>();
    this.#abandoned.set(bucket, tokens.set(token, isUsed));
    for (const oldest of tokens.keys()) {
      if (tokens.size <= MAX_ABANDONED) break;
      tokens.delete(oldest);
    }
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // all changes of this turn go together
    while (this.#queue.length > 0) {
      const round = this.#queue;
      this.#queue = [];
      try {
        await this.#carryOut(Map.groupBy(round, ({ bucket }) => bucket));
      } catch (thrown) {
        for (const { bucket, reject } of round) {
          this.#known.delete(bucket); // whether it was changed is not known
          reject(thrown);
        }
      }
      const attempts = Math.max(0, ...this.#queue.map((change) => change.attempts));
      if (attempts > EAGER_ATTEMPTS) await this.#pause(attempts);
    }
    this.#isRunning = false;
  }

  async #carryOut(round: ReadonlyMap<number, readonly Change[]>): Promise<void> {
    const { index } = this.#deps;
    const old = [...round.keys()]
      .filter((bucket) => this.#shared.has(bucket) || !this.#known.has(bucket));
    await this.#refetch(old);
    const operations: BulkOperation[] = [];
    const changed: { bucket: number; head: ArchiveHead; released: readonly string[] }[] = [];
    const states = new Map<Change, ArchiveHead>();
    for (const [bucket, changes] of round) {
      const { head: before, stamp } = this.#known.get(bucket)!; // read above
      const abandoned = this.#abandoned.get(bucket) ?? new Map<string, boolean>();
      let head = release(before, abandoned, this.#deps.clock.wallMs());
      for (const change of changes) {
        try {
          head = change.apply(head) ?? head;
          states.set(change, head);
        } catch (thrown) {
          change.reject(thrown); // it alone
        }
      }
      if (head === before) continue;
      changed.push({ bucket, head, released: [...abandoned.keys()] });
      operations.push({
        kind: stamp === undefined ? "create" : "index",
        id: headDocumentId(bucket),
        routing: String(bucket),
        stamp,
        document: { head },
      });
    }
    const outcomes = await index.change(ACTION, operations);
    const lost = new Set<number>();
    for (const [i, { bucket, head, released }] of changed.entries()) {
      const outcome = outcomes[i]!;
      if (outcome.kind === "done") {
        this.#known.set(bucket, { head, stamp: outcome.stamp });
        for (const token of released) this.#abandoned.get(bucket)?.delete(token);
      } else {
        this.#known.delete(bucket);
        this.#shared.add(bucket);
        lost.add(bucket);
      }
    }
    for (const change of [...round.values()].flat()) {
      const state = states.get(change);
      if (state === undefined) continue; // it was rejected
      if (!lost.has(change.bucket)) change.resolve(state);
      else if (++change.attempts < MAX_ATTEMPTS) this.#queue.push(change);
      else change.reject(this.#conflict());
    }
  }

  /** Reads what is not known, or may be old. Whoever finds nothing new has the bucket for himself. */
  async #refetch(buckets: readonly number[]): Promise<void> {
    for (const [bucket, found] of await this.#fetch(buckets)) {
      const known = this.#known.get(bucket);
      if (known !== undefined && isSame(known.stamp, found.stamp)) this.#shared.delete(bucket);
      this.#known.set(bucket, found);
    }
  }

  async #fetch(buckets: readonly number[]): Promise<ReadonlyMap<number, KnownHead>> {
    const names = buckets.map((bucket) => ({
      id: headDocumentId(bucket),
      routing: String(bucket),
    }));
    const { index } = this.#deps;
    const found = await index.get<HeadDocument>("read an archive from", names, ["head"]);
    const heads = new Map<number, KnownHead>();
    for (const [i, bucket] of buckets.entries()) {
      const { content, stamp } = found[i]!;
      heads.set(bucket, { head: content?.head ?? EMPTY_HEAD, stamp });
    }
    return heads;
  }

  #conflict() {
    return storageError("conflict", { action: ACTION, place: this.#deps.place });
  }

  #pause(attempt: number): Promise<void> {
    const { clock } = this.#deps;
    const forMs = backoffMs(attempt - EAGER_ATTEMPTS, PAUSES);
    return new Promise((resolve) => clock.after(forMs, resolve));
  }
}

/** Releases reservations that are open, of those whose value says whether their positions are used. */
function release(
  head: ArchiveHead,
  tokens: ReadonlyMap<string, boolean>,
  nowMs: number,
): ArchiveHead {
  const used = new Set<string>();
  let left = head;
  for (const [token, isUsed] of tokens) {
    if (isUsed) used.add(token);
    else left = finish(left, token) ?? left;
  }
  return giveUp(left, used, nowMs) ?? left;
}

function isSame(one: DocumentStamp | undefined, other: DocumentStamp | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
