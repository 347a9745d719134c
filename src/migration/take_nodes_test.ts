import assert from "node:assert/strict";
import { NodeConfig } from "../services/pep/mod.ts";
import { PieFiles } from "./pie_files.ts";
import { Destination, document, HOST, NOTHING, user } from "./testing/destination.ts";

const ITEMS = "http://jabber.org/protocol/pubsub";
const OWNER = "http://jabber.org/protocol/pubsub#owner";
const LIMITS = { maxItemsPerNode: 5 };

/** Returns a node as a document has it, with options that are one value each. */
function node(
  name: string,
  { options, items = {}, affiliations = {} }: {
    readonly options?: Readonly<Record<string, string>>;
    readonly items?: Readonly<Record<string, string>>;
    readonly affiliations?: Readonly<Record<string, string>>;
  },
): string {
  const fields = Object.entries(options ?? {}).map(([option, value]) =>
    `<field var='pubsub#${option}'><value>${value}</value></field>`
  );
  const published = Object.entries(items).map(([id, text]) =>
    `<item id='${id}'><a xmlns='urn:a'>${text}</a></item>`
  );
  const others = Object.entries(affiliations).map(([jid, affiliation]) =>
    `<affiliation jid='${jid}' affiliation='${affiliation}'/>`
  );
  const configure = `<configure node='${name}'><x xmlns='jabber:x:data' type='submit'>` +
    `${fields.join("")}</x></configure>`;
  return `<pubsub xmlns='${ITEMS}'><items node='${name}'>${published.join("")}</items></pubsub>` +
    `<pubsub xmlns='${OWNER}'>${options === undefined ? "" : configure}` +
    `<affiliations node='${name}'>${others.join("")}</affiliations></pubsub>`;
}

/** Returns the nodes of alice, each with who may see it and the ids and texts of its items. */
async function nodesOf({ store }: Destination, localpart = "alice") {
  const pep = store.pep(HOST);
  const nodes = await pep.nodes(localpart);
  return await Promise.all(nodes.map(async ({ name, config }) => {
    const items = await pep.newest(localpart, name, 100);
    const texts = items.map(({ id, xml }) => `${id} ${/>(.*)</.exec(xml)?.[1]}`);
    return [name, NodeConfig.decode(config).accessModel, texts];
  }));
}

Deno.test("takeNodes() takes nodes with their options, affiliations and items", async () => {
  await using destination = await Destination.open();
  const options = {
    access_model: "roster",
    roster_groups_allowed: "Friends",
    max_items: "3",
    title: "",
    publish_model: "publishers",
  };
  const affiliations = {
    "alice@example.com": "owner",
    "bob@example.com/x": "member",
    "eve@example.com": "outcast",
    "carol@example.com": "none",
  };
  const items = { "1": "one", "2": "two", "3": "three" };
  const path = await destination.write(document(
    user("alice", node("urn:notes", { options, affiliations, items })),
  ));
  assert.deepEqual(await destination.importFiles(path), { ...NOTHING, added: 1 });
  const expected = ["urn:notes", "roster", ["1 one", "2 two", "3 three"]];
  assert.deepEqual(await nodesOf(destination), [expected]);
  const [stored] = await destination.store.pep(HOST).nodes("alice");
  const config = NodeConfig.decode(stored!.config);
  assert.deepEqual(config.rosterGroups, ["Friends"]);
  assert.equal(config.maxItems(LIMITS), 3);
  assert.deepEqual([...config.affiliations], [
    ["bob@example.com", "member"],
    ["eve@example.com", "outcast"],
  ]);

  // What it exports is taken with the same result.
  await using other = await Destination.open();
  const exported = await other.write(await destination.export());
  assert.deepEqual(await other.importFiles(exported), { ...NOTHING, added: 1 });
  assert.deepEqual(await nodesOf(other), [expected]);
  const [copied] = await other.store.pep(HOST).nodes("alice");
  const [before, after] = [config, NodeConfig.decode(copied!.config)];
  assert.deepEqual(after.fields(), before.fields());
  assert.deepEqual(after.affiliations, before.affiliations);
});

