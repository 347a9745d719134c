import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Random } from "../base/mod.ts";
import { SeededRandom } from "../base/mod.ts";
import { SOUND } from "../config/testing/config.ts";
import { InternalStore } from "../storage/mod.ts";
import { sqlServerDatabase } from "../storage/sql/sql_server.ts";
import type { SqlAddress } from "../storage/sql/sql_server.ts";
import { SqlStores } from "../storage/sql/sql_stores.ts";
import { preparedDatabase } from "../storage/sql/testing/databases.ts";
import { SERVER_KINDS, TestServer } from "../storage/sql/testing/servers.ts";
import { deriveScramCredentials } from "../xmpp/mod.ts";
import {
  exportedAccounts,
  PIE_HOST_TAIL,
  PIE_TAIL,
  pieHead,
  pieHostHead,
} from "../migration/mod.ts";
import { ACCOUNT_TABLES } from "../migration/testing/account_tables.ts";
import { CommandFixture } from "./testing/command.ts";

const HOST = "example.com";
const SEED = 20_260_101;
const POSTGRESQL = SERVER_KINDS.find(({ driver }) => driver === "pgsql")!;

/** Accounts of a source: several batches. */
const ACCOUNTS = 40;
/** Times that an import is killed before one is left alone. */
const KILLS = 4;
/** Milliseconds from the beginning of an import in which it is killed. */
const KILLED_WITHIN_MS = 600;

const TABLES: Readonly<Record<string, string>> = {
  ...ACCOUNT_TABLES,
  privacy_list_data: ACCOUNT_TABLES["privacy_list_data"]!.replaceAll("boolean", "smallint"),
  users: `${ACCOUNT_TABLES["users"]}, PRIMARY KEY (server, username)`,
  muc_rooms: "muc_host varchar(250), room_name varchar(250)",
  pubsub_nodes: "nidx bigint, p_key varchar(250), name varchar(250), options json",
  pubsub_affiliations: "nidx bigint, luser varchar(250), lserver varchar(250), aff smallint",
  pubsub_items: "nidx bigint, itemid varchar(250), modified_at bigint, payload text",
  pubsub_node: "service_domain varchar(125), service_user varchar(125), node_id varchar(125), " +
    "access_model varchar(10), max_items bigint",
  pubsub_item: "service_domain varchar(125), service_user varchar(125), node_id varchar(125), " +
    "item_id varchar(125), payload text, published_at bigint",
  pubsub_subscriptions: "nidx bigint, luser varchar(250), lserver varchar(250)",
};

