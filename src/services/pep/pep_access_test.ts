import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { element, parseJid } from "../../xmpp/mod.ts";
import { PepFixture } from "./testing/pep_fixture.ts";
import { affiliations, ALICE, BOB, idsIn, item, STRANGER, TUNE } from "./testing/pep_scene.ts";

Deno.test("pepRequests() shows a node to those whom its access model admits, and to nobody else", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  for (
    const [model, bobSees, carolSees] of [
      ["open", true, true],
      ["presence", true, false],
      ["roster", false, false],
      ["whitelist", false, false],
    ] as const
  ) {
    const options = { "pubsub#access_model": model };
    match(await pep.publish(ALICE, `urn:${model}`, item("one"), options), /type='result'/);
    for (const [asker, sees] of [[BOB, bobSees], [STRANGER, carolSees]] as const) {
      const answer = await pep.items(asker, `urn:${model}`, "alice@example.com");
      deepStrictEqual(idsIn(answer), sees ? ["one"] : [], `${model} for ${asker}`);
    }
    deepStrictEqual(idsIn(await pep.items("alice@example.com/other", `urn:${model}`)), ["one"]);
  }
  const groups = { "pubsub#access_model": "roster", "pubsub#roster_groups_allowed": "Friends" };
  await pep.publish(ALICE, "urn:friends", item("one"), groups);
  deepStrictEqual(idsIn(await pep.items(BOB, "urn:friends", "alice@example.com")), ["one"]);
  deepStrictEqual(idsIn(await pep.items(STRANGER, "urn:friends", "alice@example.com")), []);
});

Deno.test("pepRequests() shows no item that is published once its node is hidden", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, TUNE, item("one"));
  const alice = parseJid("alice@example.com");
  const payload = element("tune", { xmlns: TUNE }, "secret");
  for (const isHidden of [false, true]) {
    pep.itemsAsked = async () => {
      pep.itemsAsked = undefined;
      const model = isHidden ? "whitelist" : "open";
      await pep.server.configure(alice, TUNE, new Map([["pubsub#access_model", [model]]]));
      await pep.server.publish(alice, { node: TUNE, id: "one", payload });
    };
    const answer = await pep.items(BOB, TUNE, "alice@example.com", "<item id='one'/>");
    match(answer, isHidden ? /<item-not-found / : />secret</);
  }
});

Deno.test("pepRequests() shows no item that is published once its asker is no contact any more, or blocked", async () => {
  const alice = parseJid("alice@example.com");
  const payload = element("tune", { xmlns: TUNE }, "secret");
  for (const step of ["none", "parted", "blocked"] as const) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    await pep.publish(ALICE, TUNE, item("one"));
    pep.itemsAsked = async () => {
      if (step === "parted") {
        await pep.store.rosters().part("alice@example.com", "bob@example.com");
      }
      if (step === "blocked") pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
      await pep.server.publish(alice, { node: TUNE, id: "one", payload });
    };
    const answer = await pep.items(BOB, TUNE, "alice@example.com", "<item id='one'/>");
    match(answer, step === "none" ? />secret</ : /<item-not-found /, step);
  }
});

Deno.test("pepRequests() answers contacts from whom a privacy list hides the owner as strangers", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, "tune", item("one"));
  const ask = () => pep.items(BOB, "tune", "alice@example.com");
  const info = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
  const discover = (asker: string) => pep.ask(asker, "get", info, "alice@example.com");
  deepStrictEqual(idsIn(await ask()), ["one"]);
  match(await discover(BOB), /type='result'/);
  pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
  const unnamed = (answer: string) => answer.replaceAll(BOB, "X").replaceAll(STRANGER, "X");
  strictEqual(
    unnamed(await ask()),
    unnamed(await pep.items(STRANGER, "tune", "alice@example.com")),
  );
  strictEqual(unnamed(await discover(BOB)), unnamed(await discover(STRANGER)));
});

