import { deepStrictEqual, doesNotMatch, match, strictEqual } from "node:assert/strict";
import { CausewayError } from "../../base/mod.ts";
import type { FullJid } from "../../xmpp/mod.ts";
import { element, parseJid, stanzaId } from "../../xmpp/mod.ts";
import { PepFixture, presenceOf, submitted, textOf } from "./testing/pep_fixture.ts";
import { ALICE, BOB, changesIn, item, MOOD, OWNER, TUNE } from "./testing/pep_scene.ts";

Deno.test("PepNotices tells the interested clients of owner and contacts, and no others", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const interested = [`${TUNE}+notify`, "urn:other"];
  await pep.online(ALICE, interested);
  await pep.online("alice@example.com/phone", [`${MOOD}+notify`]);
  await pep.online(BOB, interested);
  await pep.online("bob@example.com/tv", [TUNE]);
  await pep.online("carol@example.com/desk", interested);
  await pep.publish(ALICE, TUNE, item("one", "Ä"));
  for (const jid of [ALICE, BOB]) {
    const [notice, ...more] = await pep.received(jid);
    strictEqual(more.length, 0);
    match(notice!, /^<message type='headline' id='[^']+' from='alice@example\.com'/);
    match(notice!, new RegExp(` to='${jid}'>`));
    match(
      notice!,
      /<event xmlns='[^']+#event'><items node='[^']+\/tune'><item id='one'><tune xmlns='[^']+'>Ä</,
    );
  }
  deepStrictEqual(pep.delivered, []);
  deepStrictEqual(pep.routed, []);
});

Deno.test("PepNotices sends one notification to each session elsewhere, and leaves its filter to it", async () => {
  await using pep = await PepFixture.open();
  for (const contact of ["bob@example.com", "dave@dc2.example.com", "eve@elsewhere.net"]) {
    await pep.subscribe("alice@example.com", contact);
  }
  const place = (resourcepart: string) => ({
    host: "dc2.example.com",
    resourcepart,
    process: 2,
  });
  pep.elsewhere.set("bob@example.com", [place("phone"), place("tv")]);
  pep.elsewhere.set("alice@example.com", [place("laptop")]);
  await pep.publish(ALICE, TUNE, item("one"));
  deepStrictEqual(
    new Set(pep.routed.map(({ to }) => to.text)),
    new Set([
      "alice@example.com/laptop",
      "bob@example.com/phone",
      "bob@example.com/tv",
      "dave@dc2.example.com",
    ]),
  );
});

Deno.test("PepNotices tells only those whom the access model admits", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  await pep.subscribe("alice@example.com", "carol@example.com");
  const clients = [ALICE, BOB, "carol@example.com/desk"];
  for (const jid of clients) await pep.online(jid, ["a+notify", "b+notify", "c+notify"]);
  const nodes = { a: "whitelist", b: "roster", c: "open" };
  for (const [node, model] of Object.entries(nodes)) {
    const groups = model === "roster" ? { "pubsub#roster_groups_allowed": "Friends" } : {};
    await pep.publish(ALICE, node, item(node), { "pubsub#access_model": model, ...groups });
  }
  for (const [index, expected] of [["a", "b", "c"], ["b", "c"], ["c"]].entries()) {
    deepStrictEqual(changesIn(await pep.received(clients[index]!)), expected);
  }
});

Deno.test("PepNotices tells of retracted items, purged and removed nodes", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${TUNE}+notify`]);
  const pubsub = (content: string, owner = "") =>
    pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER.replace("#owner", owner)}'>${content}</pubsub>`);
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#notify_retract": "false" });
  await pubsub(`<retract node='${TUNE}'><item id='one'/></retract>`);
  await pep.publish(ALICE, TUNE, item("two"));
  await pubsub(`<retract node='${TUNE}' notify='true'><item id='two'/></retract>`);
  const values = { "pubsub#notify_retract": "1" };
  const form = submitted("http://jabber.org/protocol/pubsub#node_config", values);
  await pubsub(`<configure node='${TUNE}'>${form}</configure>`, "#owner");
  await pubsub(`<purge node='${TUNE}'/>`, "#owner");
  await pubsub(`<delete node='${TUNE}'/>`, "#owner");
  deepStrictEqual(
    changesIn(await pep.received(ALICE)),
    ["one", "two", "two", "purge", "delete"],
  );
});

