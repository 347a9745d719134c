import { deepStrictEqual, doesNotMatch, match, ok, strictEqual } from "node:assert/strict";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import { PepFixture, submitted } from "./testing/pep_fixture.ts";
import {
  affiliations,
  ALICE,
  BOB,
  CONFIG,
  idsIn,
  item,
  OWNER,
  pubsub,
  STRANGER,
  TUNE,
} from "./testing/pep_scene.ts";

Deno.test("pepRequests() publishes into a node that is made, and gives the items back", async () => {
  await using pep = await PepFixture.open();
  match(
    await pep.publish(ALICE, TUNE, item("one", "Ä &lt;😀&gt;")),
    /type='result'.*<publish node='[^']+'><item id='one'\/>/,
  );
  match(
    await pep.items(ALICE, TUNE),
    /<items node='[^']+'><item id='one'><tune xmlns='[^']+'>Ä &lt;😀&gt;<\/tune><\/item><\/items>/,
  );
  await pep.publish(ALICE, TUNE, item("two"));
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["two"], "one item by default");
  match(await pep.publish(ALICE, TUNE, `<item><tune xmlns='${TUNE}'/></item>`), /<item id='\w+'/);
  match(await pep.items(ALICE, "urn:none"), /<item-not-found /);
});

Deno.test("pepRequests() keeps the items that publish-options say, and gives some of them", async () => {
  await using pep = await PepFixture.open({ maxItemsPerNode: 3 });
  const options = { "pubsub#persist_items": "true", "pubsub#max_items": "max" };
  for (const id of ["a", "b", "c", "d"]) {
    match(await pep.publish(ALICE, TUNE, item(id), options), /type='result'/);
  }
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["b", "c", "d"]);
  const some = pubsub(`<items node='${TUNE}' max_items='2'/>`);
  deepStrictEqual(idsIn(await pep.ask(ALICE, "get", some)), ["c", "d"]);
  const named = await pep.items(ALICE, TUNE, undefined, "<item id='b'/><item id='a'/>");
  deepStrictEqual(idsIn(named), ["b"]);
  for (const wrong of ["0", "-1", "x", "1.5"]) {
    const request = pubsub(`<items node='${TUNE}' max_items='${wrong}'/>`);
    match(await pep.ask(ALICE, "get", request), /<bad-request /);
  }
});

Deno.test("pepRequests() gives no more items over a link than a stanza has room for, byte by byte", async () => {
  await using pep = await PepFixture.open({ maxItemsPerNode: 200 });
  const options = { "pubsub#access_model": "open", "pubsub#max_items": "max" };
  const asked = async (node: string) => {
    const answer = await pep.items("dave@dc2.example.com/desk", node, "alice@example.com");
    match(answer, /<count>\d+<\/count>/, "there are more");
    return new TextEncoder().encode(answer).length;
  };
  for (let index = 0; index < 30; index++) {
    await pep.publish(ALICE, TUNE, item(`${index}`, "字".repeat(3000)), options);
  }
  ok(await asked(TUNE) < 140_000);
  for (let index = 100; index < 140; index++) {
    await pep.publish(ALICE, "ids", item("&apos;".repeat(1000) + index, "x"), options);
  }
  ok(await asked("ids") < 140_000);
});

Deno.test("pepRequests() refuses a publication whose preconditions the node does not meet", async () => {
  await using pep = await PepFixture.open();
  const open = { "pubsub#access_model": "open" };
  match(await pep.publish(ALICE, TUNE, item("one"), open), /type='result'/);
  match(await pep.publish(ALICE, TUNE, item("two"), open), /type='result'/);
  const closed = { "pubsub#access_model": "whitelist" };
  match(
    await pep.publish(ALICE, TUNE, item("three"), closed),
    /<conflict .*<precondition-not-met xmlns='http:\/\/jabber\.org\/protocol\/pubsub#errors'\/>/,
  );
  for (const [name, value] of [["pubsub#access_model", "authorize"], ["pubsub#other", "1"]]) {
    match(
      await pep.publish(ALICE, TUNE, item("four"), { [name!]: value! }),
      /<precondition-not-met /,
    );
    match(
      await pep.publish(ALICE, "urn:new", item("four"), { [name!]: value! }),
      /<not-acceptable /,
    );
  }
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["two"]);
  match(await pep.items(ALICE, "urn:new"), /<item-not-found /, "it was not made");
});

