import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
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
  retraction,
  TUNE,
} from "./testing/pep_scene.ts";

Deno.test("pepRequests() leaves the next owner of a name no node of an account that is deleted meanwhile", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const meanwhile = async (change: () => Promise<string>) => {
    const looks = [true, false];
    pep.isCurrent = () => Promise.resolve(looks.shift() ?? true);
    match(await change(), /<registration-required /);
  };
  await meanwhile(() => pep.publish(ALICE, TUNE, item("one"), { "pubsub#access_model": "open" }));
  await meanwhile(() => pep.ask(ALICE, "set", pubsub("<create node='urn:new'/>")));
  deepStrictEqual(await pep.store.pep("example.com").nodes("alice"), []);
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("pepRequests() changes no node of the next owner of a name", async () => {
  await using pep = await PepFixture.open();
  const options = { "pubsub#max_items": "3" };
  await pep.publish(ALICE, TUNE, item("one"), options);
  const nodes = () => pep.store.pep("example.com").nodes("alice");
  const before = await nodes();
  const meanwhile = async (change: () => Promise<string>) => {
    const looks = [true, false];
    pep.isCurrent = () => Promise.resolve(looks.shift() ?? true);
    match(await change(), /<registration-required /);
    deepStrictEqual(await nodes(), before);
  };
  await meanwhile(() => pep.publish(ALICE, TUNE, item("two")));
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["one"]);
  const open = submitted(CONFIG, { "pubsub#access_model": "open" });
  const configure = pubsub(`<configure node='${TUNE}'>${open}</configure>`, OWNER);
  await meanwhile(() => pep.ask(ALICE, "set", configure));
  await meanwhile(() => pep.ask(ALICE, "set", affiliations({ "bob@example.com": "member" })));
  await meanwhile(() => pep.ask(ALICE, "set", retraction("one")));
  for (const action of ["purge", "delete"]) {
    await meanwhile(() => pep.ask(ALICE, "set", pubsub(`<${action} node='${TUNE}'/>`, OWNER)));
  }
  deepStrictEqual(idsIn(await pep.items(ALICE, TUNE)), ["one"]);
});

Deno.test("pepRequests() changes no node that the next owner of a name has made in between", async () => {
  await using pep = await PepFixture.open();
  const store = pep.store.pep("example.com");
  const open = submitted(CONFIG, { "pubsub#access_model": "open" });
  for (
    const late of [
      `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='${TUNE}'>${item("late")}` +
      "</publish></pubsub>",
      retraction("current"),
      pubsub(`<purge node='${TUNE}'/>`, OWNER),
      pubsub(`<delete node='${TUNE}'/>`, OWNER),
      pubsub(`<configure node='${TUNE}'>${open}</configure>`, OWNER),
      affiliations({ "bob@example.com": "member" }),
    ]
  ) {
    await pep.publish(ALICE, TUNE, item("current", "old"));
    const former = await store.node("alice", TUNE);
    // The account was there when it was looked up. Then the write has to wait.
    const looks = [true, true];
    pep.writing = async () => {
      pep.writing = undefined;
      await store.removeAll("alice");
      await store.publish("alice", {
        node: TUNE,
        expected: undefined,
        config: former!.config.replace(/[0-9a-f]{16}/, "0123456789abcdef"),
        item: { id: "current", xml: "<new/>" },
        maxItems: 1,
      }, { maxNodes: 20, maxBytes: 1_000 });
    };
    pep.isCurrent = () => Promise.resolve(looks.shift() ?? false);
    match(await pep.ask(ALICE, "set", late), /<registration-required /, late);
    pep.isCurrent = () => Promise.resolve(true);
    deepStrictEqual(await store.newest("alice", TUNE, 10), [{ id: "current", xml: "<new/>" }]);
    strictEqual((await store.node("alice", TUNE))!.config.includes("0123456789abcdef"), true, late);
    await store.removeAll("alice");
  }
});

Deno.test("pepRequests() makes nodes that differ from those of the name's next owner", async () => {
  await using pep = await PepFixture.open();
  const store = pep.store.pep("example.com");
  const configs = new Set<string>();
  for (let count = 0; count < 2; count++) {
    await pep.publish(ALICE, TUNE, item("one"));
    await pep.ask(ALICE, "set", pubsub("<create node='urn:made'/>"));
    for (const { config } of await store.nodes("alice")) configs.add(config);
    await store.removeAll("alice");
  }
  strictEqual(configs.size, 4);
});
