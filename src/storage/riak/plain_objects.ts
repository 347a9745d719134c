import { storageError } from "../storage_error.ts";
import type { RiakAnswer, RiakClient } from "./riak_client.ts";
import type { RiakPlace } from "./places.ts";

/** An object as it lies in Riak. */
export interface PlainObject<T> {
  readonly value: T;
}

/** An object as one read has shown it, with what a later write compares. */
interface SeenObject<T> {
  /** Undefined when the newest sibling is a removal. */
  readonly value: T | undefined;
  readonly etag: string;
  /** Version vector: a write with it replaces all siblings that were read. */
  readonly vclock: string;
}

/** Circumstances of a write. */
export interface PutOptions {
  readonly action: string;
  /**
   * Writes only over this object; `absent`: only where there is none. Riak compares first and writes
   * then: it may overlook a write of the same moment. @default whatever is there
   */
  readonly over?: Pick<SeenObject<unknown>, "etag" | "vclock"> | "absent" | undefined;
  /** Secondary indexes: names that end with `_int`, and their values. */
  readonly indexes?: Readonly<Record<string, number>>;
}

/** A page of the keys of an index. */
export interface KeyPage {
  readonly keys: readonly string[];
  /** Undefined behind the last page. */
  readonly continuation?: string;
}

/** Attempts of one change before it gives up. */
const MAX_ATTEMPTS = 20;
/** Siblings of one object that a read looks at. Riak makes no more, unless it is told to. */
const MAX_SIBLINGS = 100;

/** Reads go to a majority of the replicas, as writes do: so that a read sees each write before it. */
const READ = { r: "quorum", pr: "quorum" };
/** A write is on the disks of a majority when it is answered. */
const WRITE = { w: "quorum", pw: "quorum", dw: "quorum" };

/** Objects of JSON in bucket types without data types: the last write wins. */
export class PlainObjects {
  readonly #client: RiakClient;

  constructor(client: RiakClient) {
    this.#client = client;
  }

  /**
   * Reads an object; undefined when there is none. Of siblings the newest counts: bucket types that were
   * made with `allow_mult` have some.
   *
   * @throws CausewayError `storage/conflict` when the siblings are always others, `storage/…`
   */
  async read<T>(place: RiakPlace, action: string): Promise<PlainObject<T> | undefined> {
    const value = (await this.#see<T>(place, action))?.value;
    return value === undefined ? undefined : { value };
  }

  /**
   * Changes an object, or makes it. `decide` is asked again each time that another write was seen to be
   * faster. A write at another node in the very moment may be overlooked: the last write wins then.
   *
   * @param decide returns null to remove the object, undefined for no change
   * @returns false when `decide` wants no change
   * @throws CausewayError `storage/conflict` when others are always faster, `storage/…`
   */
  async change<T>(
    place: RiakPlace,
    action: string,
    decide: (before: T | undefined) => T | null | undefined,
  ): Promise<boolean> {
    const name = `${place.type} ${place.bucket} ${place.key}`;
    return await this.#client.inLine(name, action, async () => {
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const before = await this.#see<T>(place, action);
        const after = decide(before?.value);
        if (after === undefined) return false;
        const isDone = after === null
          ? before === undefined || await this.#delete(place, action, before)
          : await this.put(place, after, { action, over: before ?? "absent" });
        if (isDone) return true;
      }
      throw storageError("conflict", { action, place: this.#client.place });
    });
  }

