import vcardSchema from "./schema/vcard.xml" with { type: "text" };
import mamSchema from "./schema/mam.xml" with { type: "text" };
import { CausewayError, describeError } from "../../base/mod.ts";
import type { Backend, BackendReport, PrepareOptions } from "../backend.ts";
import { versionProblem } from "../catalogue/catalogue.ts";
import type { NamedPool } from "../server_kind.ts";
import type { RiakPoolOptions } from "../server_pools.ts";
import type { ServerVersion } from "../sql/sql_dialect.ts";
import { unnamedStorageError } from "../storage_error.ts";
import { BUCKET_TYPES, nameOf } from "./places.ts";
import type { BucketTypeName } from "./places.ts";
import { PlainObjects } from "./plain_objects.ts";
import { RiakClient } from "./riak_client.ts";

/** Schemas of the search indexes, as shipped, by the names of the indexes. */
export const RIAK_SCHEMAS: Readonly<Record<string, string>> = {
  vcard: vcardSchema,
  mam: mamSchema,
};

/** Version of these schemas, which each of them names. */
const SCHEMA_VERSION = 1;
const VERSION_IN_SCHEMA = /<!-- Causeway's schema (\d{1,9})\./;

/** Properties of a bucket type as Riak shows them. */
type Props = Readonly<Record<string, unknown>>;

/** Steps of a preparation, in this order. */
interface Plan {
  readonly schemas: readonly string[];
  readonly indexes: readonly string[];
  /** Arguments of the admin command. */
  readonly commands: readonly (readonly string[])[];
}

/** A Riak cluster, for the commands that prepare and check it. */
export class RiakBackend implements Backend {
  readonly name: string;
  readonly place: string;
  readonly #pool: NamedPool<RiakPoolOptions>;

  constructor(pool: NamedPool<RiakPoolOptions>) {
    this.#pool = pool;
    this.name = pool.name;
    this.place = new RiakClient(pool).place;
  }

  async plan(): Promise<readonly string[]> {
    return await this.#with(async (client) => linesOf(await planOf(client, this.place)));
  }

  /** Makes schemas and indexes, and then bucket types where there is an admin command. */
  async prepare({ adminCommand, progress }: PrepareOptions = {}): Promise<readonly string[]> {
    return await this.#with(async (client) => {
      const whole = await planOf(client, this.place);
      const plan = adminCommand === undefined ? { ...whole, commands: [] } : whole;
      const lines = linesOf(plan);
      let done = 0;
      const begin = () => progress?.({ done, total: lines.length, statement: lines[done++]! });
      for (const name of plan.schemas) {
        begin();
        await put(client, ["search", "schema", name], "application/xml", RIAK_SCHEMAS[name]!);
      }
      for (const name of plan.indexes) {
        begin();
        const body = JSON.stringify({ schema: name });
        await put(client, ["search", "index", name], "application/json", body);
      }
      for (const command of plan.commands) {
        begin();
        await this.#runAdmin(adminCommand!, command); // there are none without it
      }
      return lines;
    });
  }

  async leftover(): Promise<readonly string[]> {
    return await this.#with(async (client) =>
      commandLines((await planOf(client, this.place)).commands)
    );
  }

  async check(): Promise<BackendReport> {
    const problems: string[] = [];
    let server: ServerVersion | undefined;
    try {
      await this.#with(async (client) => {
        server = { product: "riak", version: await versionOf(client) };
        const problem = versionProblem("riak", server.version);
        if (problem !== undefined) problems.push(problem);
        for (const name of Object.keys(RIAK_SCHEMAS)) {
          const [schema, index] = await searchParts(client, name);
          const refusal = refusalOf(name, { schema, index, place: this.place });
          if (index === undefined) problems.push(`the search index ${name} is missing`);
          if (refusal !== undefined) problems.push(refusal.message);
          else if (schema !== undefined && schema !== RIAK_SCHEMAS[name]) {
            problems.push(`the search schema ${name} is older: run \`causeway backends prepare\``);
          }
        }
        for (const [name, wanted] of typeEntries()) {
          problems.push(...problemsOf(name, wanted, await propsOf(client, name)));
        }
        if (problems.length === 0) problems.push(...await indexProblems(client));
      });
    } catch (thrown) {
      problems.push(describeError(thrown));
    }
    return { server, schemaVersion: undefined, problems };
  }

  async #runAdmin(adminCommand: string, args: readonly string[]): Promise<void> {
    const [program = "", ...first] = adminCommand.split(/\s+/).filter((word) => word !== "");
    const context = {
      action: `run ${adminCommand} ${args.slice(0, 3).join(" ")} for`,
      place: this.place,
    };
    try {
      const { success, code, stdout, stderr } = await new Deno.Command(program, {
        args: [...first, ...args],
      }).output();
      if (success) return;
      const [output, errors] = [stdout, stderr].map((bytes) =>
        new TextDecoder().decode(bytes).trim()
      );
      throw new Error(`exit code ${code}: ${output} ${errors}`.trim());
    } catch (thrown) {
      throw unnamedStorageError(thrown, context);
    }
  }

  async #with<T>(work: (client: RiakClient) => Promise<T>): Promise<T> {
    const client = new RiakClient(this.#pool);
    try {
      return await work(client);
    } finally {
      await client.close();
    }
  }
}

