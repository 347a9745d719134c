import assert from "node:assert/strict";
import { NodeConfig } from "../services/pep/mod.ts";
import type { PepStore } from "../storage/mod.ts";
import { TestServer } from "../storage/sql/testing/servers.ts";
import { MongooseimSql } from "./mongooseim_sql.ts";
import { Destination, HOST } from "./testing/destination.ts";
import { foreign, FOREIGN_KINDS } from "./testing/foreign.ts";

/** Columns of MongooseIM's tables since 5.0, by the driver of the server. */
function tablesOf(driver: string): Readonly<Record<string, string>> {
  const [number, serial, small] = driver === "pgsql"
    ? ["bigint", "bigserial PRIMARY KEY", "smallint"]
    : [
      "bigint unsigned",
      "bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY",
      "tinyint unsigned",
    ];
  return {
    users: "server varchar(250), username varchar(250), password text, pass_details text",
    pubsub_nodes: `nidx ${serial}, p_key varchar(250) NOT NULL, name varchar(250) NOT NULL, ` +
      "type varchar(250) NOT NULL, owners json NOT NULL, options json NOT NULL",
    pubsub_affiliations: `nidx ${number} NOT NULL, luser varchar(250) NOT NULL, ` +
      `lserver varchar(250) NOT NULL, aff ${small} NOT NULL, PRIMARY KEY (luser, lserver, nidx)`,
    pubsub_items: `nidx ${number} NOT NULL, itemid varchar(250) NOT NULL, ` +
      "created_luser varchar(250) NOT NULL, created_lserver varchar(250) NOT NULL, " +
      "created_at bigint NOT NULL, modified_luser varchar(250) NOT NULL, " +
      "modified_lserver varchar(250) NOT NULL, modified_lresource varchar(250) NOT NULL, " +
      "modified_at bigint NOT NULL, publisher text, payload text NOT NULL, " +
      "PRIMARY KEY (nidx, itemid)",
  };
}

/** Options that a node has beside those that it was given. */
const OPTIONS = {
  access_model: "presence",
  deliver_notifications: true,
  deliver_payloads: true,
  max_items: 1,
  max_payload_size: 60_000,
  notification_type: "headline",
  notify_config: false,
  notify_delete: false,
  notify_retract: false,
  persist_items: true,
  presence_based_delivery: true,
  publish_model: "publishers",
  purge_offline: false,
  roster_groups_allowed: [],
  send_last_published_item: "on_sub_and_presence",
  subscribe: true,
};

function node(number: number, key: string, name: string, options: object): string {
  const json = JSON.stringify({ ...OPTIONS, ...options });
  return `INSERT INTO pubsub_nodes VALUES (${number}, '${key}', '${name}', 'pep', '["${key}"]', ` +
    `'${json}')`;
}

function item(number: number, id: string, payload: string, modifiedAt: number): string {
  return `INSERT INTO pubsub_items VALUES (${number}, '${id}', 'alice', 'example.com', 1, 'alice', ` +
    `'example.com', 'phone', ${modifiedAt}, NULL, '${payload}')`;
}

function statementsFor(driver: string): readonly string[] {
  const alice = "alice@example.com";
  return [
    ...Object.entries(tablesOf(driver)).map(([name, all]) => `CREATE TABLE ${name} (${all})`),
    "INSERT INTO users VALUES ('example.com', 'alice', 'x', NULL)",
    node(1, alice, "urn:xmpp:avatar:data", { access_model: "open" }),
    item(1, "a1", '<item><data xmlns="urn:xmpp:avatar:data">ä==</data></item>', 5),
    node(2, alice, "urn:xmpp:bookmarks:1", { access_model: "whitelist", max_items: 200 }),
    item(2, "new@rooms", '<item><conference xmlns="urn:xmpp:bookmarks:1"/></item>', 9),
    item(2, "old@rooms", '<item><conference xmlns="urn:xmpp:bookmarks:1" name="Tea"/></item>', 7),
    ...[["alice", 1], ["bob", 4], ["eve", 5], ["carol", 2]].map(([name, affiliation]) =>
      `INSERT INTO pubsub_affiliations VALUES (2, '${name}', 'example.com', ${affiliation})`
    ),
    node(3, alice, "odd", { access_model: "authorize" }),
    item(3, "x", "<item", 1),
    item(3, "y", "<item/>", 2),
    "INSERT INTO pubsub_nodes VALUES " +
    `(4, '${alice}', 'none', 'pep', '[]', '[]'), (5, 'pubsub.example.com', 'news', 'flat', '[]', '{}')`,
    item(4, "z", '<item><a xmlns="urn:a"/></item>', 1),
    item(5, "n", '<item><a xmlns="urn:a"/></item>', 1),
  ];
}

/** Returns the nodes of an account: name, access model, affiliations and items. */
async function factsOf(store: PepStore, localpart: string): Promise<readonly unknown[]> {
  const facts = [];
  for (const { name, config: text } of await store.nodes(localpart)) {
    const config = NodeConfig.decode(text);
    const items = await store.newest(localpart, name, 10);
    facts.push([
      ...[name, config.accessModel, Object.fromEntries(config.affiliations)],
      items.map(({ id, xml }) => `${id} ${xml}`),
    ]);
  }
  return facts;
}

