/**
 * Stands in for Elasticsearch 5 and 6, which no repository has any more: whose paths and mappings have
 * types, and which know no sequence numbers. It keeps documents, finds them by search only after a
 * refresh, and refuses every method, path, parameter, header and body that Causeway has no need of.
 * It writes each change to a file before it answers, so that it can be killed.
 */
import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Source } from "./documents.ts";
import { objectOf, only, RefusedQuery } from "./documents.ts";
import type { Answer, Change } from "./search_index.ts";
import { SearchIndex, sourceOf } from "./search_index.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    data: { type: "string" },
    version: { type: "string" },
  },
});
const { port = "0", data = "", version = "" } = values;
const major = Number(version.split(".")[0]);

/** One line of the file. */
type Entry =
  | { readonly create: string; readonly body: Source }
  | { readonly drop: string }
  | { readonly index: string; readonly changes: readonly Change[] };

const indices = new Map<string, SearchIndex>();
replay();
const file = openSync(data, "a");

/** An answer that is an error. */
class Refusal extends Error {
  readonly status: number;
  readonly type: string;

  constructor(status: number, type: string, reason: string) {
    super(reason);
    this.status = status;
    this.type = type;
  }
}

const server = createServer((request, response) => {
  void answer(request).catch((thrown) => errorAnswer(thrown)).then(({ status, body }) => {
    response.writeHead(status, { "content-type": "application/json; charset=UTF-8" });
    response.end(JSON.stringify(body));
  });
});
server.listen(Number(port), "127.0.0.1", () => console.log("[double] started"));

async function answer(request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? "/", "http://double");
  const parts = url.pathname.split("/").filter((part) => part !== "").map(decodeURIComponent);
  const text = await textOf(request);
  const type = request.headers["content-type"];
  const isBulk = parts.at(-1) === "_bulk";
  if (text !== "" && type !== (isBulk ? "application/x-ndjson" : "application/json")) {
    throw new Refusal(406, "", `Content-Type header [${type}] is not supported`);
  }
  const route = `${request.method} ${parts.length === 0 ? "/" : describe(parts)}`;
  const query = url.searchParams;
  const allow = (...names: readonly string[]) => {
    for (const name of query.keys()) {
      if (!names.includes(name)) {
        throw new Refusal(
          400,
          "illegal_argument_exception",
          `request contains unrecognized parameter: [${name}]`,
        );
      }
    }
  };
  switch (route) {
    case "GET /":
      allow();
      return ok({ name: "double", version: { number: version }, tagline: "You Know, for Search" });
    case "GET _cluster/health":
    case "GET _cluster/health/INDEX":
      allow("wait_for_status", "timeout");
      return ok({ status: "green", timed_out: false });
    case "GET _nodes/_local/stats/os":
      allow("filter_path");
      return ok({ nodes: { double: { timestamp: Date.now() } } });
    case "PUT INDEX":
      allow();
      return create(parts[0]!, json(text));
    case "DELETE INDEX":
      allow("ignore_unavailable");
      return drop(parts[0]!.split(","), query.get("ignore_unavailable") === "true");
    case "GET INDEX/_mapping": {
      allow();
      const { type, mapping } = indexOf(parts[0]!);
      return ok({ [parts[0]!]: { mappings: { [type]: { ...mapping, dynamic: "false" } } } });
    }
    case "GET INDEX/_settings": {
      allow("flat_settings");
      const { uuid, blocks } = indexOf(parts[0]!);
      const blocked = Object.fromEntries([...blocks].map((name) => [name, "true"]));
      return ok({ [parts[0]!]: { settings: { "index.uuid": uuid, ...blocked } } });
    }
    case "PUT INDEX/_settings":
      allow();
      return change(indexOf(parts[0]!), json(text));
    case "POST INDEX/_refresh":
      allow();
      indexOf(parts[0]!).refresh();
      return ok({ _shards: { total: 1, successful: 1, failed: 0 } });
    case "POST INDEX/TYPE/_bulk":
      allow("timeout", "filter_path");
      return bulk(typed(parts), parts[0]!, text);
    case "POST INDEX/TYPE/_mget":
      allow();
      return mget(typed(parts), json(text));
    case "POST INDEX/TYPE/_search":
      allow("routing");
      return ok(typed(parts).search(json(text), query.get("routing") ?? undefined));
    default:
      throw new Refusal(
        400,
        "illegal_argument_exception",
        `no handler found for uri [${url.pathname}] and method [${request.method}]`,
      );
  }
}

