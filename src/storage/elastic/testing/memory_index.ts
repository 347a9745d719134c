import type { Clock } from "../../../base/mod.ts";
import type { DocumentStamp } from "../elastic_dialect.ts";
import type { MessageDocument } from "../elastic_documents.ts";
import type {
  BulkOperation,
  BulkOutcome,
  DocumentName,
  NewestDocument,
  SearchAnswer,
} from "../elastic_index.ts";
import { IndexClient } from "../elastic_index.ts";
import { PEOPLE_INDEX } from "../elastic_schema.ts";
import { ElasticServers } from "../elastic_servers.ts";

interface Kept {
  readonly content: unknown;
  readonly stamp: DocumentStamp;
}

/** A query of the cleaning of void ranges: other searches are not answered here. */
interface SweepQuery {
  readonly query: {
    readonly bool: {
      readonly filter: readonly [{ readonly term: { readonly bucket: number } }];
      readonly should: readonly {
        readonly range: { readonly position: { readonly gte: number; readonly lte: number } };
      }[];
    };
  };
}

/** An index in memory, whose requests tests can make fail, or come late. */
export class MemoryIndex extends IndexClient {
  readonly documents = new Map<string, Kept>();
  /** Called before changes are made. */
  beforeChange: (operations: readonly BulkOperation[]) => Promise<void> | void = () => {};
  /** Called before the answer about changes that were made. */
  afterChange: (operations: readonly BulkOperation[]) => Promise<void> | void = () => {};
  /** Called before documents are read. */
  beforeGet: (names: readonly DocumentName[]) => Promise<void> | void = () => {};
  /** Called before a search. */
  beforeSearch: () => void = () => {};
  #changes = 0;

  constructor(clock: Clock) {
    const options = {
      backend: "elasticsearch",
      servers: [],
      username: undefined,
      password: { reveal: () => "" },
      bounds: {},
    } as const;
    super(new ElasticServers({ name: "elastic.default", options }, clock), PEOPLE_INDEX);
  }

  override buckets(): Promise<number> {
    return Promise.resolve(1);
  }

  override async change(
    _action: string,
    operations: readonly BulkOperation[],
  ): Promise<readonly BulkOutcome[]> {
    await this.beforeChange(operations);
    const outcomes = operations.map((each) => this.#change(each));
    await this.afterChange(operations);
    return outcomes;
  }

  override async get<T>(
    _action: string,
    names: readonly DocumentName[],
    fields: readonly string[],
  ): Promise<readonly NewestDocument<T>[]> {
    if (names.length === 0) return []; // without a request
    await this.beforeGet(names);
    return names.map(({ id }) => {
      const { content, stamp } = this.documents.get(id) ?? {};
      return { content: fields.length === 0 ? undefined : content as T | undefined, stamp };
    });
  }

  override search<T>(
    _action: string,
    body: Readonly<Record<string, unknown>>,
  ): Promise<SearchAnswer<T>> {
    this.beforeSearch();
    const { query: { bool: { filter: [{ term }], should } } } = body as unknown as SweepQuery;
    const hits = [...this.documents].flatMap(([id, { content }]) => {
      const { bucket, position } = content as Partial<MessageDocument>;
      const isFound = bucket === term.bucket && position !== undefined &&
        should.some(({ range: { position: { gte, lte } } }) => position >= gte && position <= lte);
      return isFound ? [{ _id: id, _source: content as T }] : [];
    });
    return Promise.resolve({ total: hits.length, hits });
  }

  override refresh(): Promise<void> {
    return Promise.resolve();
  }

  #change({ kind, id, stamp, document }: BulkOperation): BulkOutcome {
    const now = this.documents.get(id);
    if (kind === "create" && now !== undefined) return { kind: "conflict" };
    if (stamp !== undefined && now?.stamp["number"] !== stamp["number"]) {
      return { kind: "conflict" };
    }
    if (kind === "delete" && now === undefined) return { kind: "missing" };
    const changed = { content: document, stamp: { number: ++this.#changes } };
    if (kind === "delete") this.documents.delete(id);
    else this.documents.set(id, changed);
    return { kind: "done", stamp: changed.stamp };
  }
}