for (const kind of FOREIGN_KINDS) {
  Deno.test(`MongooseimSql takes personal eventing from ${kind.name}`, async () => {
    await using server = await TestServer.start(kind);
    await using database = await foreign(server, statementsFor(kind.driver));
    await using destination = await Destination.open();
    const counts = await destination.import(await MongooseimSql.open(database));
    assert.deepEqual([counts.added, counts.findings], [1, destination.report().length]);
    assert.deepEqual(
      destination.report().toSorted(),
      [
        'node "none": its configuration is malformed',
        'node "none": only its owner and members see it: its source does not say who may',
        'node "odd": item "x" has no payload or no id',
        'node "odd": item "y" has no payload or no id',
        'node "odd": only its owner and members see it: its access model "authorize" is none here',
        'node "urn:xmpp:bookmarks:1": affiliation "publisher" of "carol@example.com" is not taken',
      ].map((reason) => `alice@example.com | pep | ${reason}`).concat(
        "- | other | table pubsub_nodes: 1 rows are not taken (nodes of services, with their items)",
      ).toSorted(),
    );

    const facts = await factsOf(destination.store.pep(HOST), "alice");
    assert.deepEqual(facts.toSorted(), [
      ["none", "whitelist", {}, ["z <a xmlns='urn:a'/>"]],
      ["odd", "whitelist", {}, []],
      ["urn:xmpp:avatar:data", "open", {}, ["a1 <data xmlns='urn:xmpp:avatar:data'>ä==</data>"]],
      ["urn:xmpp:bookmarks:1", "whitelist", {
        "bob@example.com": "member",
        "eve@example.com": "outcast",
      }, [
        "old@rooms <conference xmlns='urn:xmpp:bookmarks:1' name='Tea'/>",
        "new@rooms <conference xmlns='urn:xmpp:bookmarks:1'/>",
      ]],
    ]);
  });
}

/** Tables of the `mod_pubsub` that MongooseIM 6.8 has brought. */
function newStatementsFor(driver: string): readonly string[] {
  const model = driver === "pgsql" ? "access" : "ENUM('open', 'presence')";
  const key = "service_domain varchar(125) NOT NULL, service_user varchar(125) NOT NULL, " +
    "node_id varchar(125) NOT NULL";
  const of = (user: string, name: string) => `'example.com', '${user}', '${name}'`;
  const item = (user: string, name: string, id: string, payload: string, at: number) =>
    `INSERT INTO pubsub_item VALUES (${
      of(user, name)
    }, '${id}', 'example.com', '${user}', 'phone', ` +
    `'${payload}', ${at})`;
  return [
    `CREATE TABLE users (${tablesOf(driver)["users"]})`,
    ...(driver === "pgsql" ? ["CREATE TYPE access AS ENUM ('open', 'presence')"] : []),
    `CREATE TABLE pubsub_node (${key}, access_model ${model} NOT NULL, max_items bigint, ` +
    "PRIMARY KEY (service_domain, service_user, node_id))",
    `CREATE TABLE pubsub_item (${key}, item_id varchar(125) NOT NULL, ` +
    "publisher_domain varchar(125) NOT NULL, publisher_user varchar(125) NOT NULL, " +
    "publisher_resource varchar(125) NOT NULL, payload text NOT NULL, published_at bigint NOT NULL, " +
    "PRIMARY KEY (service_domain, service_user, node_id, item_id))",
    "INSERT INTO users VALUES ('example.com', 'alice', 'x', NULL)",
    `INSERT INTO pubsub_node VALUES (${of("alice", "urn:xmpp:avatar:data")}, 'open', 1)`,
    item("alice", "urn:xmpp:avatar:data", "a0", '<data xmlns="urn:xmpp:avatar:data">o==</data>', 1),
    item("alice", "urn:xmpp:avatar:data", "a1", '<data xmlns="urn:xmpp:avatar:data">ä==</data>', 2),
    `INSERT INTO pubsub_node VALUES (${of("alice", "all")}, 'presence', NULL)`,
    item("alice", "all", "i", '<item xmlns="urn:a"><b/></item>', 2),
    item("alice", "all", "j", '<a xmlns="urn:a"/>', 1),
    item("alice", "all", "k", "<a", 3),
    `INSERT INTO pubsub_node VALUES (${of("carol", "n")}, 'open', NULL)`,
    `INSERT INTO pubsub_node VALUES (${of("", "news")}, 'open', NULL)`,
  ];
}

for (const kind of FOREIGN_KINDS) {
  Deno.test(`MongooseimSql takes personal eventing from ${kind.name} as MongooseIM 6.8 keeps it`, async () => {
    await using server = await TestServer.start(kind);
    await using database = await foreign(server, newStatementsFor(kind.driver));
    await using destination = await Destination.open();
    await destination.import(await MongooseimSql.open(database));
    assert.deepEqual(destination.report(), [
      'alice@example.com | pep | node "all": item "k" has no payload or no id',
      'alice@example.com | pep | node "urn:xmpp:avatar:data": 1 items are more than it keeps',
      "carol@example.com | account | nobody could log in to it",
      "- | other | table pubsub_node: 1 rows are not taken (nodes of services, with their items)",
    ]);
    assert.deepEqual((await factsOf(destination.store.pep(HOST), "alice")).toSorted(), [
      ["all", "presence", {}, ["j <a xmlns='urn:a'/>", "i <item xmlns='urn:a'><b/></item>"]],
      ["urn:xmpp:avatar:data", "open", {}, ["a1 <data xmlns='urn:xmpp:avatar:data'>ä==</data>"]],
    ]);
  });
}
