import { CausewayError } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { ElasticRequest } from "./elastic_connection.ts";
import type { ElasticDialect } from "./elastic_dialect.ts";
import { ElasticAnswer } from "./elastic_failure.ts";

/** Version of the indices that this program makes and uses. */
export const ELASTIC_SCHEMA_VERSION = 1;

/** Groups of archives of a new index. Each has a head of its own. */
const NEW_BUCKETS = 8;

/** One index: the archives of people, or of rooms. */
export interface ElasticIndex {
  readonly name: "messages" | "muc_messages";
  /** Type of its documents, on servers that have types. */
  readonly type: "pm" | "muc";
}

/** Archives of people. */
export const PEOPLE_INDEX: ElasticIndex = { name: "messages", type: "pm" };
/** Archives of rooms. */
export const ROOMS_INDEX: ElasticIndex = { name: "muc_messages", type: "muc" };
export const ELASTIC_INDICES: readonly ElasticIndex[] = [PEOPLE_INDEX, ROOMS_INDEX];

/** Sends one request. */
export type Ask = (request: ElasticRequest) => Promise<unknown>;

const TERM = { type: "keyword", doc_values: false } as const;
const NUMBER = { type: "long" } as const;

/**
 * Fields that are searched. Others, such as `stanza`, are kept and not searched. Names of people and
 * archives are hashes: they have one length, and no character that means something to a server.
 */
const FIELDS = {
  /** Groups of archives that share one order. */
  bucket: { type: "integer" },
  archive: TERM,
  /** Bare JID in the archive's key. */
  owner: TERM,
  /** Domainpart of that. */
  host: TERM,
  /** Bare JID of the other side; and the full JID, if it has a resource. */
  peer: TERM,
  position: NUMBER,
  sent_at: NUMBER,
  // It is never scored, and phrases are not searched.
  text: { type: "text", norms: false, index_options: "docs" },
} as const;

/** An index as it was found. */
export interface FoundIndex {
  readonly buckets: number;
}

/** Returns the path of an operation on an index. */
export function pathOf(
  { name, type }: ElasticIndex,
  { hasTypes }: ElasticDialect,
  operation: "_bulk" | "_mget" | "_search",
): string {
  return hasTypes ? `/${name}/${type}/${operation}` : `/${name}/${operation}`;
}

/** Returns the request that makes an index. */
export function creationOf(
  { name, type }: ElasticIndex,
  { hasTypes, hasAllField }: ElasticDialect,
): ElasticRequest {
  const mapping = {
    dynamic: false,
    ...(hasAllField ? { _all: { enabled: false } } : {}),
    _routing: { required: true },
    _meta: {
      causeway: {
        version: ELASTIC_SCHEMA_VERSION,
        // Lowest version that a program must know to use the index.
        floor: ELASTIC_SCHEMA_VERSION,
        buckets: NEW_BUCKETS,
      },
    },
    properties: FIELDS,
  };
  const mappings = hasTypes ? { [type]: mapping } : mapping;
  return { method: "PUT", path: `/${name}`, body: JSON.stringify({ mappings }, undefined, 2) };
}

/**
 * Reads an index. Undefined when there is none.
 *
 * @throws CausewayError `storage/schema-foreign` for an index that is not ours or was changed by
 * others, `storage/schema-too-new` for one of a newer program that this one cannot use
 */
