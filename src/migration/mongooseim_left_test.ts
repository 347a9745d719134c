import assert from "node:assert/strict";
import { TestServer } from "../storage/sql/testing/servers.ts";
import { MongooseimSql } from "./mongooseim_sql.ts";
import { Destination } from "./testing/destination.ts";
import { foreign, FOREIGN_KINDS } from "./testing/foreign.ts";

const OWNER = "luser varchar(250), lserver varchar(250)";

/** Tables, with their columns and the number of their rows. */
const TABLES: Readonly<Record<string, readonly [columns: string, rows: number]>> = {
  users: ["server varchar(250), username varchar(250), password text, pass_details text", 0],
  // Some of it is taken.
  pubsub_nodes: ["nidx bigint, p_key varchar(250), name varchar(250), options text", 0],
  pubsub_affiliations: [`nidx bigint, ${OWNER}, aff smallint`, 0],
  pubsub_items: ["nidx bigint, itemid varchar(250), modified_at bigint, payload text", 0],
  // All of it is left.
  pubsub_subscriptions: [`nidx bigint, ${OWNER}`, 3],
  inbox: [OWNER, 2],
  muc_light_rooms: [OWNER, 0],
  muc_rooms: ["muc_host varchar(250), room_name varchar(250)", 1],
  mam_muc_message: ["id bigint, room_id bigint", 4],
  new_in_some_version: ["a integer", 1],
  // It says nothing about people.
  domain_settings: ["domain varchar(250)", 1],
  roster_version: ["server varchar(250), username varchar(250), version text", 1],
};

const STATEMENTS: readonly string[] = [
  ...Object.entries(TABLES).flatMap(([name, [columns, rows]]) => [
    `CREATE TABLE ${name} (${columns})`,
    ...Array.from({ length: rows }, () => {
      const [first] = columns.split(" ");
      const value = /^[a-z_]+ (?:bigint|integer)/.test(columns) ? "1" : "'x'";
      return `INSERT INTO ${name} (${first}) VALUES (${value})`;
    }),
  ]),
  "INSERT INTO users VALUES ('example.com', 'alice', 'x', NULL)",
  "INSERT INTO pubsub_nodes VALUES (1, 'pubsub.example.com', 'news', '{}')",
  `INSERT INTO pubsub_nodes VALUES (2, 'alice@example.com', 'n', '{"access_model": "open"}')`,
];

for (const kind of FOREIGN_KINDS) {
  Deno.test(`MongooseimSql names the tables of ${kind.name} that are not taken, with their rows`, async () => {
    await using server = await TestServer.start(kind);
    await using database = await foreign(server, STATEMENTS);
    await using destination = await Destination.open();
    const source = await MongooseimSql.open(database);
    const counts = await destination.import(source);
    assert.deepEqual([counts.added, counts.refused, counts.findings], [1, 0, 6]);
    assert.deepEqual(destination.report(), [
      "- | other | table inbox: 2 rows are not taken (inboxes)",
      "- | other | table mam_muc_message: 4 rows are not taken (message archives of rooms)",
      "- | other | table muc_rooms: 1 rows are not taken (rooms)",
      "- | other | table new_in_some_version: 1 rows are not taken (Causeway does not know this table)",
      "- | other | table pubsub_nodes: 1 rows are not taken (nodes of services, with their items)",
      "- | other | table pubsub_subscriptions: 3 rows are not taken (explicit subscriptions to nodes)",
    ]);
    const all = (await Array.fromAsync(source.items(undefined))).map(({ position }) => position);
    const rest = (await Array.fromAsync(source.items(all[3]))).map(({ position }) => position);
    assert.equal(all.length, 7);
    assert.deepEqual(rest, all.slice(4), "continues behind a table");
  });
}