Deno.test("PepNotices leaves large payloads behind, and the node of an interested client reads them", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  pep.elsewhere.set("bob@example.com", [{
    host: "dc2.example.com",
    resourcepart: "phone",
    process: 2,
  }]);
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  const [sent] = pep.routed.splice(0);
  match(textOf(sent!), /<item id='one'\/>/);
  strictEqual(sent!.bytes.length < 1000, true);
  // As it arrives at the node of dc2, which shares the store.
  await pep.online(BOB, [`${TUNE}+notify`]);
  await pep.received(BOB);
  strictEqual(pep.server.notified(sent!), "delivered");
  match((await pep.received(BOB))[0]!, /<item id='one'><tune xmlns='[^']+'>x{10000}<\/tune>/);
  await pep.publish(ALICE, TUNE, item("two", "y".repeat(10_000)));
  deepStrictEqual(changesIn(await pep.received(BOB)), ["two"]);
  strictEqual(pep.server.notified(sent!), "delivered", "the item is gone by now");
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices reads a large item once for all sessions that a notification is for", async () => {
  await using pep = await PepFixture.open();
  const clients = Array.from({ length: 10 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of clients) await pep.online(jid, [`${TUNE}+notify`]);
  for (const id of ["one", "two"]) {
    const before = pep.itemReadings;
    await pep.publish(ALICE, TUNE, item(id, id.repeat(3_000)));
    strictEqual(pep.itemReadings - before, 1);
    for (const jid of clients) deepStrictEqual(changesIn(await pep.received(jid)), [id]);
  }
});

Deno.test("PepNotices gives notifications ids that no other process gives", async () => {
  const ids = new Set<string | undefined>();
  for (const process of [1, 2]) {
    await using pep = await PepFixture.open();
    const place = { host: "dc2.example.com", resourcepart: "phone", process };
    pep.elsewhere.set("alice@example.com", [place]);
    for (const id of ["one", "two"]) await pep.publish(ALICE, TUNE, item(id));
    for (const stanza of pep.routed) ids.add(stanzaId(stanza));
  }
  strictEqual(ids.size, 4);
});