Deno.test("pepRequests() refuses malformed publications, and others than the owner's", async () => {
  await using pep = await PepFixture.open();
  for (
    const [content, expected] of [
      [`<publish node='${TUNE}'/>`, "item-required"],
      [`<publish>${item("a")}</publish>`, "nodeid-required"],
      [`<publish node='${"n".repeat(1024)}'>${item("a")}</publish>`, "nodeid-required"],
      [`<publish node='${TUNE}'><item id='a'/></publish>`, "payload-required"],
      [`<publish node='${TUNE}'><item id='a'><x/><y/></item></publish>`, "invalid-payload"],
      [`<publish node='${TUNE}'>${item("a")}${item("b")}</publish>`, "max-items-exceeded"],
      [`<publish node='${TUNE}'>${item("i".repeat(1024), "a")}</publish>`, "bad-request"],
      [`<retract node='${TUNE}'/>`, "item-required"],
      [`<retract node='${TUNE}'><item id='a'/></retract>`, "item-not-found"],
      [`<subscribe node='${TUNE}' jid='alice@example.com'/>`, "feature-not-implemented"],
      ["", "bad-request"],
    ] as const
  ) match(await pep.ask(ALICE, "set", pubsub(content)), new RegExp(`<${expected} `), content);
  await pep.subscribe("alice@example.com", "bob@example.com");
  const foreign = pubsub(`<publish node='${TUNE}'>${item("a")}</publish>`);
  strictEqual(await pep.ask(BOB, "set", foreign, "alice@example.com"), "service-unavailable");
  match(await pep.items(ALICE, TUNE), /<item-not-found /);
});

Deno.test("pepRequests() names the feature that a request would need", async () => {
  await using pep = await PepFixture.open();
  const of = (content: string) => pubsub(content);
  const ofOwner = (content: string) => pubsub(content, OWNER);
  for (
    const [type, request, feature] of [
      ["set", of(`<subscribe node='${TUNE}' jid='alice@example.com'/>`), "subscribe"],
      ["set", of(`<unsubscribe node='${TUNE}' jid='alice@example.com'/>`), "subscribe"],
      ["get", of("<subscriptions/>"), "retrieve-subscriptions"],
      ["get", of("<affiliations/>"), "retrieve-affiliations"],
      ["get", of(`<options node='${TUNE}'/>`), "subscription-options"],
      ["set", of(`<options node='${TUNE}'/>`), "subscription-options"],
      ["get", of("<default/>"), "retrieve-default-sub"],
      ["get", ofOwner(`<subscriptions node='${TUNE}'/>`), "manage-subscriptions"],
      ["set", ofOwner(`<subscriptions node='${TUNE}'/>`), "manage-subscriptions"],
    ] as const
  ) {
    const answer = await pep.ask(ALICE, type, request);
    match(answer, /<error type='cancel'><feature-not-implemented /);
    const errors = "http://jabber.org/protocol/pubsub#errors";
    match(answer, new RegExp(`<unsupported xmlns='${errors}' feature='${feature}'/>`), request);
  }
  const unknown = await pep.ask(ALICE, "get", of("<unheard-of/>"));
  match(unknown, /<feature-not-implemented /);
  doesNotMatch(unknown, /<unsupported/);
  for (const type of ["get", "set"] as const) {
    for (const empty of [of(""), ofOwner("")]) {
      match(await pep.ask(ALICE, type, empty), /<bad-request /);
    }
  }
});

Deno.test("pepRequests() holds the bounds on nodes, items and bytes", async () => {
  await using pep = await PepFixture.open({ maxNodes: 2, maxItemBytes: 300, maxBytes: 700 });
  const bytesOf = (id: string, bytes: number) => item(id, "x".repeat(bytes - 53));
  match(await pep.publish(ALICE, "a", bytesOf("1", 300)), /type='result'/);
  match(await pep.publish(ALICE, "a", bytesOf("2", 301)), /<payload-too-big /);
  match(await pep.publish(ALICE, "b", bytesOf("1", 300)), /type='result'/);
  match(await pep.publish(ALICE, "c", item("1")), /<resource-constraint /);
  const many = { "pubsub#max_items": "5" };
  const configure = `<configure node='b'>${submitted(CONFIG, many)}</configure>`;
  match(await pep.ask(ALICE, "set", pubsub(configure, OWNER)), /type='result'/);
  match(await pep.publish(ALICE, "b", bytesOf("2", 200)), /<resource-constraint /);
  deepStrictEqual(idsIn(await pep.items(ALICE, "b")), ["1"]);
  match(await pep.publish(ALICE, "a", bytesOf("2", 90)), /type='result'/, "it frees room");
  match(await pep.publish(ALICE, "b", bytesOf("2", 200)), /type='result'/);
});

