import type { DocumentStamp, StampFields } from "./elastic_dialect.ts";
import type { FoundDocument } from "./elastic_documents.ts";
import { ElasticAnswer } from "./elastic_failure.ts";
import type { ElasticIndex } from "./elastic_schema.ts";
import { pathOf } from "./elastic_schema.ts";
import type { ElasticServers } from "./elastic_servers.ts";

/** Operations and UTF-16 units of one request. Servers take 100 MB, and like less. */
const [MAX_OPERATIONS, FULL_UNITS] = [1_000, 4_000_000];

/** A change of one document. */
export interface BulkOperation {
  /** `create` fails when the document exists. */
  readonly kind: "create" | "index" | "delete";
  readonly id: string;
  readonly routing: string;
  /** State that the document must be in. */
  readonly stamp?: DocumentStamp | undefined;
  readonly document?: unknown;
}

/** Result of a change. */
export type BulkOutcome =
  | { readonly kind: "done"; readonly stamp: DocumentStamp }
  /** It exists already, or is in another state. */
  | { readonly kind: "conflict" }
  /** There was nothing to delete. */
  | { readonly kind: "missing" };

/** A document by its id. */
export interface DocumentName {
  readonly id: string;
  readonly routing: string;
}

/** Newest state of a document. */
export interface NewestDocument<T> {
  /** Undefined: there is no such document, or none of its fields was asked for. */
  readonly content: T | undefined;
  /** Undefined: there is no such document. */
  readonly stamp: DocumentStamp | undefined;
}

/** Answer to a search. */
export interface SearchAnswer<T> {
  readonly total: number;
  readonly hits: readonly FoundDocument<T>[];
}

interface BulkItem extends StampFields {
  readonly status: number;
  readonly error?: unknown;
}

interface BulkAnswer {
  readonly items: readonly Readonly<Record<string, BulkItem>>[];
}

interface MgetAnswer<T> {
  readonly docs: readonly FoundDocument<T>[];
}

interface NodeClocks {
  readonly nodes: Readonly<Record<string, { readonly timestamp: number }>>;
}

interface RawSearchAnswer<T> {
  readonly timed_out: boolean;
  readonly _shards: { readonly failed: number; readonly failures?: readonly unknown[] };
  readonly hits: {
    readonly total?: number | { readonly value: number };
    readonly hits?: readonly FoundDocument<T>[];
  };
}

/** Reads and changes of one index. All reject with a `CausewayError` `storage/…`. */
export class IndexClient {
  readonly #servers: ElasticServers;
  readonly #index: ElasticIndex;
  #refreshing: Promise<void> | undefined;
  #nextRefresh: Promise<void> | undefined;
  #buckets: number | undefined;

  constructor(servers: ElasticServers, index: ElasticIndex) {
    this.#servers = servers;
    this.#index = index;
  }

  /** Returns the number of buckets of the index. */
  async buckets(): Promise<number> {
    this.#buckets ??= await this.#servers.run(
      "use",
      ({ indices }) => Promise.resolve(indices.get(this.#index.name)!.buckets), // all are there
    );
    return this.#buckets;
  }

  /**
   * Changes documents, in this order within a bucket. Each change is done or not for itself, and is on
   * the disk of every copy of the index once this resolves.
   */
  async change(
    action: string,
    operations: readonly BulkOperation[],
  ): Promise<readonly BulkOutcome[]> {
    const outcomes: BulkOutcome[] = [];
    for (const some of portions(operations)) {
      outcomes.push(
        ...await this.#servers.run(action, async ({ ask, dialect }) => {
          // A server waits a minute for a lost shard by itself.
          const timeoutMs = Math.ceil(this.#servers.requestTimeoutMs / 2);
          const path = pathOf(this.#index, dialect, "_bulk");
          const fields = "items.*.status,items.*.error,items.*._seq_no,items.*._primary_term," +
            "items.*._version";
          const { items } = await ask({
            method: "POST",
            path: `${path}?timeout=${timeoutMs}ms&filter_path=${fields}`,
            body: some.lines.join(""),
          }) as BulkAnswer;
          return items.map((item) => outcomeOf(Object.values(item)[0]!, dialect.stampOf));
        }),
      );
    }
    return outcomes;
  }

  /**
   * Returns the newest state of documents, whether searches find them yet or not.
   *
   * @param fields those of `_source`; none: only whether the documents are there
   */
  async get<T>(
    action: string,
    names: readonly DocumentName[],
    fields: readonly string[],
  ): Promise<readonly NewestDocument<T>[]> {
    if (names.length === 0) return [];
    return await this.#servers.run(action, async ({ ask, dialect }) => {
      const wanted = names.map(({ id, routing }) => ({
        _id: id,
        routing,
        _source: fields.length === 0 ? false : fields,
      }));
      const { docs } = await ask({
        method: "POST",
        path: pathOf(this.#index, dialect, "_mget"),
        body: JSON.stringify({ docs: wanted }),
      }) as MgetAnswer<T>;
      const failed = docs.find(({ error }) => error !== undefined);
      if (failed !== undefined) throw answerOf(failed.error);
      return docs.map((each) => ({
        content: each._source,
        stamp: each.found === true ? dialect.stampOf(each) : undefined,
      }));
    }, { isRepeatable: true });
  }