Deno.test("PepNotices keeps notifications until a client has said what it is interested in", async () => {
  await using pep = await PepFixture.open();
  const bookmarks = "urn:xmpp:bookmarks:1"; // nobody is sent its last item
  const tell = pep.appear(ALICE);
  await pep.publish(ALICE, bookmarks, item("room"));
  await pep.publish(ALICE, MOOD, item("mood"));
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  await pep.publish(ALICE, TUNE, item("two"));
  deepStrictEqual(await pep.received(ALICE), []);
  tell([`${bookmarks}+notify`, `${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(ALICE)), ["room", "two"], "each once");
});

Deno.test("PepNotices keeps a bounded number of notifications for a client, while it is there", async () => {
  await using pep = await PepFixture.open();
  const options = { "pubsub#send_last_published_item": "never", "pubsub#max_items": "max" };
  const tell = pep.appear(ALICE);
  const ids = Array.from({ length: 25 }, (_, index) => `${index}`);
  for (const id of ids) await pep.publish(ALICE, TUNE, item(id), options);
  tell([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(ALICE)), ids.slice(-20));
  const again = pep.appear(BOB);
  await pep.publish("bob@example.com/tv", TUNE, item("bob"), options);
  pep.presence(BOB, { ...presenceOf(BOB), type: "unavailable" });
  again([`${TUNE}+notify`]);
  pep.appear(BOB)([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
});

Deno.test("PepNotices sends what waits for a client's interests after its session, which moves", async () => {
  await using pep = await PepFixture.open();
  const bookmarks = "urn:xmpp:bookmarks:1"; // nobody is sent its last item
  const tell = pep.appear(ALICE);
  for (const id of ["one", "two"]) await pep.publish(ALICE, bookmarks, item(id));
  pep.leaving.add(ALICE);
  pep.server.closed(parseJid(ALICE) as FullJid);
  deepStrictEqual(changesIn(pep.routed.map(textOf)), ["one", "two"]);
  deepStrictEqual(pep.routed.map(({ to }) => to.text), [ALICE, ALICE]);
  pep.leaving.delete(ALICE);
  tell([`${bookmarks}+notify`]);
  pep.appear(ALICE)([`${bookmarks}+notify`]);
  deepStrictEqual(await pep.received(ALICE), [], "nothing waits here any more");
});

Deno.test("PepNotices sends after a session that moves only what its account may see by then", async () => {
  const never = { "pubsub#send_last_published_item": "never" };
  const steps = { none: ["two"], parted: [], failed: ["one", "two"] };
  for (const [step, expected] of Object.entries(steps)) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    pep.appear(BOB);
    for (const id of ["one", "two"]) await pep.publish(ALICE, TUNE, item(id, "secret"), never);
    if (step === "parted") {
      await pep.store.rosters().part("alice@example.com", "bob@example.com");
    }
    if (step === "failed") {
      pep.itemsAsked = () => {
        throw new CausewayError("storage/unreachable", "Cannot read: away");
      };
    }
    pep.here.delete(BOB);
    pep.server.closed(parseJid(BOB) as FullJid);
    await pep.server.settled();
    const followed = pep.routed.map(textOf);
    deepStrictEqual(changesIn(followed), expected, step);
    strictEqual(followed.some((each) => each.includes("secret")), step === "none", step);
  }
});

Deno.test("PepNotices keeps notifications of everybody while one account has as many as it may", async () => {
  await using pep = await PepFixture.open();
  const text = "x".repeat(4_000);
  // Clients of one account that never say what they are interested in.
  const crowd = Array.from({ length: 80 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of crowd) pep.appear(jid);
  const options = { "pubsub#send_last_published_item": "never", "pubsub#max_items": "max" };
  for (let i = 0; i < 20; i++) await pep.publish(ALICE, TUNE, item(`${i}`, text), options);
  const tell = pep.appear(BOB);
  await pep.publish("bob@example.com/tv", TUNE, item("bob", text), options);
  tell([`${TUNE}+notify`]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["bob"]);
});

Deno.test("PepNotices follows a session that moves while a large item is read for it", async () => {
  for (const hasLeft of [true, false]) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    for (const jid of [BOB, "bob@example.com/tv"]) await pep.online(jid, [`${TUNE}+notify`]);
    pep.itemsAsked = () => void (hasLeft ? pep.here.delete(BOB) : pep.leaving.add(BOB));
    await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
    deepStrictEqual(changesIn(await pep.received("bob@example.com/tv")), ["one"]);
    deepStrictEqual(pep.routed.map(({ to }) => to.text), [BOB]);
    match(textOf(pep.routed[0]!), /<item id='one'\/>/);
  }
});

Deno.test("PepNotices gives nobody a large item of a node that was hidden meanwhile", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com", ["Friends"]);
  pep.elsewhere.set("bob@example.com", [{
    host: "dc2.example.com",
    resourcepart: "phone",
    process: 2,
  }]);
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  const [late] = pep.routed.splice(0);
  await pep.online(BOB, [`${TUNE}+notify`]);
  await pep.received(BOB);
  const models = ["whitelist", "roster", "presence"] as const;
  const received: number[] = [];
  for (const model of models) {
    const form = submitted("http://jabber.org/protocol/pubsub#node_config", {
      "pubsub#access_model": model,
    });
    const configure = `<configure node='${TUNE}'>${form}</configure>`;
    match(await pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${configure}</pubsub>`), /result/);
    strictEqual(pep.server.notified(late!), "delivered");
    received.push((await pep.received(BOB)).length);
  }
  deepStrictEqual(received, [0, 0, 1]);
});

