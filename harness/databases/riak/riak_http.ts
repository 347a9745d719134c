import { createHash } from "node:crypto";
import type { DotClock } from "./data_types.ts";
import { Refusal, shownValue } from "./data_types.ts";
import type { PlainObject, RiakSite } from "./riak_site.ts";
import type { ObjectPlace } from "./solr_index.ts";

/** A request as it came, its path not decoded. */
export interface RiakRequest {
  readonly method: string;
  readonly url: string;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

/** An answer. */
export interface RiakAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

const QUORUMS = ["r", "w", "dw", "pw", "pr"];
const OBJECT_PARAMETERS = [...QUORUMS, "rw", "basic_quorum", "notfound_ok", "returnbody", "vtag"];
const DATA_PARAMETERS = [
  ...QUORUMS,
  "basic_quorum",
  "notfound_ok",
  "include_context",
  "returnbody",
];

/** One request, with what all resources need of it. */
class Exchange {
  readonly request: RiakRequest;
  readonly segments: readonly string[];
  readonly parameters: URLSearchParams;

  constructor(request: RiakRequest) {
    this.request = request;
    const [path = "", query = ""] = request.url.split("?", 2);
    // Riak decodes a path only for those who ask it to, or where its configuration says so.
    if (path.includes("%") && request.headers.get("x-riak-url-encoding") !== "on") {
      throw new Refusal(400, "The path is encoded, and X-Riak-URL-Encoding is not on");
    }
    if (request.url.length > 8_000) throw new Refusal(414, "");
    try {
      this.segments = path.slice(1).split("/").map(decodeURIComponent);
    } catch {
      throw new Refusal(400, "The path is not UTF-8");
    }
    this.parameters = new URLSearchParams(query);
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name);
  }

  allow(...methods: string[]): void {
    if (!methods.includes(this.request.method)) {
      throw new Refusal(405, `${this.request.method} is not allowed`);
    }
  }

  take(names: readonly string[]): void {
    for (const [name, value] of this.parameters) {
      if (!names.includes(name)) throw new Refusal(400, `Unknown parameter ${name}`);
      const isQuorum = QUORUMS.includes(name) || name === "rw";
      if (isQuorum && !/^(one|quorum|all|default|[1-3])$/.test(value)) {
        throw new Refusal(
          400,
          `${name} query parameter must be an integer or ` +
            `one of the following words: 'one', 'quorum' or 'all'\n`,
        );
      }
      if (
        /_quorum|_ok|returnbody|include_context/.test(name) && !["true", "false"].includes(value)
      ) throw new Refusal(400, `${name} query parameter must be true or false\n`);
    }
  }

  json(): unknown {
    if (this.header("content-type")?.split(";")[0] !== "application/json") {
      throw new Refusal(this.request.method === "POST" ? 406 : 415, "");
    }
    try {
      return JSON.parse(this.text());
    } catch {
      throw new Refusal(400, "Couldn't decode JSON\n");
    }
  }

  text(): string {
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(this.request.body);
    } catch {
      throw new Refusal(400, "Malformed JSON submitted, invalid UTF-8");
    }
  }
}

/** Answers a request at a site. @throws Refusal */
export async function answerOf(
  site: RiakSite,
  request: RiakRequest,
  beforeWrite: () => Promise<void>,
): Promise<RiakAnswer> {
  const exchange = new Exchange(request);
  const [first, second, third, ...rest] = exchange.segments;
  if (first === "ping" && second === undefined) {
    exchange.allow("GET");
    return { status: 200, body: "OK" };
  }
  if (first === "stats" && second === undefined) {
    exchange.allow("GET");
    return answerJson({ riak_kv_version: "2.2.3-0-g0000000", ring_num_partitions: 64 });
  }
  if (first === "search" && second !== undefined) {
    return answerSearch(site, exchange, [second, third, ...rest]);
  }
  if (first === "types" && second !== undefined) {
    if (third === "props" && rest.length === 0) {
      exchange.allow("GET");
      return answerJson({ props: site.types.active(second) });
    }
    const [bucket = "", resource, key = "", ...more] = rest;
    if (third === "buckets" && bucket !== "" && key !== "") {
      const place = { type: second, bucket, key };
      if (resource === "index" && (more.length === 1 || more.length === 2)) {
        return answerIndex(site, exchange, place, more as [string, string?]); // it has one or two
      }
      if (resource === "datatypes" && more.length === 0) return answerData(site, exchange, place);
      if (resource === "keys" && more.length === 0) {
        return await answerObject(site, exchange, place, beforeWrite);
      }
    }
  }
  throw new Refusal(404, "not found");
}