/** Commands that make all bucket types, as a shell script. */
export const BUCKET_TYPE_SCRIPT = [
  "#!/bin/sh",
  "set -e",
  ...commandLines(typeEntries().flatMap(([name, props]) => commandsFor(name, props, undefined))),
  "",
].join("\n");

function typeEntries(): readonly (readonly [BucketTypeName, Props])[] {
  return Object.entries(BUCKET_TYPES) as [BucketTypeName, Props][]; // the entries of that object
}

/** Reads the schema of a search index, and the index as JSON; undefined where there is none. */
async function searchParts(
  client: RiakClient,
  name: string,
): Promise<readonly [schema: string | undefined, index: string | undefined]> {
  return [
    await get(client, ["search", "schema", name]),
    await get(client, ["search", "index", name]),
  ];
}

/** Returns why a schema or an index of these names cannot be used; undefined when it can. */
function refusalOf(
  name: string,
  { schema, index, place }: {
    readonly schema: string | undefined;
    readonly index: string | undefined;
    readonly place: string;
  },
): CausewayError | undefined {
  const foreign = (reason: string) =>
    new CausewayError("storage/schema-foreign", `Cannot use ${place}: ${reason}`);
  if (index !== undefined && (JSON.parse(index) as Props)["schema"] !== name) {
    return foreign(`its search index ${name} has another schema than ${name}`);
  }
  if (schema === undefined || schema === RIAK_SCHEMAS[name]) return undefined;
  const version = VERSION_IN_SCHEMA.exec(schema)?.[1];
  if (version === undefined) return foreign(`its search schema ${name} is not Causeway's`);
  if (Number(version) > SCHEMA_VERSION) {
    return new CausewayError(
      "storage/schema-too-new",
      `Cannot use ${place}: its search schema ${name} has version ${version}, and this program ` +
        `knows versions up to ${SCHEMA_VERSION}; use the newer program`,
    );
  }
  return Number(version) < SCHEMA_VERSION
    ? undefined
    : foreign(`version ${version} of its search schema ${name} is not that of this program`);
}

