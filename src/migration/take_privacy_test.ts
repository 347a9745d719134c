import assert from "node:assert/strict";
import type { PrivacyStore } from "../storage/mod.ts";
import { PieFiles } from "./pie_files.ts";
import { Destination, document, HOST, storesWith, user } from "./testing/destination.ts";

const BLOCK = "<item type='jid' value='spam@example.net' action='deny' order='1'/>";
const RULE = "<item type='subscription' value='both' action='allow' order='2'/>";
const REST = "<item action='deny' order='3'><message/></item>";

/** Returns the privacy lists of an account as a document has them. */
function lists(defaultName: string, named: Readonly<Record<string, string>>): string {
  const each = Object.entries(named).map(([name, items]) => `<list name='${name}'>${items}</list>`);
  return `<query xmlns='jabber:iq:privacy'><active name='x'/><default name='${defaultName}'/>` +
    `${each.join("")}</query>`;
}

async function take(destination: Destination, query: string, taking = destination.taking) {
  const path = await destination.write(document(user("alice", query)));
  await destination.import(await PieFiles.open([path]), taking);
  const stored = await destination.store.privacyLists(HOST).read("alice");
  const texts = stored.lists.map(({ name, xml }) =>
    `${name}: ${xml.replace(/<\/?list[^>]*>/g, "")}`
  );
  return [`default ${stored.defaultName}`, ...texts.toSorted()];
}

Deno.test("takePrivacy() takes the lists, and which of them is the default", async () => {
  await using destination = await Destination.open();
  const query = lists("main", { main: BLOCK + REST, other: RULE });
  const expected = ["default main", `main: ${BLOCK}${REST}`, `other: ${RULE}`];
  assert.deepEqual(await take(destination, query), expected);
  assert.deepEqual(destination.report(), []);
  const { version } = await destination.store.privacyLists(HOST).read("alice");
  assert.deepEqual(await take(destination, query), expected);
  assert.deepEqual(destination.report(), []);
  const again = await destination.store.privacyLists(HOST).read("alice");
  assert.equal(again.version, version, "nothing is written twice");
});

Deno.test("takePrivacy() leaves the lists that are here, and says so", async () => {
  await using destination = await Destination.open();
  await take(destination, lists("main", { main: BLOCK }));
  const found = await take(destination, lists("other", { main: RULE, other: RULE }));
  assert.deepEqual(found, ["default main", `main: ${BLOCK}`, `other: ${RULE}`]);
  assert.deepEqual(destination.report().slice(0, 2), [
    'alice@example.com | privacy | list "other": it is not the default, as another list is already',
    'alice@example.com | privacy | list "main": there is another one already',
  ]);
});

Deno.test("takePrivacy() does not bring a default back that its owner no longer wants", async () => {
  await using destination = await Destination.open();
  const query = lists("main", { main: BLOCK });
  await take(destination, query);
  const store = destination.store.privacyLists(HOST);
  const { version } = await store.read("alice");
  await store.write("alice", { expected: version, defaultName: undefined });
  assert.deepEqual(await take(destination, query), ["default undefined", `main: ${BLOCK}`]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "main": it is here, and is not the default',
  ]);
});

Deno.test("takePrivacy() takes the rules that a list may have, and names the others", async () => {
  await using destination = await Destination.open();
  const query = lists("gone", {
    main: BLOCK + "<item type='jid' value='a@b@c' action='deny' order='2'/>" +
      "<item action='deny' order='-1'/>" +
      `<item type='group' value='${"g".repeat(1_100)}' action='deny' order='3'/>` +
      "<item action='block' order='4'/><item action='deny' order='5'><stanza/></item>",
    ["n".repeat(1_100)]: RULE,
  });
  assert.deepEqual(await take(destination, query), ["default undefined", `main: ${BLOCK}`]);
  assert.deepEqual(destination.report(), [
    ...[
      'list "main": rule "2" about "a@b@c" is malformed',
      'list "main": rule "-1" about "everybody" is malformed',
      `list "main": rule "3" about "${"g".repeat(100)}…" is malformed`,
      'list "main": rule "4" about "everybody" is malformed',
      'list "main": rule "5" about "everybody" is malformed',
      `list "${"n".repeat(100)}…": its name is empty or too long`,
      'the default list "gone" is missing',
    ].map((reason) => `alice@example.com | privacy | ${reason}`),
  ]);
});