function answerJson(value: unknown, status = 200): RiakAnswer {
  return {
    status,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
  };
}

function answerSearch(
  site: RiakSite,
  exchange: Exchange,
  [resource, name, ...rest]: readonly (string | undefined)[],
): RiakAnswer {
  const { method, body } = exchange.request;
  if (name === undefined || name === "" || rest.length > 0) throw new Refusal(404, "not found");
  if (resource === "schema") {
    exchange.allow("GET", "PUT");
    if (method === "GET") {
      const schema = site.schemas.get(name);
      if (schema === undefined) throw new Refusal(404, "not found");
      return { status: 200, headers: { "Content-Type": "application/xml" }, body: schema };
    }
    if (exchange.header("content-type") !== "application/xml") throw new Refusal(415, "");
    site.putSchema(name, new TextDecoder().decode(body));
    return { status: 204 };
  }
  if (resource === "index") {
    exchange.allow("GET", "PUT");
    if (method === "GET") {
      const index = site.indexes.get(name);
      if (index === undefined) throw new Refusal(404, "not found\n");
      return answerJson({ name, n_val: 3, schema: index.schemaName });
    }
    const { schema } = exchange.json() as Record<string, unknown>;
    site.putIndex(name, typeof schema === "string" ? schema : "_yz_default");
    return { status: 204 };
  }
  if (resource === "query") {
    exchange.allow("GET", "POST");
    const index = site.indexes.get(name);
    if (index === undefined) throw new Refusal(404, "not found");
    if (method === "GET") return answerJson(index.select(exchange.parameters));
    if (exchange.header("content-type") !== "application/x-www-form-urlencoded") {
      throw new Refusal(415, "");
    }
    return answerJson(index.select(new URLSearchParams(exchange.text())));
  }
  throw new Refusal(404, "not found");
}

function answerData(site: RiakSite, exchange: Exchange, place: ObjectPlace): RiakAnswer {
  exchange.allow("GET", "HEAD", "POST");
  exchange.take(DATA_PARAMETERS);
  const withContext = exchange.parameters.get("include_context") !== "false";
  if (exchange.request.method !== "POST") {
    const { datatype } = site.types.active(place.type);
    const found = site.readData(place);
    if (found === undefined) return answerJson({ type: datatype, error: "notfound" }, 404);
    return answerJson({
      type: found.type,
      value: shownValue(found.object.root),
      ...(withContext ? { context: clockText(found.object.clock) } : {}),
    });
  }
  const operation = exchange.json();
  const { context, ...others } = typeof operation === "object" && operation !== null
    ? operation as Record<string, unknown>
    : { context: undefined };
  const seen = context === undefined ? undefined : parseClock(context);
  const isObject = typeof operation === "object" && operation !== null;
  const changed = site.changeData(place, isObject ? others : operation, seen);
  if (exchange.parameters.get("returnbody") !== "true") return { status: 204 };
  const { datatype } = site.types.active(place.type);
  return answerJson({
    type: datatype,
    value: shownValue(changed.root),
    ...(withContext ? { context: clockText(changed.clock) } : {}),
  });
}