Deno.test("PepNotices asks again who may see what has waited for a client's interests", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  const transient = { "pubsub#persist_items": "0" };
  for (const node of ["urn:hidden", "urn:shown", "urn:emptied"]) {
    await pep.publish(ALICE, node, item(node), { "pubsub#send_last_published_item": "never" });
  }
  await pep.publish(ALICE, "urn:transient", item("one"), transient);
  await pep.publish(ALICE, "urn:transient", item("two"), transient);
  const whitelist = submitted("http://jabber.org/protocol/pubsub#node_config", {
    "pubsub#access_model": "whitelist",
  });
  for (
    const action of [
      `<configure node='urn:hidden'>${whitelist}</configure>`,
      "<purge node='urn:emptied'/>",
    ]
  ) match(await pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${action}</pubsub>`), /result/);
  const nodes = ["urn:hidden", "urn:shown", "urn:emptied", "urn:transient"];
  tell(nodes.map((each) => `${each}+notify`));
  const received = changesIn(await pep.received(BOB));
  deepStrictEqual(received.toSorted(), ["one", "purge", "two", "urn:shown"]);
  strictEqual(received.indexOf("one") < received.indexOf("two"), true, "in their order");
});

Deno.test("PepNotices gives somebody who is no contact any more nothing that has waited", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  await pep.publish(ALICE, TUNE, item("one"));
  await pep.publish(ALICE, MOOD, item("large", "x".repeat(10_000)));
  const rosters = pep.store.rosters();
  const { version: expected } = await rosters.find("alice@example.com", "bob@example.com");
  await rosters.write("alice@example.com", {
    expected,
    contact: "bob@example.com",
    item: undefined,
  });
  tell([`${TUNE}+notify`, `${MOOD}+notify`]);
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices tells of waiting items without their payloads while the database fails", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  const tell = pep.appear(BOB);
  await pep.publish(ALICE, TUNE, item("one"), { "pubsub#send_last_published_item": "never" });
  pep.itemsAsked = () => {
    throw new CausewayError("storage/unreachable", "Cannot read: away");
  };
  tell([`${TUNE}+notify`]);
  match((await pep.received(BOB))[0]!, /<item id='one'\/>/);
});

Deno.test("PepNotices gives nobody a large item that is replaced once its node is hidden", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const alice = parseJid("alice@example.com");
  pep.itemsAsked = async () => {
    pep.itemsAsked = undefined;
    await pep.server.configure(alice, TUNE, new Map([["pubsub#access_model", ["whitelist"]]]));
    const payload = element("tune", { xmlns: TUNE }, "secret");
    await pep.server.publish(alice, { node: TUNE, id: "one", payload });
  };
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
  deepStrictEqual(await pep.received(BOB), []);
});

Deno.test("PepNotices gives nobody a large item that is replaced once they are no contact any more", async () => {
  const alice = parseJid("alice@example.com");
  const payload = element("tune", { xmlns: TUNE }, "secret");
  for (const step of ["parted", "blocked"] as const) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    await pep.online(BOB, [`${TUNE}+notify`]);
    pep.itemsAsked = async () => {
      pep.itemsAsked = undefined;
      if (step === "parted") {
        await pep.store.rosters().part("alice@example.com", "bob@example.com");
      } else pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
      await pep.server.publish(alice, { node: TUNE, id: "one", payload });
    };
    await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)));
    deepStrictEqual(await pep.received(BOB), [], step);
  }
});

Deno.test("PepNotices asks again who may see a small item that has waited for a large one", async () => {
  const alice = parseJid("alice@example.com");
  const small = `<message type='headline' from='alice@example.com' to='${BOB}'>` +
    `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='${TUNE}'>` +
    "<item id='small'><x xmlns='urn:x'/></item></items></event></message>";
  const expected = { stays: ["large", "small"], hides: [], parts: [], blocks: [] };
  for (const [step, received] of Object.entries(expected)) {
    await using pep = await PepFixture.open();
    await pep.subscribe("alice@example.com", "bob@example.com");
    await pep.publish(ALICE, TUNE, item("small"), { "pubsub#max_items": "2" });
    await pep.online(BOB, [`${TUNE}+notify`]);
    await pep.received(BOB);
    pep.itemsAsked = async () => {
      pep.itemsAsked = undefined;
      pep.route({
        kind: "message",
        type: "headline",
        from: alice,
        to: parseJid(BOB),
        bytes: new TextEncoder().encode(small),
      });
      if (step === "hides") {
        await pep.server.configure(alice, TUNE, new Map([["pubsub#access_model", ["whitelist"]]]));
      }
      if (step === "parts") await pep.store.rosters().part("alice@example.com", "bob@example.com");
      if (step === "blocks") pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
    };
    await pep.publish(ALICE, TUNE, item("large", "x".repeat(10_000)));
    deepStrictEqual(changesIn(await pep.received(BOB)), received, step);
  }
});

Deno.test("PepNotices tells of items that have no payload and that no node stores", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const options = { "pubsub#persist_items": "0", "pubsub#deliver_payloads": "0" };
  await pep.publish(ALICE, TUNE, item("one"), options);
  match((await pep.received(BOB))[0]!, /<item id='one'\/>/);
});

Deno.test("PepNotices keeps the payload of items that no node stores", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.online(BOB, [`${TUNE}+notify`]);
  const options = { "pubsub#persist_items": "0" };
  await pep.publish(ALICE, TUNE, item("one", "x".repeat(10_000)), options);
  match((await pep.received(BOB))[0]!, /x{10000}/);
  doesNotMatch(await pep.items(ALICE, TUNE), /<item /);
});

Deno.test("PepNotices.arrived() leaves alone what is no notification of an account", async () => {
  await using pep = await PepFixture.open();
  await pep.online(BOB, []);
  const event = `<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'/></event>`;
  for (
    const [from, content, expected] of [
      ["alice@example.com", event, "ignored"],
      ["alice@example.com/desk", event, undefined],
      ["pubsub.example.com", event, undefined],
      ["node@pubsub.example.com", event, undefined],
      ["alice@example.com", "<body>hello</body>", undefined],
    ] as const
  ) {
    const text = `<message type='headline' from='${from}' to='${BOB}'>${content}</message>`;
    const outcome = pep.server.notified({
      kind: "message",
      type: "headline",
      from: parseJid(from),
      to: parseJid(BOB),
      bytes: new TextEncoder().encode(text),
    });
    strictEqual(outcome, expected, `${from} ${content}`);
  }
});