Deno.test("pepRequests() refuses large items that no node would store, and large configurations", async () => {
  await using pep = await PepFixture.open();
  const transient = { "pubsub#persist_items": "0" };
  const bytesOf = (bytes: number) => item("1", "x".repeat(bytes - 53));
  match(await pep.publish(ALICE, "a", bytesOf(16_385), transient), /<payload-too-big /);
  match(await pep.publish(ALICE, "a", bytesOf(16_384), transient), /type='result'/);
  const silent = { ...transient, "pubsub#deliver_payloads": "0" };
  match(await pep.publish(ALICE, "b", bytesOf(16_385), silent), /type='result'/);
  match(await pep.publish(ALICE, "c", bytesOf(16_385)), /type='result'/);
  const configured = (count: number) => {
    const groups = Array.from(
      { length: count },
      (_, index) => `<value>${index}${"\u{1f98a}".repeat(249)}</value>`,
    );
    const form = `<x xmlns='jabber:x:data' type='submit'>` +
      `<field var='pubsub#roster_groups_allowed'>${groups.join("")}</field></x>`;
    return pep.ask(ALICE, "set", pubsub(`<configure node='c'>${form}</configure>`, OWNER));
  };
  match(await configured(16), /type='result'/);
  match(await configured(17), /<not-acceptable /);
});

Deno.test("pepRequests() tells strangers nothing of what accounts and nodes there are", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"));
  await pep.publish(ALICE, "urn:open", item("one"), { "pubsub#access_model": "open" });
  const info = (node = "") => `<query xmlns='http://jabber.org/protocol/disco#info'${node}/>`;
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  for (
    const request of [
      pubsub(`<items node='${TUNE}'/>`),
      pubsub("<items node='urn:none'/>"),
      info(),
      info(` node='${TUNE}'`),
    ]
  ) {
    const ask = async (name: string) =>
      (await pep.ask(STRANGER, "get", request, `${name}@example.com`)).replaceAll(name, "NAME");
    strictEqual(await ask("alice"), await ask("nobody"), request);
    match(await ask("alice"), /<item-not-found |<service-unavailable /);
  }
  const seen = await pep.ask(STRANGER, "get", items, "alice@example.com");
  deepStrictEqual(seen.match(/node='[^']+'/g), ["node='urn:open'"]);
  doesNotMatch(await pep.ask(STRANGER, "get", items, "nobody@example.com"), /<item /);
});

Deno.test("pepRequests() answers service discovery for each node that an owner finds, and for no other", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"));
  const items = (node: string) => `<query xmlns='http://jabber.org/protocol/disco#items'${node}/>`;
  const found = /<item [^>]*node='([^']+)'/.exec(await pep.ask(ALICE, "get", items("")))![1]!;
  const empty = new RegExp(`type='result'.*<query [^>]*node='${found}'/>`);
  match(await pep.ask(ALICE, "get", items(` node='${found}'`)), empty);
  match(await pep.ask(ALICE, "get", items(" node='urn:none'")), /<item-not-found /);
  match(await pep.ask(ALICE, "get", items(` node='${"x".repeat(1024)}'`)), /<item-not-found /);
});

Deno.test("pepRequests() asks the database as often for accounts that do not exist", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const metrics = new MetricsRegistry(pep.clock);
  pep.store.observe("internal", { metrics, logger: SILENT_LOGGER });
  const statements = async () =>
    Number(/statement_time_seconds_count\{[^}]*\} (\d+)/.exec(await metrics.prometheus())?.[1]);
  const disco = (what: string) => `<query xmlns='http://jabber.org/protocol/disco#${what}'/>`;
  const vcard = "<vCard xmlns='vcard-temp'/>";
  for (const request of [pubsub(`<items node='${TUNE}'/>`), disco("info"), disco("items"), vcard]) {
    const counts = [];
    for (const name of ["alice", "nobody"]) {
      const before = await statements();
      await pep.ask(STRANGER, "get", request, `${name}@example.com`);
      counts.push(await statements() - before);
    }
    strictEqual(counts[0], counts[1], request);
  }
});