/** Statements that make MongooseIM's tables, with every kind of data and of what is left. */
async function mongooseimStatements(): Promise<readonly string[]> {
  const { sha1, sha256 } = await deriveScramCredentials("x", 16);
  const [one, other] = [sha1, sha256].map(({ salt, storedKey, serverKey }) =>
    [salt, storedKey, serverKey].map((each) => each.toBase64()).join("|")
  );
  const keys = `==MULTI_SCRAM==,16,===SHA1===${one},==SHA256==${other}`;
  const rows: [table: string, ...values: (string | number)[]][] = [];
  for (let i = 0; i < ACCOUNTS; i++) {
    const name = `user${i}`;
    const key = [HOST, name] as const;
    rows.push(["users", ...key, "", i % 7 === 3 ? "unknown" : keys]);
    for (let j = 0; j < 3; j++) {
      rows.push(["rosterusers", ...key, `friend${j}@example.net`, `F${j}`, "B", "N", ""]);
      rows.push(["rostergroups", ...key, `friend${j}@example.net`, "Tea"]);
    }
    rows.push(["rosterusers", ...key, "asks@example.net", "", "N", "I", "let me in"]);
    rows.push(["rosterusers", ...key, "a@b@c", "", "N", "N", ""]);
    rows.push(["vcard", ...key, `<vCard xmlns="vcard-temp"><FN>${name}</FN></vCard>`]);
    for (const namespace of ["urn:a", "urn:b"]) {
      rows.push(["private_storage", ...key, namespace, `<a xmlns="${namespace}">${name}</a>`]);
    }
    rows.push(["private_storage", ...key, "urn:c", "<a"]);
    rows.push(["last", ...key, 1_600_000_000 + i, "gone"]);
    // Some have more than one step writes.
    for (let j = 0; j < (i % 5 === 0 ? 70 : 2); j++) {
      const body = `<message type="chat"><body>${name} ${j % 40}</body></message>`;
      const from = `friend${j % 8}@example.net/x`;
      rows.push(["offline_message", 100 * i + j, 17e14, 99e14, ...key, from, body]);
    }
    rows.push([
      "offline_message",
      100 * i + 99,
      17e14,
      17e14,
      ...key,
      "b@example.net",
      "<message/>",
    ]);
    rows.push(["privacy_default_list", ...key, i % 4 === 0 ? "gone" : "blocked"]);
    rows.push(["privacy_list", ...key, "blocked", i]);
    for (const [j, match] of [["j", "spam@example.net"], ["j", "a@b@c"], ["x", ""]].entries()) {
      rows.push(["privacy_list_data", i, ...match, "d", j, 1, 0, 0, 0, 0]);
    }
    rows.push(["mam_server_user", i, ...key]);
    rows.push(["pubsub_node", ...key, "new", "open", 2]);
    for (let j = 0; j < 3; j++) {
      rows.push(["pubsub_item", ...key, "new", `i${j}`, `<a xmlns="urn:a">${j}</a>`, j]);
    }
    for (const [j, node] of ["urn:xmpp:bookmarks:1", "odd"].entries()) {
      const options = { access_model: j === 0 ? "open" : "authorize", max_items: 3 };
      const number = 10 * i + j;
      rows.push(["pubsub_nodes", number, `${name}@${HOST}`, node, JSON.stringify(options)]);
      rows.push(["pubsub_affiliations", number, "bob", HOST, 4]);
      for (let k = 0; k < 4; k++) {
        rows.push(["pubsub_items", number, `i${k}`, k, `<item><a xmlns="urn:a">${k}</a></item>`]);
      }
      rows.push(["pubsub_subscriptions", number, "bob", HOST]);
    }
  }
  rows.push(["muc_rooms", "rooms.example.com", "tea"]);
  const literal = (value: string | number) =>
    typeof value === "number" ? `${value}` : `'${value.replaceAll("'", "''")}'`;
  const valuesOf = (table: string) =>
    rows.filter(([name]) => name === table)
      .map(([, ...values]) => `(${values.map(literal).join(", ")})`).join(", ");
  return Object.entries(TABLES).flatMap(([table, columns]) => [
    `CREATE TABLE ${table} (${columns})`,
    `INSERT INTO ${table} VALUES ${valuesOf(table)}`,
  ]);
}

/** A configuration of a host that has messages which wait, with its data in a database. */
function configFor(address: SqlAddress | undefined): string {
  const hosts = SOUND.replaceAll("example.com", "example.org")
    .replace('["example.org"', `["${HOST}", "example.org"`);
  const offline = `[host_config."${HOST}".modules.mod_offline]\n`;
  if (address === undefined) return hosts + offline;
  const { host, port, database, username, password } = address;
  return `${hosts}${offline}[auth]\nbackend = "rdbms"\n` +
    ["roster", "vcard", "private", "privacy", "last", "pubsub"].map((each) =>
      `[modules.mod_${each}]\nbackend = "rdbms"\n`
    ).join("") +
    `[outgoing_pools.rdbms.default.connection]\ndriver = "pgsql"\nhost = "${host}"\n` +
    `port = ${port}\ndatabase = "${database}"\nusername = "${username}"\n` +
    `password = ${JSON.stringify(password.reveal())}\n`;
}

/** A place for accounts, with the files of an import. */
interface Destination extends AsyncDisposable {
  readonly fixture: CommandFixture;
  stores(): Promise<SqlStores>;
}