/** Returns a path with what stands for names: `INDEX/TYPE/_bulk`. */
function describe(parts: readonly string[]): string {
  if (parts[0] === "_nodes") return parts.join("/");
  if (parts[0] === "_cluster") return parts.map((part, i) => i < 2 ? part : "INDEX").join("/");
  return parts.map((part, i) => part.startsWith("_") ? part : i === 0 ? "INDEX" : "TYPE").join("/");
}

function ok(body: unknown): Answer {
  return { status: 200, body };
}

function json(text: string): Source {
  try {
    return objectOf(JSON.parse(text), "body");
  } catch {
    throw new Refusal(400, "parse_exception", "request body is required, and JSON");
  }
}

function indexOf(name: string): SearchIndex {
  const index = indices.get(name);
  if (index === undefined) throw new Refusal(404, "index_not_found_exception", "no such index");
  return index;
}

function typed([name, type]: readonly string[]): SearchIndex {
  const index = indexOf(name!);
  if (index.type === type) return index;
  throw new Refusal(404, "type_missing_exception", `type[[${type}]] missing`);
}

function create(name: string, body: Source): Answer {
  if (indices.has(name)) {
    const type = major < 6 ? "index_already_exists_exception" : "resource_already_exists_exception";
    throw new Refusal(400, type, `index [${name}] already exists`);
  }
  const index = new SearchIndex(body, major);
  keep({ create: name, body });
  indices.set(name, index);
  return ok({ acknowledged: true, shards_acknowledged: true, index: name });
}

function drop(names: readonly string[], ignoresMissing: boolean): Answer {
  for (const name of names) {
    if (!indices.has(name) && ignoresMissing) continue;
    indexOf(name);
    keep({ drop: name });
    indices.delete(name);
  }
  return ok({ acknowledged: true });
}

function change({ blocks }: SearchIndex, settings: Source): Answer {
  for (const [name, value] of Object.entries(settings)) {
    if (!name.startsWith("index.blocks.")) throw new RefusedQuery(`unknown setting [${name}]`);
    if (value === true) blocks.add(name);
    else blocks.delete(name);
  }
  return ok({ acknowledged: true });
}

function mget(index: SearchIndex, body: Source): Answer {
  const { docs } = only(body, ["docs"]);
  if (!Array.isArray(docs)) throw new RefusedQuery("no documents to get");
  return ok({
    docs: docs.map((wanted) => {
      const { _id: id, routing, _source: fields } = only(objectOf(wanted, "docs"), [
        ...["_id", "routing", "_source"] as const,
      ]);
      if (typeof routing !== "string") throw routingMissing(String(id));
      const document = index.get(String(id));
      const head = { _type: index.type, _id: id };
      if (document === undefined || document.routing !== routing) return { ...head, found: false };
      const { version: _version, source } = document;
      return { ...head, _version, found: true, ...sourceOf(source, fields) };
    }),
  });
}