Deno.test("pepRequests() lists no more nodes over a link than its frames hold", async () => {
  await using pep = await PepFixture.open({ maxNodes: 40 });
  const open = { "pubsub#access_model": "open" };
  for (let i = 10; i < 50; i++) {
    await pep.publish(ALICE, `${i}${"&quot;".repeat(1_000)}`, item("one"), open);
  }
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  const own = await pep.ask(ALICE, "get", items);
  strictEqual(own.match(/<item /g)?.length, 40);
  const distant = await pep.ask("dave@example.org/x", "get", items, "alice@example.com");
  ok(distant.length < 140_000 && distant.includes("<item "));
  match(distant, /<set xmlns='[^']+rsm'><count>40<\/count><\/set>/);
});

Deno.test("pepRequests() is discovered by owners and contacts", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, TUNE, item("one"));
  await pep.publish(ALICE, "urn:own", item("one"), { "pubsub#access_model": "whitelist" });
  const info = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  for (const [asker, nodes] of [[ALICE, [TUNE, "urn:own"]], [BOB, [TUNE]]] as const) {
    const answer = await pep.ask(asker, "get", info, "alice@example.com");
    match(answer, /<identity category='account' type='registered'\/>/);
    match(answer, /<identity category='pubsub' type='pep'\/>/);
    match(answer, /<feature var='http:\/\/jabber\.org\/protocol\/pubsub#publish-options'\/>/);
    match(answer, /<feature var='urn:xmpp:pep-vcard-conversion:0'\/>/);
    const found = await pep.ask(asker, "get", items, "alice@example.com");
    deepStrictEqual(
      [...found.matchAll(/<item jid='alice@example\.com' node='([^']+)'/g)].map(([, each]) => each),
      nodes,
    );
    const leaf = info.replace("/>", ` node='${TUNE}'/>`);
    match(
      await pep.ask(asker, "get", leaf, "alice@example.com"),
      /node='[^']+'><identity category='pubsub' type='leaf'\/>/,
    );
  }
  match(
    await pep.ask(BOB, "get", info.replace("/>", " node='urn:own'/>"), "alice@example.com"),
    /<service-unavailable /,
  );
});

Deno.test("pepRequests() takes every name for a node, an item and an option", async () => {
  await using pep = await PepFixture.open();
  for (const name of ["constructor", "toString", "__proto__", "\u{1f98a}&lt;&apos;&quot;"]) {
    match(await pep.publish(ALICE, name, item(name)), /type='result'/, name);
    match(await pep.items(ALICE, name), new RegExp(`<item id='${name}'>`));
    const create = `<create node='${name}-made'/>`;
    match(await pep.ask(ALICE, "set", pubsub(create)), /type='result'/);
    match(await pep.publish(ALICE, "other", item("one"), { [name]: "1" }), /<not-acceptable /);
  }
});

Deno.test("pepRequests() makes, configures, purges and removes nodes for their owner", async () => {
  await using pep = await PepFixture.open();
  const own = (type: "get" | "set", content: string) =>
    pep.ask(ALICE, type, pubsub(content, OWNER));
  const values = { "pubsub#max_items": "3", "pubsub#title": "Tunes" };
  const configured = `<configure>${submitted(CONFIG, values)}</configure>`;
  const instant = pubsub("<create/>");
  match(await pep.ask(ALICE, "set", instant), /<create node='[^']+'\/>/);
  const info = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
  match(await pep.ask(ALICE, "get", info, "alice@example.com"), /pubsub#instant-nodes'/);
  const create = pubsub(`<create node='${TUNE}'/>${configured}`);
  match(await pep.ask(ALICE, "set", create), /<create node='[^']+'\/>/);
  match(await pep.ask(ALICE, "set", create), /<conflict /);
  for (const id of ["a", "b", "c"]) await pep.publish(ALICE, TUNE, item(id));
  const form = await own("get", `<configure node='${TUNE}'/>`);
  match(form, /<field var='pubsub#max_items' type='text-single'><value>3<\/value>/);
  match(form, /<field var='pubsub#title' type='text-single'><value>Tunes<\/value>/);
  match(form, /<field var='pubsub#access_model' type='list-single'><value>presence<\/value>/);
  const change = (fields: Readonly<Record<string, string>>, node = TUNE) =>
    own("set", `<configure node='${node}'>${submitted(CONFIG, fields)}</configure>`);
  match(await change({ "pubsub#max_items": "2", "pubsub#access_model": "open" }), /type='result'/);
  deepStrictEqual(idsIn(await pep.items(STRANGER, TUNE, "alice@example.com")), ["b", "c"]);
  match(await change({ "pubsub#access_model": "authorize" }), /<not-acceptable /);
  match(await change({ "pubsub#max_items": "1" }, "urn:none"), /<item-not-found /);
  match(await own("set", `<purge node='${TUNE}'/>`), /type='result'/);
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), []);
  match(await own("set", `<delete node='${TUNE}'/>`), /type='result'/);
  match(await own("set", `<delete node='${TUNE}'/>`), /<item-not-found /);
  match(await pep.items(ALICE, TUNE), /<item-not-found /);
  match(await own("get", "<default/>"), /<default><x /);
});