  /** Searches what was there at the last refresh, in one bucket or in all of them. */
  async search<T>(
    action: string,
    body: Readonly<Record<string, unknown>>,
    { routing, countsUpTo }: {
      readonly routing?: string;
      /** Most hits that `total` counts. @default nothing is counted */
      readonly countsUpTo?: number;
    } = {},
  ): Promise<SearchAnswer<T>> {
    return await this.#servers.run(action, async ({ ask, dialect }) => {
      const path = pathOf(this.#index, dialect, "_search");
      const counted = dialect.countsAtMost ? { track_total_hits: countsUpTo ?? false } : {};
      const answer = await ask({
        method: "POST",
        path: routing === undefined ? path : `${path}?routing=${routing}`,
        body: JSON.stringify({ ...counted, ...body }),
      }) as RawSearchAnswer<T>;
      const { timed_out: isLate, _shards: shards, hits } = answer;
      if (isLate || shards.failed > 0) {
        throw answerOf((shards.failures?.[0] as { readonly reason?: unknown } | undefined)?.reason);
      }
      const total = typeof hits.total === "object" ? hits.total.value : hits.total ?? 0;
      return { total, hits: hits.hits ?? [] };
    }, { isRepeatable: true });
  }

  /**
   * Returns the wall clock of a server in milliseconds. Undefined when this login may not ask for it:
   * a secured server wants the cluster privilege `monitor` for that.
   */
  async clockMs(): Promise<number | undefined> {
    return await this.#servers.run("read the clock of", async ({ ask }) => {
      const path = "/_nodes/_local/stats/os?filter_path=nodes.*.timestamp";
      try {
        const { nodes } = await ask({ method: "GET", path }) as NodeClocks;
        return Object.values(nodes)[0]?.timestamp;
      } catch (thrown) {
        if (thrown instanceof ElasticAnswer && thrown.status === 403) return undefined;
        throw thrown;
      }
    }, { isRepeatable: true });
  }

  /** Makes all that was changed before this call visible to searches. */
  async refresh(action: string): Promise<void> {
    // One that has begun already may miss the newest changes. Whoever comes meanwhile shares the next.
    if (this.#refreshing === undefined) return await this.#begin(action);
    this.#nextRefresh ??= this.#refreshing.catch(() => {}).then(() => this.#begin(action));
    await this.#nextRefresh;
  }

  async #begin(action: string): Promise<void> {
    this.#nextRefresh = undefined;
    this.#refreshing = this.#servers.run(action, async ({ ask }) => {
      const path = `/${this.#index.name}/_refresh`;
      const answer = await ask({ method: "POST", path }) as Pick<RawSearchAnswer<never>, "_shards">;
      if (answer._shards.failed > 0) throw answerOf(undefined);
    }, { isRepeatable: true });
    try {
      await this.#refreshing;
    } finally {
      this.#refreshing = undefined;
    }
  }
}

/** Some shards did not answer. */
function answerOf(error: unknown): ElasticAnswer {
  return new ElasticAnswer(503, error);
}

function outcomeOf(
  { status, error, ...fields }: BulkItem,
  stampOf: (fields: StampFields) => DocumentStamp,
): BulkOutcome {
  if (status === 409) return { kind: "conflict" };
  if (status === 404 && error === undefined) return { kind: "missing" };
  if (error !== undefined || status > 299) throw new ElasticAnswer(status, error);
  return { kind: "done", stamp: stampOf(fields) };
}

/** Cuts operations into requests. */
function* portions(operations: readonly BulkOperation[]): Generator<{ lines: readonly string[] }> {
  let [lines, units, count]: [string[], number, number] = [[], 0, 0];
  for (const { kind, id, routing, stamp, document } of operations) {
    const head = `${JSON.stringify({ [kind]: { _id: id, routing, ...stamp } })}\n`;
    const body = document === undefined ? "" : `${JSON.stringify(document)}\n`;
    const more = head.length + body.length;
    if (count > 0 && (count >= MAX_OPERATIONS || units + more > FULL_UNITS)) {
      yield { lines };
      [lines, units, count] = [[], 0, 0];
    }
    lines.push(head, body);
    units += more;
    count++;
  }
  if (count > 0) yield { lines };
}
