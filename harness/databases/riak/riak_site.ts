import { createHash, randomUUID } from "node:crypto";
import { BucketTypes } from "./bucket_types.ts";
import type { BucketProps } from "./bucket_types.ts";
import { changedObject, emptyObject, mergedObjects, Refusal, shownValue } from "./data_types.ts";
import type { DataObject, DotClock } from "./data_types.ts";
import { compareCodePoints, SolrIndex } from "./solr_index.ts";
import type { ObjectPlace } from "./solr_index.ts";
import { parseSchema } from "./solr_schema.ts";

/** One value of an object that is no data type. */
export interface PlainVersion {
  readonly dot: string;
  readonly atUs: number;
  readonly vtag: string;
  readonly contentType: string;
  readonly body: Uint8Array;
  /** Secondary indexes: `name_int` or `name_bin`, and its value. */
  readonly indexes: readonly (readonly [string, string])[];
  readonly meta: readonly (readonly [string, string])[];
  readonly isDeleted: boolean;
}

/**
 * An object that is no data type: more than one version are siblings. Some of them may be tombstones, as
 * long as not all are.
 */
export interface PlainObject {
  readonly clock: DotClock;
  readonly versions: readonly PlainVersion[];
}

interface Bucket {
  readonly place: Omit<ObjectPlace, "key">;
  readonly plain: Map<string, PlainObject>;
  readonly data: Map<string, DataObject>;
}

/** A page of an index query. */
export interface KeyPage {
  readonly keys: readonly string[];
  readonly continuation?: string;
}

/** Query of a secondary index: a range of its values, page by page. */
export interface IndexQuery {
  readonly field: string;
  readonly from: string;
  readonly to: string;
  readonly maxResults: number | undefined;
  readonly continuation: string | undefined;
}

/**
 * One Riak cluster as the HTTP interface shows it. It behaves as a cluster whose quorums are met: what
 * was written is read. Two sites are two clusters that replicate, once somebody merges them.
 */
export class RiakSite {
  readonly name: string;
  readonly types = new BucketTypes((name) => this.indexes.has(name));
  readonly indexes = new Map<string, SolrIndex>();
  readonly schemas = new Map<string, string>();
  /** True while search indexes commit with each write. Solr commits about once a second. */
  commitsAtOnce = true;
  /** False as with Bitcask, a backend without order. */
  hasSecondaryIndexes = true;
  readonly #buckets = new Map<string, Bucket>();
  #lastUs = 0;
  #aheadUs = 0;
  #events = 0;

  constructor(name: string) {
    this.name = name;
  }

  /** Puts the clock of the site forward. */
  advance(ms: number): void {
    this.#aheadUs += ms * 1_000;
  }

  /** Stores a schema. @throws Refusal */
  putSchema(name: string, xml: string): void {
    parseSchema(xml);
    this.schemas.set(name, xml);
  }

  /** Makes an index with a schema that is there. @throws Refusal */
  putIndex(name: string, schemaName: string): void {
    const schema = this.schemas.get(schemaName);
    if (schema === undefined) throw new Refusal(400, `Schema ${schemaName} does not exist\n`);
    if (this.indexes.has(name)) throw new Refusal(409, "");
    this.indexes.set(name, new SolrIndex(schemaName, parseSchema(schema)));
  }

  /** Returns the clock and the value of a data type; undefined when there is none. */
  readData(place: ObjectPlace): { readonly type: string; readonly object: DataObject } | undefined {
    const type = this.#dataTypeOf(place);
    const object = this.#bucket(place).data.get(place.key);
    return object && { type, object };
  }

  /** Applies an operation to a data type. @throws Refusal */
  changeData(place: ObjectPlace, operation: unknown, context: DotClock | undefined): DataObject {
    const type = this.#dataTypeOf(place);
    const { data } = this.#bucket(place);
    const before = data.get(place.key) ?? emptyObject(type);
    const changed = changedObject(before, operation, context, {
      actor: this.name,
      nowUs: this.#nowUs(),
    });
    data.set(place.key, changed);
    this.#index(place);
    return changed;
  }

  /** Returns an object; undefined when there is none, or nothing but tombstones. */
  readPlain(place: ObjectPlace): PlainObject | undefined {
    this.types.active(place.type);
    const object = this.#bucket(place).plain.get(place.key);
    return object?.versions.some(({ isDeleted }) => !isDeleted) ? object : undefined;
  }

