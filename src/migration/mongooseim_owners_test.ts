import assert from "node:assert/strict";
import { TestServer } from "../storage/sql/testing/servers.ts";
import { MongooseimSql } from "./mongooseim_sql.ts";
import { Destination, HOST, NOTHING, storesWith } from "./testing/destination.ts";
import { foreign, FOREIGN_KINDS } from "./testing/foreign.ts";

const OWNER = "server varchar(250), username varchar(250)";
const KEY = (name: string) => `'${HOST}', '${name}'`;

/** Tables of a server whose accounts are in a directory, but for one. */
const STATEMENTS: readonly string[] = [
  `CREATE TABLE users (${OWNER}, password text, pass_details text)`,
  `CREATE TABLE rosterusers (${OWNER}, jid text, nick text, subscription char(1), ask char(1), ` +
  "askmessage text)",
  "CREATE TABLE vcard (server varchar(150), username varchar(150), vcard text)",
  `CREATE TABLE last (${OWNER}, seconds integer, state text)`,
  "CREATE TABLE pubsub_nodes (nidx bigint, p_key varchar(250), name varchar(250), options text)",
  "CREATE TABLE pubsub_affiliations (nidx bigint, luser varchar(250), lserver varchar(250), " +
  "aff smallint)",
  "CREATE TABLE pubsub_items (nidx bigint, itemid varchar(250), modified_at bigint, payload text)",
  `INSERT INTO users VALUES (${KEY("zoe")}, 'x', NULL)`,
  `INSERT INTO rosterusers VALUES (${KEY("alice")}, 'bob@example.net', '', 'B', 'N', '')`,
  `INSERT INTO rosterusers VALUES (${KEY("alice")}, 'carol@example.net', '', 'B', 'N', '')`,
  `INSERT INTO rosterusers VALUES (${KEY("zoe")}, 'bob@example.net', '', 'B', 'N', '')`,
  `INSERT INTO vcard VALUES (${KEY("alice")}, '<vCard xmlns="vcard-temp"><FN>A</FN></vCard>')`,
  `INSERT INTO last VALUES (${KEY("bob")}, 1600000000, '')`,
  `INSERT INTO pubsub_nodes VALUES (1, 'carol@${HOST}', 'n', '{"access_model": "open"}')`,
];

for (const kind of FOREIGN_KINDS) {
  Deno.test(`MongooseimSql takes accounts of ${kind.name} whose passwords a directory checks`, async () => {
    await using server = await TestServer.start(kind);
    await using database = await foreign(server, STATEMENTS);
    const source = await MongooseimSql.open(database);
    await using destination = await Destination.open();
    const { store, taking } = destination;
    const users = {
      checkPassword: () => Promise.resolve(undefined),
      exists: () => Promise.resolve(true),
    };
    const counts = await destination.import(source, {
      ...taking,
      stores: storesWith(store, { users }),
    });
    assert.deepEqual(counts, { ...NOTHING, there: 4, findings: 1 });
    assert.deepEqual(destination.report(), [
      "zoe@example.com | password | the host's accounts are kept in a directory, which checks the " +
      "password itself",
    ]);
    const { items } = await store.rosters().read("alice@example.com");
    assert.deepEqual(items.map(({ jid }) => jid), ["bob@example.net", "carol@example.net"]);
    assert.notEqual(await store.vcards(HOST).read("alice"), undefined);
    assert.equal((await store.lastLogouts(HOST).read("bob"))?.atMs, 1_600_000_000_000);
    assert.equal((await store.pep(HOST).nodes("carol")).length, 1);

    await using other = await Destination.open();
    const refused = await other.import(source);
    assert.deepEqual(refused, { ...NOTHING, added: 1, refused: 3, findings: 3 });
    assert.deepEqual(
      other.report(),
      ["alice", "bob", "carol"].map((name) =>
        `${name}@example.com | account | nobody could log in to it`
      ),
    );
  });
}