Deno.test("takePrivacy() keeps the rules of a list that have one order, as ejabberd writes them", async () => {
  await using destination = await Destination.open();
  const block = (name: string, order: number) =>
    `<item type='jid' value='${name}@example.net' action='deny' order='${order}'/>`;
  const items = ["one", "two", "three"].map((name) => block(name, 0)).join("");
  const query = lists("main", { main: `<item action='allow' order='7'/>${items}` });
  assert.deepEqual(await take(destination, query), [
    "default main",
    `main: ${block("one", 1)}${block("two", 2)}${
      block("three", 3)
    }<item action='allow' order='4'/>`,
  ]);
  assert.deepEqual(destination.report(), []);
});

Deno.test("takePrivacy() takes the words for no default", async () => {
  await using destination = await Destination.open();
  const query = lists("main", { main: REST }).replace("<default name='main'/>", "<default/>");
  assert.deepEqual(await take(destination, query), ["default undefined", `main: ${REST}`]);
  assert.deepEqual(destination.report(), []);
});

Deno.test("takePrivacy() takes no more than an account may have", async () => {
  await using destination = await Destination.open();
  const { taking } = destination;
  const narrow = (bounds: { maxLists: number; maxItems: number; maxBytes: number }) => ({
    ...taking,
    privacyOptionsOf: () => ({ bounds, hasLists: true }),
  });
  const query = lists("main", { other: RULE, main: BLOCK, wide: BLOCK + RULE });
  const found = await take(
    destination,
    query,
    narrow({ maxLists: 2, maxItems: 1, maxBytes: 10_000 }),
  );
  assert.deepEqual(found, ["default main", `main: ${BLOCK}`, `other: ${RULE}`]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "wide": the account has no room for it: raise max_lists, ' +
    "max_items or max_bytes of mod_privacy, and repeat the import",
  ]);
});

Deno.test("takePrivacy() unblocks nobody for want of room", async () => {
  await using destination = await Destination.open();
  const bounds = { maxLists: 5, maxItems: 1, maxBytes: 10 };
  const taking = { ...destination.taking, privacyOptionsOf: () => ({ bounds, hasLists: true }) };
  const query = lists("main", { main: BLOCK + RULE });
  assert.deepEqual(await take(destination, query, taking), [
    "default main",
    `main: ${BLOCK}${RULE}`,
  ]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "main": it is larger than its owner may make it',
  ]);
});

Deno.test("takePrivacy() takes a block list where people have nothing else", async () => {
  await using destination = await Destination.open();
  const bounds = { maxLists: 5, maxItems: 10, maxBytes: 10_000 };
  const taking = { ...destination.taking, privacyOptionsOf: () => ({ bounds, hasLists: false }) };
  const kinds = "<message/><iq/><presence-in/><presence-out/>";
  const whole = BLOCK.replace("/>", `>${kinds}</item>`);
  const query = lists("main", { main: whole + REST, other: BLOCK });
  assert.deepEqual(await take(destination, query, taking), ["default main", `main: ${BLOCK}`]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "main": rules that are not taken, as mod_privacy is off: 1',
    'alice@example.com | privacy | list "other": rules that are not taken, as mod_privacy is off: 1',
  ]);
  const second = lists("b", { b: BLOCK.replace("spam", "ham") });
  assert.deepEqual(await take(destination, second, taking), ["default main", `main: ${BLOCK}`]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "b": there is another block list already',
  ]);
});

Deno.test("takePrivacy() takes nothing where a host has no lists", async () => {
  await using destination = await Destination.open();
  const taking = { ...destination.taking, privacyOptionsOf: () => undefined };
  const query = lists("main", { main: BLOCK });
  assert.deepEqual(await take(destination, query, taking), ["default undefined"]);
  assert.deepEqual(destination.report(), [
    "alice@example.com | privacy | 1 lists: the host has none (mod_privacy), and no block list " +
    "(mod_blocking)",
  ]);
});

Deno.test("takePrivacy() loses no list that its owner makes meanwhile", async () => {
  await using destination = await Destination.open();
  const { store, taking } = destination;
  const real = store.privacyLists(HOST);
  const own = { name: "own", xml: `<list xmlns='jabber:iq:privacy' name='own'>${RULE}</list>` };
  let hasWritten = false;
  const privacyLists: PrivacyStore = {
    read: (name) => real.read(name),
    removeAll: (name) => real.removeAll(name),
    versions: (names) => real.versions(names),
    async write(name, change) {
      if (!hasWritten) {
        const { version } = await real.read(name);
        await real.write(name, { expected: version, defaultName: "own", list: own });
      }
      hasWritten = true;
      return await real.write(name, change);
    },
  };
  const stores = storesWith(store, { privacyLists });
  const found = await take(destination, lists("main", { main: BLOCK }), { ...taking, stores });
  assert.deepEqual(found, ["default own", `main: ${BLOCK}`, `own: ${RULE}`]);
  assert.deepEqual(destination.report(), [
    'alice@example.com | privacy | list "main": it is not the default, as another list is already',
  ]);
});