  /** Writes an object; false when it is not the one that `over` names. */
  async put(place: RiakPlace, value: unknown, options: PutOptions): Promise<boolean> {
    const { over, action, indexes = {} } = options;
    const headers: Record<string, string> = {
      "Content-Type": "application/json",
      ...(over === "absent" ? { "If-None-Match": "*" } : conditionOf(over)),
    };
    for (const [name, index] of Object.entries(indexes)) {
      headers[`X-Riak-Index-${name}`] = `${index}`;
    }
    const { status } = await this.#client.request({
      method: "PUT",
      path: pathOf(place),
      query: WRITE,
      headers,
      body: JSON.stringify(value),
      accepts: [200, 201, 204, 412],
      action,
    });
    return status !== 412;
  }

  /** Removes an object, of a data type too. Safe to repeat. */
  async remove(place: RiakPlace, action: string): Promise<void> {
    await this.#delete(place, action, undefined);
  }

  /**
   * Returns names of keys whose index lies in a range, at most `limit`, in the order of the index, and
   * the continuation that names the next page.
   */
  async keysBetween(
    { type, bucket }: Omit<RiakPlace, "key">,
    { index, from, to, limit, continuation, action }: {
      readonly index: string;
      readonly from: string;
      readonly to: string;
      readonly limit: number;
      /** Continuation that the page before gave. @default the first page */
      readonly continuation?: string | undefined;
      readonly action: string;
    },
  ): Promise<KeyPage> {
    const { body } = await this.#client.request({
      method: "GET",
      path: ["types", type, "buckets", bucket, "index", index, from, to],
      query: {
        max_results: `${limit}`,
        ...(continuation === undefined ? {} : { continuation }),
      },
      accepts: [200],
      action,
    });
    return JSON.parse(new TextDecoder().decode(body)) as KeyPage;
  }

  async #see<T>(place: RiakPlace, action: string): Promise<SeenObject<T> | undefined> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const answer = await this.#get(place, action);
      if (answer.status === 404) return undefined;
      const newest = answer.status === 200
        ? answer
        : await this.#newestSibling(place, action, vtagsIn(answer));
      if (newest === undefined) continue;
      const isRemoval = newest.headers.has("X-Riak-Deleted");
      return {
        value: isRemoval ? undefined : JSON.parse(textOf(newest)) as T, // this program wrote it
        etag: answer.headers.get("ETag") ?? "",
        vclock: answer.headers.get("X-Riak-Vclock") ?? "",
      };
    }
    throw storageError("conflict", { action, place: this.#client.place });
  }

  /** Reads siblings, and returns the newest; undefined when one has gone meanwhile. */
  async #newestSibling(
    place: RiakPlace,
    action: string,
    vtags: readonly string[],
  ): Promise<RiakAnswer | undefined> {
    let newest: { readonly atMs: number; readonly answer: RiakAnswer } | undefined;
    // In this order every reader chooses the same one of two that are of one second.
    for (const vtag of vtags.toSorted()) {
      const answer = await this.#get(place, action, vtag);
      if (answer.status !== 200) return undefined;
      const atMs = Date.parse(answer.headers.get("Last-Modified") ?? "") || 0;
      if (newest === undefined || atMs >= newest.atMs) newest = { atMs, answer };
    }
    return newest?.answer;
  }

  /** Asks for an object, or for one of its siblings. Siblings are answered with 300 and their tags. */
  async #get(place: RiakPlace, action: string, vtag?: string): Promise<RiakAnswer> {
    return await this.#client.request({
      method: "GET",
      path: pathOf(place),
      query: { ...READ, ...(vtag === undefined ? {} : { vtag }) },
      accepts: [200, 300, 404],
      action,
    });
  }

  /** Removes an object; false when it is not the one that `over` names. */
  async #delete(place: RiakPlace, action: string, over: SeenObject<unknown> | undefined) {
    const { status } = await this.#client.request({
      method: "DELETE",
      path: pathOf(place),
      query: WRITE,
      headers: conditionOf(over),
      // Where there is none, an earlier attempt may have removed it.
      accepts: over === undefined ? [200, 204, 404] : [200, 204, 404, 412],
      action,
    });
    return status !== 412;
  }
}

/** Returns the headers of a write over an object that was read. */
function conditionOf(
  over: Pick<SeenObject<unknown>, "etag" | "vclock"> | undefined,
): Readonly<Record<string, string>> {
  return over === undefined ? {} : { "If-Match": over.etag, "X-Riak-Vclock": over.vclock };
}

/** Returns the tags of siblings, from the lines behind the first one of a text. */
function vtagsIn(answer: RiakAnswer): readonly string[] {
  return textOf(answer).split("\n").slice(1).filter((line) => line !== "").slice(0, MAX_SIBLINGS);
}

function textOf({ body }: RiakAnswer): string {
  return new TextDecoder().decode(body);
}

function pathOf({ type, bucket, key }: RiakPlace): readonly string[] {
  return ["types", type, "buckets", bucket, "keys", key];
}