async function answerObject(
  site: RiakSite,
  exchange: Exchange,
  place: ObjectPlace,
  beforeWrite: () => Promise<void>,
): Promise<RiakAnswer> {
  exchange.allow("GET", "HEAD", "PUT", "POST", "DELETE");
  exchange.take(OBJECT_PARAMETERS);
  const { method, body } = exchange.request;
  const vclock = exchange.header("x-riak-vclock");
  const seen = vclock === undefined ? undefined : parseClock(vclock);
  const [match, noneMatch] = [exchange.header("if-match"), exchange.header("if-none-match")];
  if (method === "DELETE") {
    if (match !== undefined) {
      const { datatype } = site.types.active(place.type);
      if (datatype !== undefined) throw new Refusal(400, "The double compares no data types");
      const found = site.readPlain(place);
      if (found !== undefined && etagOf(found) !== match) throw new Refusal(412, "");
      await beforeWrite();
    }
    if (!site.delete(place, seen)) throw new Refusal(404, "not found\n");
    return { status: 204 };
  }
  const found = site.readPlain(place);
  if (method === "GET" || method === "HEAD") {
    if (found === undefined) throw new Refusal(404, "not found\n");
    const vtag = exchange.parameters.get("vtag");
    const version = vtag === null && found.versions.length === 1
      ? found.versions[0]
      : found.versions.find((each) => each.vtag === vtag);
    if (vtag !== null && version === undefined) throw new Refusal(404, "not found\n");
    const shown = { "X-Riak-Vclock": clockText(found.clock) };
    if (version === undefined) {
      const list = `Siblings:\n${found.versions.map((each) => `${each.vtag}\n`).join("")}`;
      return {
        status: 300,
        headers: { ...shown, "Content-Type": "text/plain", ETag: etagOf(found) },
        body: list,
      };
    }
    return {
      status: 200,
      headers: {
        ...shown,
        ...Object.fromEntries(version.meta),
        "Content-Type": version.contentType,
        ...(version.isDeleted ? { "X-Riak-Deleted": "true" } : {}),
        ETag: `"${version.vtag}"`,
        "Last-Modified": new Date(version.atUs / 1_000).toUTCString(),
      },
      ...(method === "HEAD" ? {} : { body: version.body }),
    };
  }
  const contentType = exchange.header("content-type");
  if (contentType === undefined) throw new Refusal(400, "Missing Content-Type request header\n");
  if (noneMatch !== undefined && noneMatch !== "*") {
    throw new Refusal(400, "If-None-Match: * alone");
  }
  if (noneMatch === "*" && found !== undefined) throw new Refusal(412, "");
  if (match !== undefined && (found === undefined || match !== etagOf(found))) {
    throw new Refusal(412, "");
  }
  // Riak compares first and writes later: others may write between.
  await beforeWrite();
  const headers = [...exchange.request.headers];
  site.putPlain(place, {
    contentType,
    body,
    indexes: headers.filter(([name]) => name.startsWith("x-riak-index-")).map(([name, value]) => {
      const field = name.slice("x-riak-index-".length);
      if (!/_(int|bin)$/.test(field) || (field.endsWith("_int") && !/^-?\d+$/.test(value))) {
        throw new Refusal(400, `Could not parse field '${field}', value '${value}'.\n`);
      }
      return [field, value] as const;
    }),
    meta: headers.filter(([name]) => name.startsWith("x-riak-meta-")),
  }, seen);
  return { status: 204 };
}

function answerIndex(
  site: RiakSite,
  exchange: Exchange,
  { type, bucket, key: field }: ObjectPlace,
  [from, to = from]: readonly [string, string?],
): RiakAnswer {
  exchange.allow("GET");
  exchange.take(["max_results", "continuation"]);
  const most = exchange.parameters.get("max_results");
  if (most !== null && !/^[1-9]\d*$/.test(most)) {
    throw new Refusal(400, `Invalid "max_results". "${most}" is not a positive integer`);
  }
  return answerJson(site.queryIndex({ type, bucket }, {
    field,
    from,
    to,
    maxResults: most === null ? undefined : Number(most),
    continuation: exchange.parameters.get("continuation") ?? undefined,
  }));
}

/** Returns the tag of an object: its version's, or one of the clock that all siblings have. */
function etagOf({ clock, versions }: PlainObject): string {
  const [first, ...others] = versions;
  const tag = first !== undefined && others.length === 0
    ? first.vtag
    : createHash("md5").update(clockText(clock)).digest("base64url");
  return `"${tag}"`;
}

function clockText(clock: DotClock): string {
  return btoa(JSON.stringify([...clock]));
}

function parseClock(text: unknown): DotClock {
  try {
    return new Map(JSON.parse(atob(text as string))); // anything else does not parse
  } catch {
    throw new Refusal(400, "Invalid context");
  }
}