/** @param server that has the data. @default the built-in store */
async function destinationAt(server: TestServer | undefined): Promise<Destination> {
  const database = server && await preparedDatabase(server);
  const fixture = await CommandFixture.make(configFor(database?.address));
  return {
    fixture,
    stores: async () =>
      database === undefined
        ? await InternalStore.open({ path: join(fixture.directory, "causeway.sqlite") })
        : new SqlStores(sqlServerDatabase(database)),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

/** Returns what an import that has come to its end has said, reported and taken. */
async function resultOf(
  { fixture, stores: open }: Destination,
  { code, stdout, stderr }: Deno.CommandOutput,
): Promise<Readonly<Record<string, unknown>>> {
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  const report = await Deno.readTextFile(join(fixture.directory, "causeway-import.report"));
  const stores = await open();
  try {
    const accounts = await Array.fromAsync(exportedAccounts({ stores, host: HOST }));
    const logouts = stores.lastLogouts(HOST);
    return {
      counts: JSON.parse(new TextDecoder().decode(stdout)),
      report: report.split("\n"),
      accounts: accounts.map(({ xml }) => xml),
      logouts: await Promise.all(accounts.map(({ jid }) => logouts.read(jid.localpart))),
    };
  } finally {
    await stores.close();
  }
}

/** Returns the file that holds the state of an import; undefined where there is none. */
async function stateOf({ fixture }: Destination): Promise<number | undefined> {
  try {
    return (await Deno.stat(join(fixture.directory, "causeway-import.state"))).ino ?? undefined;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}

/**
 * Runs an import, kills it at a random moment, and repeats it, so many times. The last one comes to its
 * end. An import that ends before it is killed is the last one, too.
 *
 * @returns how often it was killed, and what the last one has led to
 */
async function importKilled(
  destination: Destination,
  source: readonly string[],
  { kills, random }: { readonly kills: number; readonly random: Random },
) {
  for (let killed = 0;; killed++) {
    const before = await stateOf(destination);
    const args = ["import", ...source, "--config", destination.fixture.config, "--json"];
    const process = destination.fixture.start(args, ["--allow-net=127.0.0.1", "--allow-sys"]);
    await process.stdin.close();
    let hasEnded = false;
    const output = process.output().finally(() => hasEnded = true);
    if (killed < kills) {
      while (!hasEnded && await stateOf(destination) === before) await setTimeout(1);
      await setTimeout(random.unit() * KILLED_WITHIN_MS);
      if (!hasEnded) kill(process);
    }
    const ended = await output;
    if (ended.signal !== "SIGKILL") return { kills: killed, ...await resultOf(destination, ended) };
  }
}

function kill(process: Deno.ChildProcess): void {
  try {
    process.kill("SIGKILL");
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown; // it has just ended by itself
  }
}

/** Makes MongooseIM's tables, and returns the options that name them. */
async function tablesAt(server: TestServer): Promise<readonly string[]> {
  const { host, port, database, username, password } = await server.database();
  for (const statement of await mongooseimStatements()) await server.asRoot(statement, database);
  await server.asRoot("GRANT SELECT ON ALL TABLES IN SCHEMA public TO causeway", database);
  const login = `${username}:${encodeURIComponent(password.reveal())}`;
  return ["--mongooseim-sql", `postgresql://${login}@${host}:${port}/${database}`];
}

/** Returns a document with the accounts of a destination, and with parts that are malformed. */
async function documentOf({ stores: open }: Destination): Promise<string> {
  const stores = await open();
  const accounts = await Array.fromAsync(exportedAccounts({ stores, host: HOST }));
  await stores.close();
  const odd = "<query xmlns='jabber:iq:roster'><item jid='a@b@c'/></query><new xmlns='urn:new'/>";
  const users = accounts.map(({ xml }) => xml.replace("</user>", `${odd}</user>`)).join("");
  return pieHead() + pieHostHead(HOST) + users + PIE_HOST_TAIL + PIE_TAIL;
}

for (const name of ["the built-in store", "PostgreSQL"]) {
  Deno.test(`causeway import into ${name} that is killed again and again takes and reports what one in one go does`, async () => {
    const random = new SeededRandom(SEED);
    await using server = await TestServer.start(POSTGRESQL);
    const place = name === "PostgreSQL" ? server : undefined;
    /** Imports with and without kills; `source` returns the arguments. Returns what was taken. */
    const compare = async (source: (to: Destination) => Promise<readonly string[]>) => {
      await using whole = await destinationAt(place);
      const expected = await importKilled(whole, await source(whole), { kills: 0, random });
      await using other = await destinationAt(place);
      const result = await importKilled(other, await source(other), { kills: KILLS, random });
      assert.ok(result.kills > 0, "it is killed before its end at least once");
      assert.deepEqual({ ...result, kills: 0 }, expected);
      return await documentOf(whole);
    };
    const tables = await tablesAt(server);
    const document = await compare(() => Promise.resolve(tables));
    await compare(async ({ fixture }) => {
      await Deno.writeTextFile(join(fixture.directory, "in.xml"), document);
      return ["in.xml"];
    });
  });
}