function bulk(index: SearchIndex, name: string, text: string): Answer {
  if (!text.endsWith("\n")) {
    const reason = "The bulk request must be terminated by a newline [\\n]";
    throw new Refusal(400, "illegal_argument_exception", reason);
  }
  const lines = text.split("\n");
  const changes: Change[] = [];
  const items: unknown[] = [];
  for (let i = 0; i < lines.length - 1;) {
    const [[kind, head] = ["", undefined]] = Object.entries(json(lines[i++]!));
    if (!["create", "index", "delete"].includes(kind)) {
      throw new Refusal(400, "illegal_argument_exception", `Malformed action/metadata line [${i}]`);
    }
    const { _id: id, routing, version: expected } = only(objectOf(head, kind), [
      ...["_id", "routing", "version"] as const,
    ]);
    if (typeof id !== "string" || new TextEncoder().encode(id).length > 512) {
      throw new RefusedQuery("id is too long, or missing");
    }
    if (typeof routing !== "string") throw routingMissing(id);
    const source = kind === "delete" ? undefined : json(lines[i++]!);
    const [item, change] = changeOf(index, { kind, id, routing, expected, source });
    items.push({ [kind]: { _type: index.type, _id: id, ...item } });
    if (change === undefined) continue;
    index.apply(change);
    changes.push(change);
  }
  if (changes.length > 0) keep({ index: name, changes });
  return ok({ took: 1, items });
}

interface Operation {
  readonly kind: string;
  readonly id: string;
  readonly routing: string;
  readonly expected: unknown;
  readonly source: Source | undefined;
}

/** Returns what the answer says of an operation, and the change that it makes. */
function changeOf(
  index: SearchIndex,
  { kind, id, routing, expected, source }: Operation,
): readonly [item: Readonly<Record<string, unknown>>, change: Change | undefined] {
  const error = (status: number, type: string, reason: string) =>
    [{ status, error: { type, reason } }, undefined] as const;
  const isDeletion = source === undefined;
  if (index.blocks.has("index.blocks.write")) {
    return error(403, "cluster_block_exception", "blocked by: [FORBIDDEN/8/index write (api)];");
  }
  if (index.blocks.has("index.blocks.read_only_allow_delete") && !isDeletion) {
    const reason = "blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];";
    return error(403, "cluster_block_exception", reason);
  }
  const before = index.get(id);
  const isRefused = kind === "create"
    ? before !== undefined
    : expected !== undefined && expected !== before?.version;
  if (isRefused) return error(409, "version_conflict_engine_exception", "version conflict");
  const version = (before?.version ?? 0) + 1;
  if (!isDeletion) {
    const change = { kind: "put", document: { id, routing, version, source } } as const;
    const result = before === undefined ? "created" : "updated";
    return [{ _version: version, result, status: before === undefined ? 201 : 200 }, change];
  }
  if (before === undefined) return [{ _version: 1, result: "not_found", status: 404 }, undefined];
  return [{ _version: version, result: "deleted", status: 200 }, { kind: "delete", id }];
}

function routingMissing(id: string): Refusal {
  return new Refusal(400, "routing_missing_exception", `routing is required for [${id}]`);
}

function errorAnswer(thrown: unknown): Answer {
  if (thrown instanceof RefusedQuery) {
    return errorAnswer(new Refusal(400, "parsing_exception", thrown.message));
  }
  const { status, type, message: reason } = thrown instanceof Refusal
    ? thrown
    : new Refusal(500, "exception", String(thrown));
  return { status, body: { error: { type, reason, root_cause: [{ type, reason }] }, status } };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return new TextDecoder().decode(await new Blob(chunks as BlobPart[]).arrayBuffer());
}

/** Writes an entry to the disk. */
function keep(entry: Entry): void {
  writeSync(file, `${JSON.stringify(entry)}\n`);
  fsyncSync(file);
}

/** Reads what was kept before. A line that was not finished was not answered. */
function replay(): void {
  closeSync(openSync(data, "a"));
  for (const line of readFileSync(data, "utf8").split("\n").slice(0, -1)) {
    const entry = JSON.parse(line) as Entry;
    if ("create" in entry) indices.set(entry.create, new SearchIndex(entry.body, major));
    else if ("drop" in entry) indices.delete(entry.drop);
    else for (const change of entry.changes) indices.get(entry.index)!.apply(change);
  }
  for (const index of indices.values()) index.refresh();
}