  /** Stores an object that is no data type. */
  putPlain(
    place: ObjectPlace,
    version: Pick<PlainVersion, "contentType" | "body" | "indexes" | "meta">,
    seen: DotClock | undefined,
  ): void {
    const props = this.types.active(place.type);
    if (props.datatype !== undefined) {
      throw new Refusal(400, "The double takes data types by their own path alone");
    }
    if (version.indexes.length > 0) this.#requireSecondaryIndexes();
    this.#write(place, { ...version, isDeleted: false }, seen ?? new Map(), props);
  }

  /** Deletes an object of any kind; false when there was none. */
  delete(place: ObjectPlace, seen: DotClock | undefined): boolean {
    const props = this.types.active(place.type);
    const bucket = this.#bucket(place);
    if (props.datatype !== undefined) {
      const wasThere = bucket.data.delete(place.key);
      this.#index(place);
      return wasThere;
    }
    const found = this.readPlain(place);
    if (found === undefined) return false;
    const empty = { contentType: "", body: new Uint8Array(), indexes: [], meta: [] };
    this.#write(place, { ...empty, isDeleted: true }, seen ?? found.clock, props);
    return true;
  }

  /** Answers a query of a secondary index: by value, then by key. @throws Refusal */
  queryIndex(place: Omit<ObjectPlace, "key">, query: IndexQuery): KeyPage {
    this.types.active(place.type);
    this.#requireSecondaryIndexes();
    const { field, from, to, maxResults, continuation } = query;
    const isNumber = field.endsWith("_int");
    if (!isNumber && !field.endsWith("_bin") && field !== "$key") {
      throw new Refusal(400, `Invalid query: [{unknown_field_type,<<"${field}">>}]\n`);
    }
    if (isNumber && ![from, to].every((each) => /^-?\d+$/.test(each))) {
      throw new Refusal(400, `Invalid query: not an integer\n`);
    }
    const compare = (one: string, other: string) =>
      isNumber ? Number(one) - Number(other) : compareCodePoints(one, other);
    const entries = this.#entriesOf(place, field)
      .filter(([value]) => compare(value, from) >= 0 && compare(value, to) <= 0)
      .toSorted((one, other) => compare(one[0], other[0]) || compareCodePoints(one[1], other[1]));
    const after = continuation === undefined
      ? undefined
      : JSON.parse(atob(continuation)) as [string, string]; // it made it itself
    const rest = after === undefined ? entries : entries.filter((entry) => {
      const order = compare(entry[0], after[0]) || compareCodePoints(entry[1], after[1]);
      return order > 0;
    });
    const page = maxResults === undefined ? rest : rest.slice(0, maxResults);
    const isMore = page.length > 0 && page.length === maxResults;
    return {
      keys: page.map(([, key]) => key),
      ...(isMore ? { continuation: btoa(JSON.stringify(page.at(-1))) } : {}),
    };
  }

  /** Takes over all that `other` has, as replication between clusters does. */
  mergeFrom(other: RiakSite): void {
    for (const { place, plain, data } of other.#buckets.values()) {
      const props = this.types.active(place.type);
      const own = this.#bucket({ ...place, key: "" });
      for (const [key, theirs] of data) {
        const mine = own.data.get(key);
        own.data.set(key, mine === undefined ? theirs : mergedObjects(mine, theirs));
        this.#index({ ...place, key });
      }
      for (const [key, theirs] of plain) {
        const mine = own.plain.get(key);
        own.plain.set(key, mine === undefined ? theirs : mergedPlain(mine, theirs, props));
        this.#index({ ...place, key });
      }
    }
  }

  /** Loses all objects, as a cluster with empty disks. */
  forget(): void {
    this.#buckets.clear();
    for (const index of this.indexes.values()) index.clear();
  }