Deno.test("pepRequests() removes the items of a node that is to keep none any more", async () => {
  await using pep = await PepFixture.open();
  const interested = [`${TUNE}+notify`];
  await pep.online(ALICE, interested);
  await pep.publish(ALICE, TUNE, item("one"));
  const values = submitted(CONFIG, { "pubsub#persist_items": "false" });
  const configure = pubsub(`<configure node='${TUNE}'>${values}</configure>`, OWNER);
  match(await pep.ask(ALICE, "set", configure), /type='result'/);
  await pep.publish(ALICE, TUNE, item("two"));
  match((await pep.received(ALICE)).at(-1)!, /<item id='two'/);
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), []);
  const later = "alice@example.com/later";
  await pep.online(later, interested);
  deepStrictEqual(await pep.received(later), [], "one is not the last item any more");
});

Deno.test("pepRequests() gives bookmarks to their owner alone, all of them (XEP-0402)", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const bookmarks = "urn:xmpp:bookmarks:1";
  const options = {
    "pubsub#persist_items": "true",
    "pubsub#max_items": "max",
    "pubsub#send_last_published_item": "never",
    "pubsub#access_model": "whitelist",
  };
  for (const room of ["tea@rooms", "cake@rooms"]) {
    const item = `<item id='${room}'><conference xmlns='${bookmarks}'/></item>`;
    match(await pep.publish(ALICE, bookmarks, item), /type='result'/, "with nothing said");
    match(await pep.publish(ALICE, bookmarks, item, options), /type='result'/);
  }
  deepStrictEqual(idsIn(await pep.items(ALICE, bookmarks)), ["tea@rooms", "cake@rooms"]);
  match(await pep.items(BOB, bookmarks, "alice@example.com"), /<item-not-found /);
});

Deno.test("pepRequests() refuses affiliations that there are not, and too many of them", async () => {
  await using pep = await PepFixture.open();
  match(await pep.ask(ALICE, "set", affiliations({})), /<item-not-found /);
  await pep.publish(ALICE, TUNE, item("one"));
  for (
    const wrong of [
      { "bob@example.com": "owner" },
      { "bob@example.com": "publisher" },
      { "bob@example.com/phone": "member" },
      { "a@b@c": "member" },
      { "alice@example.com": "none" },
    ]
  ) match(await pep.ask(ALICE, "set", affiliations(wrong)), /<not-acceptable /);
  const many = (from: number, count: number) =>
    affiliations(Object.fromEntries(
      Array.from(
        { length: count },
        (_, i) => [`${"x".repeat(50)}${from + i}@example.com`, "member"],
      ),
    ));
  match(await pep.ask(ALICE, "set", many(0, 101)), /<not-acceptable /);
  let count = 0;
  while (/type='result'/.test(await pep.ask(ALICE, "set", many(50 * count, 50)))) count++;
  match(await pep.ask(ALICE, "set", many(10_000, 50)), /<resource-constraint /);
  deepStrictEqual([count > 1, count < 10], [true, true]);
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["one"], "the node is as it was");
  await pep.subscribe("alice@example.com", "bob@example.com");
  const foreign = affiliations({ "bob@example.com": "member" });
  strictEqual(await pep.ask(BOB, "set", foreign, "alice@example.com"), "service-unavailable");
});

Deno.test("pepRequests() refuses the access model authorize by its name", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"));
  const form = submitted(CONFIG, { "pubsub#access_model": "authorize" });
  const configure = pubsub(`<configure node='${TUNE}'>${form}</configure>`, OWNER);
  const create = pubsub(`<create node='urn:new'/><configure>${form}</configure>`);
  for (const request of [configure, create]) {
    match(await pep.ask(ALICE, "set", request), /<not-acceptable .*<unsupported-access-model /);
  }
});