Deno.test("contacts from whom a privacy list hides the owner get no notifications and no last items", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await pep.subscribe("carol@example.com", "bob@example.com");
  pep.hiding.set("bob@example.com", new Set(["alice@example.com"]));
  await pep.publish("alice@example.com/x", "tune", item("before"));
  await pep.publish("carol@example.com/x", "tune", item("carol"));
  await pep.online(BOB, ["tune+notify"]);
  deepStrictEqual(changesIn(await pep.received(BOB)), ["carol"]);
  await pep.publish("alice@example.com/x", "tune", item("after"));
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
  pep.server.approved(parseJid("alice@example.com"), parseJid("bob@example.com"));
  deepStrictEqual(changesIn(await pep.received(BOB)), []);
  pep.hiding.clear();
  await pep.publish("alice@example.com/x", "tune", item("again"));
  deepStrictEqual(changesIn(await pep.received(BOB)), ["again"]);
});

Deno.test("PepNotices tells members of a whitelist who may see the presence, and no outcast", async () => {
  await using pep = await PepFixture.open();
  const [carol, dave] = ["carol@example.com/desk", "dave@example.com/desk"];
  for (const contact of ["bob@example.com", "dave@example.com"]) {
    await pep.subscribe("alice@example.com", contact);
  }
  const clients = [ALICE, BOB, carol, dave];
  for (const jid of clients) await pep.online(jid, ["a+notify", "b+notify"]);
  const affiliate = (node: string, list: Readonly<Record<string, string>>) => {
    const each = Object.entries(list).map(([jid, affiliation]) =>
      `<affiliation jid='${jid}' affiliation='${affiliation}'/>`
    );
    const content = `<affiliations node='${node}'>${each.join("")}</affiliations>`;
    return pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${content}</pubsub>`);
  };
  await pep.publish(ALICE, "a", item("1"), { "pubsub#access_model": "whitelist" });
  await pep.publish(ALICE, "b", item("1"));
  await affiliate("a", { "bob@example.com": "member", "carol@example.com": "member" });
  await affiliate("b", { "dave@example.com": "outcast" });
  pep.delivered.splice(0);
  await pep.publish(ALICE, "a", item("2"));
  await pep.publish(ALICE, "b", item("3"));
  const told = async () =>
    await Promise.all(clients.map(async (jid) => changesIn(await pep.received(jid))));
  deepStrictEqual(await told(), [["2", "3"], ["2", "3"], [], []]);
  for (const jid of [BOB, carol, dave]) await pep.online(`${jid}2`, ["a+notify", "b+notify"]);
  deepStrictEqual(
    await Promise.all(
      [BOB, carol, dave].map(async (jid) => changesIn(await pep.received(`${jid}2`)).toSorted()),
    ),
    [["2", "3"], [], []],
    "the last items go to the same",
  );
  pep.creations.set("bob@example.com", "2"); // the name has another owner, and its subscription
  pep.delivered.splice(0);
  await pep.publish(ALICE, "a", item("4"));
  deepStrictEqual(await told(), [["4"], [], [], []]);
  await pep.online(`${BOB}3`, ["a+notify", "b+notify"]);
  deepStrictEqual(changesIn(await pep.received(`${BOB}3`)), ["3"]);
});