  /** Keys of a bucket, for tests. */
  keysOf(type: string): readonly string[] {
    return [...this.#buckets.values()].filter(({ place }) => place.type === type)
      .flatMap(({ place, plain, data }) =>
        [
          ...data.keys(),
          ...[...plain].filter(([, { versions }]) => versions.some(({ isDeleted }) => !isDeleted))
            .map(([key]) => key),
        ].map((key) => `${place.bucket}/${key}`)
      );
  }

  #write(
    place: ObjectPlace,
    version: Omit<PlainVersion, "dot" | "atUs" | "vtag">,
    seen: DotClock,
    props: BucketProps,
  ): void {
    const { plain } = this.#bucket(place);
    const before = plain.get(place.key);
    const number = ++this.#events;
    const clock = new Map(before?.clock);
    for (const [actor, n] of seen) clock.set(actor, Math.max(n, clock.get(actor) ?? 0));
    clock.set(this.name, number);
    const written: PlainVersion = {
      ...version,
      dot: `${this.name}:${number}`,
      atUs: this.#nowUs(),
      vtag: createHash("md5").update(randomUUID()).digest("base64url"),
    };
    const isKept = ({ dot }: PlainVersion) => {
      const [actor = "", n = ""] = dot.split(":");
      return (seen.get(actor) ?? 0) < Number(n);
    };
    // With `allow_mult` and `last_write_wins` both true nobody can say what Riak does, so siblings come.
    const others = props.allow_mult ? before?.versions.filter(isKept) ?? [] : [];
    plain.set(place.key, { clock, versions: [...others, written] });
    this.#index(place);
  }

  #entriesOf(place: Omit<ObjectPlace, "key">, field: string): (readonly [string, string])[] {
    const { plain, data } = this.#bucket({ ...place, key: "" });
    const living = [...plain].flatMap(([key, { versions }]) =>
      versions.filter(({ isDeleted }) => !isDeleted).map((version) => ({ key, version }))
    );
    if (field === "$key") {
      const keys = new Set([...living.map(({ key }) => key), ...data.keys()]);
      return [...keys].map((key) => [key, key] as const);
    }
    return living.flatMap(({ key, version }) =>
      version.indexes.filter(([name]) => name === field).map(([, value]) => [value, key] as const)
    );
  }

  #requireSecondaryIndexes(): void {
    if (!this.hasSecondaryIndexes) {
      throw new Refusal(500, "Error:\n{indexes_not_supported,riak_kv_bitcask_backend}\n");
    }
  }

  #dataTypeOf({ type }: ObjectPlace) {
    const { datatype } = this.types.active(type);
    if (datatype === undefined) {
      throw new Refusal(403, `Bucket datatype 'undefined' is not a supported type.\n`);
    }
    return datatype;
  }

  #bucket({ type, bucket }: ObjectPlace): Bucket {
    const name = `${type}\0${bucket}`;
    let found = this.#buckets.get(name);
    if (found === undefined) {
      found = { place: { type, bucket }, plain: new Map(), data: new Map() };
      this.#buckets.set(name, found);
    }
    return found;
  }

  #index(place: ObjectPlace): void {
    const { search_index: name } = this.types.active(place.type);
    const index = name === undefined ? undefined : this.indexes.get(name);
    if (index === undefined) return;
    const data = this.#bucket(place).data.get(place.key);
    const plain = this.readPlain(place)?.versions.findLast(({ isDeleted }) => !isDeleted);
    const fields = data !== undefined
      ? fieldsOf("", shownValue(data.root))
      : plain?.contentType.startsWith("application/json")
      ? fieldsOf("", JSON.parse(new TextDecoder().decode(plain.body)))
      : undefined;
    index.put(place, fields);
    if (this.commitsAtOnce) index.commit();
  }

  #nowUs(): number {
    this.#lastUs = Math.max(this.#lastUs + 1, Date.now() * 1_000 + this.#aheadUs);
    return this.#lastUs;
  }
}

/** Extracts the fields of a map or of JSON, as Riak's extractors do: nested ones with dots. */
function fieldsOf(name: string, value: unknown): (readonly [string, string])[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value.flatMap((each) => fieldsOf(name, each));
  if (typeof value === "object") {
    return Object.entries(value).flatMap(([inner, each]) =>
      fieldsOf(name === "" ? inner : `${name}.${inner}`, each)
    );
  }
  return [[name, String(value)]];
}

function mergedPlain(one: PlainObject, other: PlainObject, props: BucketProps): PlainObject {
  const clock = new Map(one.clock);
  for (const [actor, n] of other.clock) clock.set(actor, Math.max(n, clock.get(actor) ?? 0));
  const survives = (theirs: PlainObject) => ({ dot }: PlainVersion) => {
    const [actor = "", n = ""] = dot.split(":");
    return theirs.versions.some((each) => each.dot === dot) ||
      (theirs.clock.get(actor) ?? 0) < Number(n);
  };
  const all = [
    ...one.versions.filter(survives(other)),
    ...other.versions.filter(survives(one)).filter(({ dot }) =>
      !one.versions.some((each) => each.dot === dot)
    ),
  ].toSorted((a, b) => a.atUs - b.atUs);
  return { clock, versions: props.allow_mult ? all : all.slice(-1) };
}