/** @throws CausewayError as `refusalOf` says */
async function planOf(client: RiakClient, place: string): Promise<Plan> {
  const schemas: string[] = [];
  const indexes: string[] = [];
  for (const name of Object.keys(RIAK_SCHEMAS)) {
    const [schema, index] = await searchParts(client, name);
    const refusal = refusalOf(name, { schema, index, place });
    if (refusal !== undefined) throw refusal;
    if (schema !== RIAK_SCHEMAS[name]) schemas.push(name);
    if (index === undefined) indexes.push(name);
  }
  const commands: (readonly string[])[] = [];
  for (const [name, wanted] of typeEntries()) {
    commands.push(...commandsFor(name, wanted, await propsOf(client, name)));
  }
  return { schemas, indexes, commands };
}

/** Returns the commands that make a bucket type, or correct one that is there. */
function commandsFor(
  name: BucketTypeName,
  wanted: Props,
  props: Props | undefined,
): readonly (readonly string[])[] {
  const json = JSON.stringify({ props: wanted });
  if (props === undefined) {
    return [["bucket-type", "create", name, json], ["bucket-type", "activate", name]];
  }
  // The data type of a bucket type stays what it is: `check` says so.
  const isOther = problemsOf(name, wanted, props).length > 0;
  const canChange = props["datatype"] === wanted["datatype"];
  return isOther && canChange ? [["bucket-type", "update", name, json]] : [];
}

function problemsOf(name: string, wanted: Props, props: Props | undefined): readonly string[] {
  if (props === undefined) return [`the bucket type ${name} is missing or not active`];
  const all = { datatype: undefined, ...wanted };
  return Object.entries(all).flatMap(([property, value]) =>
    props[property] === value ? [] : [
      `the bucket type ${name} has ${property} ${props[property] ?? "none"}: it must be ` +
      `${value ?? "none"}`,
    ]
  );
}

/** Asks the index of keys: only some of Riak's backends have it. */
async function indexProblems(client: RiakClient): Promise<readonly string[]> {
  const bucket = nameOf("check");
  try {
    await new PlainObjects(client).keysBetween({ type: "users", bucket }, {
      index: "$key",
      from: "0",
      to: "1",
      limit: 1,
      action: "ask the index of keys of",
    });
    return [];
  } catch (thrown) {
    return [
      `secondary indexes do not work: set storage_backend = leveldb (${describeError(thrown)})`,
    ];
  }
}

function linesOf({ schemas, indexes, commands }: Plan): readonly string[] {
  return [
    ...schemas.map((name) => `PUT /search/schema/${name} (application/xml, schema/${name}.xml)`),
    ...indexes.map((name) => `PUT /search/index/${name} {"schema":"${name}"}`),
    ...commandLines(commands),
  ];
}

/** Returns commands as a shell reads them. */
function commandLines(commands: Plan["commands"]): readonly string[] {
  return commands.map((args) => ["riak-admin", ...args.map(quoted)].join(" "));
}

/** Quotes an argument for a shell, where it needs it. */
function quoted(argument: string): string {
  return /^[\w-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

async function versionOf(client: RiakClient): Promise<string> {
  const { riak_kv_version: version } = JSON.parse(await get(client, ["stats"]) ?? "{}") as Props;
  return `${version ?? "unknown"}`;
}

async function propsOf(client: RiakClient, name: string): Promise<Props | undefined> {
  const text = await get(client, ["types", name, "props"]);
  return text === undefined ? undefined : (JSON.parse(text) as { readonly props: Props }).props;
}

/** Returns a text of the server; undefined when there is none. */
async function get(client: RiakClient, path: readonly string[]): Promise<string | undefined> {
  const { status, body } = await client.request({
    method: "GET",
    path,
    accepts: [200, 404],
    acceptsUnknownType: true,
    action: "read the settings of",
  });
  return status === 404 ? undefined : new TextDecoder().decode(body);
}

async function put(
  client: RiakClient,
  path: readonly string[],
  contentType: string,
  body: string,
): Promise<void> {
  await client.request({
    method: "PUT",
    path,
    headers: { "Content-Type": contentType },
    body,
    // Another preparation may have been faster: 409 says that it is there.
    accepts: [200, 201, 204, 409],
    action: "prepare",
  });
}
