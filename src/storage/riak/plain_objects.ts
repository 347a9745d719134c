import { storageError } from "../storage_error.ts";
import type { RiakClient } from "./riak_client.ts";
import type { RiakPlace } from "./places.ts";

/** An object as it lies in Riak, with what a later write compares. */
export interface PlainObject<T> {
  readonly value: T;
  readonly etag: string;
}

/** Circumstances of a write. */
export interface PutOptions {
  readonly action: string;
  /**
   * Writes only over the object with this tag; `absent`: only where there is none. Riak compares
   * first and writes then: it may overlook a write of the same moment. @default whatever is there
   */
  readonly over?: string | "absent" | undefined;
  /** Secondary indexes: names that end with `_int`, and their values. */
  readonly indexes?: Readonly<Record<string, number>>;
}

/** Attempts of one change before it gives up. */
const MAX_ATTEMPTS = 20;

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

  /** Reads an object; undefined when there is none. */
  async read<T>(place: RiakPlace, action: string): Promise<PlainObject<T> | undefined> {
    const { status, headers, body } = await this.#client.request({
      method: "GET",
      path: pathOf(place),
      query: READ,
      accepts: [200, 404],
      action,
    });
    if (status === 404) return undefined;
    const value = JSON.parse(new TextDecoder().decode(body)) as T; // this program wrote it
    return { value, etag: headers.get("ETag") ?? "" };
  }

  /**
   * Changes an object, or makes it. `decide` is asked again each time that another write was seen to be
   * faster. A write at another node in the very moment may be overlooked: the last write wins then.
   *
   * @returns false when `decide` wants no change
   * @throws CausewayError `storage/conflict` when others are always faster, `storage/…`
   */
  async change<T>(
    place: RiakPlace,
    action: string,
    decide: (before: T | undefined) => T | undefined,
  ): Promise<boolean> {
    const name = `${place.type} ${place.bucket} ${place.key}`;
    return await this.#client.inLine(name, action, async () => {
      for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
        const before = await this.read<T>(place, action);
        const after = decide(before?.value);
        if (after === undefined) return false;
        if (await this.put(place, after, { action, over: before?.etag ?? "absent" })) return true;
      }
      throw storageError("conflict", { action, place: this.#client.place });
    });
  }

  /** Writes an object; false when it is not the one that `over` names. */
  async put(place: RiakPlace, value: unknown, options: PutOptions): Promise<boolean> {
    const { over, action, indexes = {} } = options;
    const condition = over === undefined
      ? {}
      : over === "absent"
      ? { "If-None-Match": "*" }
      : { "If-Match": over };
    const headers: Record<string, string> = { "Content-Type": "application/json", ...condition };
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
    await this.#client.request({
      method: "DELETE",
      path: pathOf(place),
      query: WRITE,
      accepts: [200, 204, 404],
      action,
    });
  }

  /** Returns names of keys whose index lies in a range, at most `limit`, in the order of the index. */
  async keysBetween(
    { type, bucket }: Omit<RiakPlace, "key">,
    { index, from, to, limit, action }: {
      readonly index: string;
      readonly from: string;
      readonly to: string;
      readonly limit: number;
      readonly action: string;
    },
  ): Promise<readonly string[]> {
    const { body } = await this.#client.request({
      method: "GET",
      path: ["types", type, "buckets", bucket, "index", index, from, to],
      query: { max_results: `${limit}` },
      accepts: [200],
      action,
    });
    return (JSON.parse(new TextDecoder().decode(body)) as { readonly keys: string[] }).keys;
  }
}

function pathOf({ type, bucket, key }: RiakPlace): readonly string[] {
  return ["types", type, "buckets", bucket, "keys", key];
}