Deno.test("takeNodes() shows no node to more people than its source", async () => {
  await using destination = await Destination.open();
  const others = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, i) => [`somebody-${i}@example.net`, "outcast"]),
  );
  const path = await destination.write(document(user(
    "alice",
    [
      node("a", { options: {}, items: { "1": "x" } }),
      node("b", { options: { access_model: "open" } }),
      node("c", { options: { access_model: "authorize" } }),
      node("d", { items: { "1": "x" } }),
      node("e", { options: { access_model: "open" }, affiliations: others }),
      node("urn:xmpp:bookmarks:1", { options: {} }),
    ].join(""),
  )));
  await destination.importFiles(path);
  assert.deepEqual(await nodesOf(destination), [
    ["a", "presence", ["1 x"]],
    ["b", "open", []],
    ["c", "whitelist", []],
    ["d", "whitelist", ["1 x"]],
    ["e", "whitelist", []],
    ["urn:xmpp:bookmarks:1", "whitelist", []],
  ]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | pep | node "c": only its owner and members see it: its access model "authorize" is none here',
    'alice@example.com | pep | node "d": only its owner and members see it: its source does not say who may',
    'alice@example.com | pep | node "e": only its owner sees it: it has too many affiliations',
  ]);
});

Deno.test("takeNodes() reports what it leaves, and keeps the newest items", async () => {
  await using destination = await Destination.open();
  const items = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`i${i}`, `${i}`]));
  const path = await destination.write(document(user(
    "alice",
    node("many", { options: { max_items: "10000", itemreply: "owner" }, items }) +
      node("large", { options: {}, items: { "1": "x".repeat(1_000) } }) +
      node("odd", { options: {}, affiliations: { "bob@example.com": "publisher" } }) +
      `<pubsub xmlns='${ITEMS}'><items node='many'><item id='none'/><item><a xmlns='urn:a'/></item>` +
      `</items><items><item id='1'><a xmlns='urn:a'/></item></items></pubsub>` +
      `<pubsub xmlns='${OWNER}'><subscriptions node='many'/>` +
      `<configure node='many'/></pubsub>`,
  )));
  await destination.importFiles(path);
  assert.deepEqual(await nodesOf(destination), [
    ["large", "presence", []],
    ["many", "presence", ["i2 2", "i3 3", "i4 4", "i5 5", "i6 6"]],
    ["odd", "presence", []],
  ]);
  assert.deepEqual(
    destination.report(),
    [
      'node "many": item "none" has no payload or no id',
      'node "many": item "" has no payload or no id',
      'node "": its name is empty or too long',
      'node "many": its "subscriptions" are not taken',
      'node "many": its configuration is malformed',
      'node "many": options that are not taken: "pubsub#itemreply"',
      'node "many": 2 items are more than it keeps',
      'node "large": 1 items have more than 1000 bytes',
      'node "odd": affiliation "publisher" of "bob@example.com" is not taken',
    ].map((reason) => `alice@example.com | pep | ${reason}`),
  );
});

Deno.test("takeNodes() leaves what somebody has published here, and completes the rest", async () => {
  await using destination = await Destination.open();
  const options = { max_items: "3" };
  const before = await destination.write(document(user(
    "alice",
    node("avatar", { options: {}, items: { new: "new" } }) +
      node("notes", { options, items: { "1": "one" } }),
  )));
  await destination.importFiles(before);
  const path = await destination.write(document(user(
    "alice",
    node("avatar", { options: {}, items: { old: "old" } }) +
      node("notes", { options, items: { "1": "one", "2": "two" } }),
  )));
  for (let times = 0; times < 2; times++) {
    assert.deepEqual(await destination.importFiles(path), { ...NOTHING, there: 1, findings: 1 });
    assert.deepEqual(await nodesOf(destination), [
      ["avatar", "presence", ["new new"]],
      ["notes", "presence", ["1 one", "2 two"]],
    ]);
    assert.deepEqual(destination.report(), [
      'alice@example.com | pep | node "avatar": it is there already, with other items',
    ]);
  }
});

Deno.test("takeNodes() keeps within the room of an account, and a host without nodes has none", async () => {
  await using destination = await Destination.open();
  const nodes = Array.from({ length: 11 }, (_, i) => node(`n${i}`, { options: {} })).join("");
  const path = await destination.write(document(user("alice", nodes)));
  await destination.importFiles(path);
  assert.equal((await nodesOf(destination)).length, 10);
  assert.deepEqual(destination.report(), [
    'alice@example.com | pep | node "n10": the account has no room for all of it',
  ]);
  const without = await destination.write(document(user("bob", nodes)));
  const { taking } = destination;
  const source = await PieFiles.open([without]);
  await destination.import(source, { ...taking, pepLimitsOf: () => undefined });
  assert.deepEqual(await nodesOf(destination, "bob"), []);
  assert.deepEqual(destination.report(), [
    "bob@example.com | pep | 11 nodes: the host has none (mod_pubsub)",
  ]);
});