export async function findIndex(
  ask: Ask,
  index: ElasticIndex,
  { dialect, place }: { readonly dialect: ElasticDialect; readonly place: string },
): Promise<FoundIndex | undefined> {
  let answer: unknown;
  try {
    answer = await ask({ method: "GET", path: `/${index.name}/_mapping` });
  } catch (thrown) {
    if (thrown instanceof ElasticAnswer && thrown.status === 404) return undefined;
    throw thrown;
  }
  const foreign = (reason: string) =>
    new CausewayError(
      "storage/schema-foreign",
      `Cannot use the index ${index.name} of ${place}: ${reason}`,
    );
  // The name may be an alias. The answer has the name of the index.
  const found = Object.values(objectOf(answer));
  if (found.length !== 1) throw foreign("it is an alias of several indices");
  const mappings = objectOf(objectOf(found[0])["mappings"]);
  const mapping = objectOf(dialect.hasTypes ? mappings[index.type] : mappings);
  const { version, floor, buckets } = objectOf(objectOf(mapping["_meta"])["causeway"]);
  if (!isCount(version) || !isCount(floor) || !isCount(buckets)) {
    throw foreign("it is not Causeway's");
  }
  if (floor > ELASTIC_SCHEMA_VERSION) {
    throw new CausewayError(
      "storage/schema-too-new",
      `Cannot use the index ${index.name} of ${place}: it asks for schema version ${floor}, and ` +
        `this program knows ${ELASTIC_SCHEMA_VERSION}; use the newer program`,
    );
  }
  const properties = objectOf(mapping["properties"]);
  for (const [field, { type }] of Object.entries(FIELDS)) {
    const actual = objectOf(properties[field])["type"];
    if (actual !== type) {
      throw foreign(`its field ${field} is of type ${String(actual ?? "none")} and not ${type}`);
    }
  }
  const dynamic = mapping["dynamic"];
  if (String(dynamic) !== "false") throw foreign("it takes fields of any name (`dynamic`)");
  return { buckets };
}

/** Returns the id that the server gave an index when it was made; undefined where it tells none. */
export async function indexUuid(ask: Ask, { name }: ElasticIndex): Promise<string | undefined> {
  const answer = await ask({ method: "GET", path: `/${name}/_settings?flat_settings=true` });
  const [found] = Object.values(objectOf(answer)); // under the name of the index, not of its alias
  const uuid = objectOf(objectOf(found)["settings"])["index.uuid"];
  return typeof uuid === "string" ? uuid : undefined;
}

/**
 * Reads all indices.
 *
 * @throws CausewayError `storage/schema-missing`, and as `findIndex`
 */
export async function findAllIndices(
  ask: Ask,
  on: { readonly dialect: ElasticDialect; readonly place: string },
): Promise<ReadonlyMap<ElasticIndex["name"], FoundIndex>> {
  const all = new Map<ElasticIndex["name"], FoundIndex>();
  for (const index of ELASTIC_INDICES) {
    const found = await findIndex(ask, index, on);
    if (found === undefined) {
      const reason = `the index ${index.name} is missing; run \`causeway backends prepare\``;
      throw storageError("schema-missing", { action: "use", place: on.place }, { reason });
    }
    all.set(index.name, found);
  }
  return all;
}

/**
 * Returns the requests that make the missing indices, in their order; none when nothing is missing.
 *
 * @throws CausewayError as `findIndex`
 */
export async function planIndices(
  ask: Ask,
  on: { readonly dialect: ElasticDialect; readonly place: string },
): Promise<readonly ElasticRequest[]> {
  const plan: ElasticRequest[] = [];
  for (const index of ELASTIC_INDICES) {
    if (await findIndex(ask, index, on) === undefined) plan.push(creationOf(index, on.dialect));
  }
  return plan;
}

/**
 * Makes the missing indices and returns the requests that were carried out. The server makes an index
 * whole or not at all, so this is safe to repeat, to interrupt and to run twice at the same time.
 *
 * @throws CausewayError as `findIndex`
 */
export async function prepareIndices(
  ask: Ask,
  on: {
    readonly dialect: ElasticDialect;
    readonly place: string;
    /** Called before a request, with the number of those before it and of all. */
    begin?(request: ElasticRequest, done: number, total: number): void;
  },
): Promise<readonly ElasticRequest[]> {
  const done: ElasticRequest[] = [];
  const plan = await planIndices(ask, on);
  for (const [i, request] of plan.entries()) {
    on.begin?.(request, i, plan.length);
    try {
      await ask(request);
      done.push(request);
    } catch (thrown) {
      // Another process has made it in between. Whether it is ours is seen below.
      if (!(thrown instanceof ElasticAnswer) || !EXISTS.test(thrown.type)) throw thrown;
    }
  }
  await findAllIndices(ask, on);
  return done;
}

const EXISTS = /^(resource|index)_already_exists_exception$/;

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0;
}