Deno.test("pepRequests() shows no node at all to those from whom a privacy list hides the owner", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, "urn:open", item("one"), { "pubsub#access_model": "open" });
  const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
  const seenBy = async (asker: string) => [
    ...idsIn(await pep.items(asker, "urn:open", "alice@example.com")),
    ...(await pep.ask(asker, "get", items, "alice@example.com")).match(/node='[^']+'/g) ?? [],
  ];
  for (const asker of [BOB, STRANGER]) {
    const account = asker.split("/")[0]!; // split gives at least one part
    deepStrictEqual(await seenBy(asker), ["one", "node='urn:open'"]);
    pep.hiding.set(account, new Set(["alice@example.com"]));
    deepStrictEqual(await seenBy(asker), []);
    const absent = await pep.items(asker, "urn:open", "nobody@example.com");
    const hidden = await pep.items(asker, "urn:open", "alice@example.com");
    strictEqual(hidden, absent.replaceAll("nobody", "alice"));
  }
});

Deno.test("pepRequests() shows a whitelisted node to its members, and takes it away again", async () => {
  await using pep = await PepFixture.open();
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#access_model": "whitelist" });
  const read = (asker: string) => pep.items(asker, TUNE, "alice@example.com");
  match(await read(BOB), /<item-not-found /);
  const members = { "bob@example.com": "member", "carol@example.com": "member" };
  match(await pep.ask(ALICE, "set", affiliations(members)), /type='result'/);
  for (const asker of [BOB, STRANGER]) deepStrictEqual(idsIn(await read(asker)), ["one"]);
  await pep.publish(ALICE, TUNE, item("two"));
  deepStrictEqual(idsIn(await read(BOB)), ["two"], "a publication keeps them");
  const shown = await pep.ask(ALICE, "get", affiliations({}));
  deepStrictEqual(
    [...shown.matchAll(/jid='([^']+)' affiliation='(\w+)'/g)].map(([, jid, each]) => [
      jid,
      each,
    ]),
    [
      ["alice@example.com", "owner"],
      ["bob@example.com", "member"],
      ["carol@example.com", "member"],
    ],
  );
  const changed = { "bob@example.com": "none", "alice@example.com": "owner" };
  match(await pep.ask(ALICE, "set", affiliations(changed)), /type='result'/);
  match(await read(BOB), /<item-not-found /);
  deepStrictEqual(idsIn(await read(STRANGER)), ["two"]);
});

Deno.test("pepRequests() hides a whitelisted node from the next owner of a member's name", async () => {
  await using pep = await PepFixture.open();
  pep.creations.set("dave@example.com", ""); // as of an account of an early version
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#access_model": "whitelist" });
  const read = (asker: string) => pep.items(asker, TUNE, "alice@example.com");
  const members = { "bob@example.com": "member", "dave@example.com": "member" };
  match(await pep.ask(ALICE, "set", affiliations(members)), /type='result'/);
  for (const name of ["bob", "dave"]) {
    deepStrictEqual(idsIn(await read(`${name}@example.com/x`)), ["one"]);
    pep.creations.set(`${name}@example.com`, "2");
  }
  match(await read(BOB), /<item-not-found /);
  deepStrictEqual(idsIn(await read("dave@example.com/x")), ["one"], "nobody can tell");
  match(await pep.ask(ALICE, "set", affiliations(members)), /type='result'/);
  deepStrictEqual(idsIn(await read(BOB)), ["one"], "named anew");
});

Deno.test("pepRequests() hides a whitelisted node from members whom the owner blocks, contacts or not", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#access_model": "whitelist" });
  const members = { "bob@example.com": "member", "carol@example.com": "member" };
  await pep.ask(ALICE, "set", affiliations(members));
  for (const asker of [BOB, STRANGER]) {
    const read = () => pep.items(asker, TUNE, "alice@example.com");
    deepStrictEqual(idsIn(await read()), ["one"]);
    const account = asker.split("/")[0]!;
    pep.hiding.set(account, new Set(["alice@example.com"]));
    match(await read(), /<item-not-found /, asker);
  }
});

Deno.test("pepRequests() hides a node from outcasts, whatever its access model", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  for (const model of ["open", "presence", "whitelist"]) {
    const node = `urn:${model}`;
    await pep.publish(ALICE, node, item("one"), { "pubsub#access_model": model });
    const outcast = affiliations({ "bob@example.com": "outcast" }, node);
    match(await pep.ask(ALICE, "set", outcast), /type='result'/);
    const answer = await pep.items(BOB, node, "alice@example.com");
    strictEqual(
      answer,
      (await pep.items(BOB, node, "nobody@example.com")).replaceAll("nobody", "alice"),
    );
    deepStrictEqual(idsIn(await pep.items(ALICE, node)), ["one"]);
  }
});
