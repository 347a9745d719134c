import { deepStrictEqual, doesNotMatch, match, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import type { FullJid } from "../../xmpp/mod.ts";
import { parseElement, parseJid, serialize } from "../../xmpp/mod.ts";
import { PepFixture, presenceOf, submitted, textOf } from "./testing/pep_fixture.ts";

const ALICE = "alice@example.com/desk";
const BOB = "bob@example.com/phone";
const STRANGER = "carol@example.com/desk";
const DATA = "urn:xmpp:avatar:data";
const METADATA = "urn:xmpp:avatar:metadata";
const PICTURE = btoa("not really a picture");
const ID = createHash("sha1").update("not really a picture").digest("hex");
const VCARD = "<vCard xmlns='vcard-temp'/>";

const OWNER = "http://jabber.org/protocol/pubsub#owner";

function form(values: Readonly<Record<string, string>>): string {
  return submitted("http://jabber.org/protocol/pubsub#node_config", values);
}

function vcard(content: string): string {
  return `<vCard xmlns='vcard-temp'>${content}</vCard>`;
}

function photo(encoded = PICTURE): string {
  return `<PHOTO><TYPE>image/png</TYPE><BINVAL>${encoded}</BINVAL></PHOTO>`;
}

/** Publishes an avatar as a client does (XEP-0084 §3.1). */
async function publishAvatar(pep: PepFixture, model: string, encoded = PICTURE): Promise<string> {
  const id = createHash("sha1").update(atob(encoded)).digest("hex");
  const data = `<item id='${id}'><data xmlns='${DATA}'>${encoded}</data></item>`;
  const info = "<info url='https://example.org/large.png' id='x' bytes='1' type='image/png'/>" +
    `<info id='${id}' bytes='${atob(encoded).length}' type='image/png'/>`;
  const metadata = `<item id='${id}'><metadata xmlns='${METADATA}'>${info}</metadata></item>`;
  const options = { "pubsub#access_model": model };
  match(await pep.publish(ALICE, DATA, data, options), /type='result'/);
  match(await pep.publish(ALICE, METADATA, metadata, options), /type='result'/);
  return id;
}

Deno.test("AvatarPhotos shows an avatar in the vCard to those who may see it", async () => {
  await using pep = await PepFixture.open();
  await pep.subscribe("alice@example.com", "bob@example.com");
  await publishAvatar(pep, "presence");
  const read = (asker: string) => pep.ask(asker, "get", VCARD, "alice@example.com");
  for (const asker of [ALICE, BOB]) {
    match(await read(asker), new RegExp(`<vCard [^>]+>${photo()}</vCard>`));
  }
  const hidden = await read(STRANGER);
  strictEqual(
    hidden,
    (await pep.ask(STRANGER, "get", VCARD, "nobody@example.com")).replace("nobody", "alice"),
  );
  match(await pep.ask(ALICE, "set", vcard("<FN>Alice</FN>")), /type='result'/);
  match(await read(BOB), new RegExp(`<FN>Alice</FN>${photo()}</vCard>`));
  match(await read(STRANGER), /<vCard [^>]+><FN>Alice<\/FN><\/vCard>/);
});

Deno.test("AvatarPhotos shows everybody an avatar that is open, and none after its end", async () => {
  await using pep = await PepFixture.open();
  await pep.ask(ALICE, "set", vcard(`<FN>Alice</FN>${photo(btoa("older"))}`));
  await publishAvatar(pep, "open");
  const read = () => pep.ask(STRANGER, "get", VCARD, "alice@example.com");
  match(await read(), new RegExp(`<FN>Alice</FN>${photo()}</vCard>`));
  await pep.publish(ALICE, METADATA, `<item id='none'><metadata xmlns='${METADATA}'/></item>`);
  match(await read(), /<FN>Alice<\/FN><\/vCard>/);
});

Deno.test("AvatarPhotos publishes the photo of a vCard as avatar, once", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE, [`${METADATA}+notify`]);
  const folded = `${PICTURE.slice(0, 8)}\n  ${PICTURE.slice(8)}`;
  match(await pep.ask(ALICE, "set", vcard(`<FN>A</FN>${photo(folded)}`)), /type='result'/);
  match(
    await pep.items(STRANGER, DATA, "alice@example.com"),
    new RegExp(`<item id='${ID}'><data xmlns='${DATA}'>${PICTURE}</data></item>`),
  );
  match(
    await pep.items(STRANGER, METADATA, "alice@example.com"),
    new RegExp(`<info bytes='20' id='${ID}' type='image/png'/>`),
  );
  const notices = (await pep.received(ALICE)).filter((each) => each.startsWith("<message"));
  strictEqual(notices.length, 1);
  await pep.ask(ALICE, "set", vcard(`<FN>B</FN>${photo()}`));
  deepStrictEqual(await pep.received(ALICE), [], "the avatar is the same");
  await pep.ask(ALICE, "set", vcard("<FN>C</FN>"));
  match(await pep.items(ALICE, METADATA), new RegExp(ID), "a vCard without photo says nothing");
  for (const wrong of [photo(""), photo("!"), "<PHOTO><EXTVAL>http://x</EXTVAL></PHOTO>"]) {
    match(await pep.ask(ALICE, "set", vcard(wrong)), /type='result'/);
  }
  match(await pep.items(ALICE, METADATA), new RegExp(ID));
});

Deno.test("AvatarPhotos leaves the next owner of a name no photo of an account that is deleted meanwhile", async () => {
  await using pep = await PepFixture.open();
  for (const deleted of [DATA, METADATA]) {
    pep.isCurrent = () => Promise.resolve(true);
    pep.publishing = (node) => {
      if (node === deleted) pep.isCurrent = () => Promise.resolve(false);
      return Promise.resolve();
    };
    match(await pep.ask(ALICE, "set", vcard(photo())), /<registration-required /);
    const left = (await pep.store.pep("example.com").nodes("alice")).map(({ name }) => name);
    // What was stored before is removed with the account.
    deepStrictEqual(left, deleted === DATA ? [] : [DATA]);
    strictEqual(await pep.store.vcards("example.com").read("alice"), undefined);
  }
});

Deno.test("AvatarPhotos forgets a photo that was read before it was taken back from the next owner of a name", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE);
  pep.publishing = (node) => {
    if (node !== METADATA) return Promise.resolve();
    pep.isCurrent = async () => {
      pep.isCurrent = () => Promise.resolve(false);
      pep.server.photos.readAgain();
      await pep.server.photos.settled();
      match(textOf(pep.server.photos.complete(presenceOf(ALICE))), new RegExp(ID));
      return false;
    };
    return Promise.resolve();
  };
  match(await pep.ask(ALICE, "set", vcard(photo())), /<registration-required /);
  await pep.settled();
  doesNotMatch(textOf(pep.server.photos.complete(presenceOf(ALICE))), new RegExp(ID));
});

Deno.test("AvatarPhotos shows one of two photos that two datacenters store at once", async () => {
  await using pep = await PepFixture.open();
  const owner = parseJid("alice@example.com");
  const other = photo(btoa("the other picture"));
  const cardOf = (each: string) => parseElement(new TextEncoder().encode(vcard(each)));
  pep.publishing = async (node) => {
    if (node !== METADATA) return;
    pep.publishing = undefined;
    strictEqual(await pep.server.photos.stored(owner, cardOf(other)), undefined);
  };
  strictEqual(await pep.server.photos.stored(owner, cardOf(photo())), undefined);
  match(await pep.ask(BOB, "get", VCARD, owner.text), new RegExp(photo()));
});

Deno.test("AvatarPhotos refuses a photo that nobody would see, as it cannot become the avatar", async () => {
  await using pep = await PepFixture.open({ maxItemBytes: 5000 });
  const read = () => pep.ask(STRANGER, "get", VCARD, "alice@example.com");
  const large = photo(btoa("x".repeat(5000)));
  const set = (name: string, content = large) =>
    pep.ask(ALICE, "set", vcard(`<FN>${name}</FN>${content}`));
  match(await set("A"), /type='result'/, "without an avatar the vCard shows its own photo");
  match(await read(), new RegExp(`<FN>A</FN>${large}</vCard>`));
  match(await set("B", photo()), /type='result'/);
  match(await set("C"), /<policy-violation /);
  match(await read(), new RegExp(`<FN>B</FN>${photo()}</vCard>`), "nothing of it was stored");
  match(await set("D", ""), /type='result'/);
  match(await read(), new RegExp(`<FN>D</FN>${photo()}</vCard>`));
});

Deno.test("AvatarPhotos refuses a new photo for lack of room, where there is an avatar", async () => {
  await using pep = await PepFixture.open({ maxBytes: 5000 });
  match(await pep.ask(ALICE, "set", vcard(photo())), /type='result'/);
  const large = photo(btoa("x".repeat(5000)));
  match(await pep.ask(ALICE, "set", vcard(large)), /<resource-constraint /);
});

Deno.test("AvatarPhotos leaves a node's access model as its owner wants it", async () => {
  await using pep = await PepFixture.open();
  await publishAvatar(pep, "whitelist", btoa("older"));
  match(await pep.ask(ALICE, "set", vcard(photo())), /type='result'/);
  match(await pep.items(ALICE, METADATA), new RegExp(ID));
  match(await pep.items(STRANGER, METADATA, "alice@example.com"), /<item-not-found /);
});

Deno.test("AvatarPhotos adds the hash of the photo to presence, as XEP-0398 §4 says", async () => {
  await using pep = await PepFixture.open();
  await publishAvatar(pep, "open");
  await pep.online(ALICE);
  const x = (content: string) => `<x xmlns='vcard-temp:x:update'>${content}</x>`;
  const completed = (content: string) =>
    textOf(pep.server.photos.complete(presenceOf(ALICE, content)));
  const own = x(`<photo>${ID}</photo>`);
  match(textOf(pep.here.get(ALICE)!), new RegExp(`${own}</presence>`), "sent again when known");
  match(completed("<show>away</show>"), new RegExp(`<show>away</show>${own}</presence>`));
  match(completed(x("")), new RegExp(`>${own}</presence>`));
  match(completed(x("<photo>other</photo>")), new RegExp(`>${own}</presence>`));
  match(completed(x("<photo/>")), /<photo\/><\/x><\/presence>/);
  const directed = { ...presenceOf(ALICE), to: parseJid("room@rooms.example.com/alice") };
  match(textOf(pep.server.photos.complete(directed)), new RegExp(own));
  const other = presenceOf(BOB);
  strictEqual(pep.server.photos.complete(other), other, "bob has no avatar");
});

Deno.test("AvatarPhotos sends presence anew when the avatar changes, and says so when it ends", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE);
  doesNotMatch(textOf(pep.here.get(ALICE)!), /vcard-temp:x:update/);
  await publishAvatar(pep, "presence");
  match(textOf(pep.here.get(ALICE)!), new RegExp(`<photo>${ID}</photo>`));
  const directed = { ...presenceOf(ALICE), to: parseJid("room@rooms.example.com/alice") };
  strictEqual(pep.server.photos.complete(directed), directed, "strangers may not see it");
  const newer = await publishAvatar(pep, "presence", btoa("newer"));
  match(textOf(pep.here.get(ALICE)!), new RegExp(`<photo>${newer}</photo>`));
  await pep.publish(ALICE, METADATA, `<item id='none'><metadata xmlns='${METADATA}'/></item>`);
  match(textOf(pep.here.get(ALICE)!), /<photo\/>/);
});

Deno.test("AvatarPhotos tells nobody the hash of an avatar that is its owner's alone", async () => {
  await using pep = await PepFixture.open();
  await pep.online(ALICE);
  await publishAvatar(pep, "whitelist");
  doesNotMatch(textOf(pep.here.get(ALICE)!), /vcard-temp:x:update/);
});

Deno.test("AvatarPhotos no longer shows the hash of an avatar that its owner hides or removes, told or not", async () => {
  const ends: readonly [string, string][] = [
    [
      "hides it",
      `<configure node='${METADATA}'>${form({ "pubsub#access_model": "whitelist" })}` +
      "</configure>",
    ],
    ["removes it", `<delete node='${METADATA}'/>`],
    ["empties the node", `<purge node='${METADATA}'/>`],
  ];
  for (const [name, action] of ends) {
    for (const told of [{}, { "pubsub#deliver_notifications": "0" }]) {
      await using pep = await PepFixture.open();
      const others = [{ host: "dc2.example.com", resourcepart: "laptop", process: 2 }];
      pep.elsewhere.set("alice@example.com", others);
      await pep.online(ALICE, [`${METADATA}+notify`]);
      await publishAvatar(pep, "presence");
      match(textOf(pep.here.get(ALICE)!), new RegExp(`<photo>${ID}</photo>`));
      const owned = (content: string) =>
        pep.ask(ALICE, "set", `<pubsub xmlns='${OWNER}'>${content}</pubsub>`);
      const silent = { ...told, "pubsub#notify_delete": "0", "pubsub#notify_retract": "0" };
      await owned(`<configure node='${METADATA}'>${form(silent)}</configure>`);
      await pep.received(ALICE);
      pep.routed.length = 0;
      match(await owned(action), /type='result'/);
      match(textOf(pep.here.get(ALICE)!), /<photo\/>/, name);
      deepStrictEqual(await pep.received(ALICE), [], "no client is told");
      deepStrictEqual(pep.routed.map(({ to }) => to.text), ["alice@example.com/laptop"]);
    }
  }
});

Deno.test("AvatarPhotos sends no presence anew that has the hash, as that of a session that moved here", async () => {
  await using pep = await PepFixture.open();
  await publishAvatar(pep, "presence");
  const x = `<x xmlns='vcard-temp:x:update'><photo>${ID}</photo></x>`;
  const presence = presenceOf(ALICE, x);
  pep.here.set(ALICE, presence);
  pep.server.arrived(parseJid(ALICE) as FullJid, presence, false);
  await pep.server.settled();
  deepStrictEqual(pep.repeated, []);
  await publishAvatar(pep, "presence", btoa("newer"));
  deepStrictEqual(pep.repeated, [ALICE]);
});

Deno.test("AvatarPhotos reads a changed avatar once or twice, however many sessions hear of it", async () => {
  await using pep = await PepFixture.open();
  const clients = Array.from({ length: 20 }, (_, index) => `alice@example.com/${index}`);
  for (const jid of clients) await pep.online(jid);
  const before = pep.readings.length;
  const id = await publishAvatar(pep, "presence");
  strictEqual(pep.readings.length - before <= 2, true, `${pep.readings.length - before} readings`);
  for (const jid of clients) match(textOf(pep.here.get(jid)!), new RegExp(id));
});

for (
  const [what, request] of [
    ["deleted", `<pubsub xmlns='${OWNER}'><delete node='${METADATA}'/></pubsub>`],
    ["purged", `<pubsub xmlns='${OWNER}'><purge node='${METADATA}'/></pubsub>`],
    [
      "retracted",
      `<pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='${METADATA}'>` +
      `<item id='${ID}'/></retract></pubsub>`,
    ],
  ] as const
) {
  Deno.test(`AvatarPhotos shows no photo once the avatar is ${what}, and keeps the rest`, async () => {
    await using pep = await PepFixture.open();
    const read = () => pep.ask(BOB, "get", VCARD, "alice@example.com");
    const whole = vcard(`<FN>Alice</FN>${photo()}<NICKNAME>A</NICKNAME>`);
    match(await pep.ask(ALICE, "set", whole), /type='result'/);
    match(await read(), /<BINVAL>/);
    match(await pep.ask(ALICE, "set", request), /type='result'/);
    match(await read(), /<vCard [^>]+><FN>Alice<\/FN><NICKNAME>A<\/NICKNAME><\/vCard>/);
    match(await pep.ask(ALICE, "set", vcard(photo())), /type='result'/);
    match(await read(), /<BINVAL>/);
    match(await pep.ask(ALICE, "set", request), /type='result'/);
    match(await read(), /<item-not-found /);
  });
}

Deno.test("AvatarPhotos shows no photo once its owner's avatars are not to be kept", async () => {
  await using pep = await PepFixture.open();
  match(await pep.ask(ALICE, "set", vcard(`<FN>Alice</FN>${photo()}`)), /type='result'/);
  const configure = `<pubsub xmlns='${OWNER}'><configure node='${METADATA}'>` +
    `${form({ "pubsub#persist_items": "0" })}</configure></pubsub>`;
  match(await pep.ask(ALICE, "set", configure), /type='result'/);
  const shown = await pep.ask(BOB, "get", VCARD, "alice@example.com");
  match(shown, /<vCard [^>]+><FN>Alice<\/FN><\/vCard>/);
});

Deno.test("AvatarPhotos changes no vCard that is stored while its photo is removed", async () => {
  for (const newer of ["<FN>New</FN>", photo(btoa("newer")), photo()]) {
    await using pep = await PepFixture.open();
    const store = pep.store.vcards("example.com");
    match(await pep.ask(ALICE, "set", vcard(`<FN>Old</FN>${photo()}`)), /type='result'/);
    pep.vcardRead = async () => {
      pep.vcardRead = undefined;
      await store.write("alice", vcard(`<NICKNAME>A</NICKNAME>${newer}`));
    };
    const remove = `<pubsub xmlns='${OWNER}'><delete node='${METADATA}'/></pubsub>`;
    match(await pep.ask(ALICE, "set", remove), /type='result'/);
    const kept = newer === photo() ? "" : newer;
    const left = parseElement(new TextEncoder().encode(await store.read("alice")));
    strictEqual(serialize(left), vcard(`<NICKNAME>A</NICKNAME>${kept}`));
  }
});

Deno.test("AvatarPhotos keeps the photo of a vCard that never was an avatar", async () => {
  await using pep = await PepFixture.open();
  await pep.store.vcards("example.com").write("alice", vcard(`<FN>Alice</FN>${photo()}`));
  const remove = `<pubsub xmlns='${OWNER}'><delete node='${METADATA}'/></pubsub>`;
  match(await pep.ask(ALICE, "set", remove), /<item-not-found /);
  match(await pep.ask(BOB, "get", VCARD, "alice@example.com"), /<BINVAL>/);
});

Deno.test("AvatarPhotos takes no photo from a vCard that a directory does not let anybody store", async () => {
  await using pep = await PepFixture.open();
  pep.hasDirectory = true;
  match(await pep.ask(ALICE, "set", vcard(photo())), /<not-allowed /);
  match(await pep.items(ALICE, METADATA), /<item-not-found /);
});

Deno.test("AvatarPhotos removes an avatar whose owner has a photo in a directory, too", async () => {
  await using pep = await PepFixture.open();
  const portrait = photo(btoa("portrait"));
  await pep.store.vcards("example.com").write("alice", vcard(portrait));
  pep.hasDirectory = true;
  await publishAvatar(pep, "open");
  const read = () => pep.ask(BOB, "get", VCARD, "alice@example.com");
  match(await read(), new RegExp(photo()));
  const remove = `<pubsub xmlns='${OWNER}'><delete node='${METADATA}'/></pubsub>`;
  match(await pep.ask(ALICE, "set", remove), /type='result'/);
  match(await read(), new RegExp(portrait));
});

Deno.test("AvatarPhotos sends presence anew for an avatar that changed at a datacenter that was cut off", async () => {
  await using pep = await PepFixture.open();
  await publishAvatar(pep, "presence", btoa("older"));
  await pep.online(ALICE);
  // dc2 writes to the same store, and its notifications do not come here.
  const info = `<info id='${ID}' bytes='20' type='image/png'/>`;
  const item = { id: ID, xml: `<metadata xmlns='${METADATA}'>${info}</metadata>` };
  const store = pep.store.pep("example.com");
  const config = (await store.node("alice", METADATA))!.config;
  const publication = { node: METADATA, expected: config, config, item, maxItems: 1 };
  await store.publish("alice", publication, { maxNodes: 10, maxBytes: 10_000 });
  pep.server.datacenterBack();
  await pep.settled();
  match(textOf(pep.here.get(ALICE)!), new RegExp(`<photo>${ID}</photo>`));
});

Deno.test("AvatarPhotos reads an avatar again that could not be read, while there are sessions", async () => {
  await using pep = await PepFixture.open();
  await publishAvatar(pep, "presence");
  pep.lastItemsFailure = new Error("the database is away");
  await pep.online(ALICE);
  for (let count = 0; count < 3; count++) {
    pep.clock.advance(5_000);
    await pep.settled();
  }
  strictEqual(pep.log.named("pep.photo-unread").length, 1);
  pep.lastItemsFailure = undefined;
  pep.clock.advance(5_000);
  await pep.settled();
  match(textOf(pep.here.get(ALICE)!), new RegExp(`<photo>${ID}</photo>`));
  const before = pep.readings.length;
  pep.clock.advance(60_000);
  strictEqual(pep.readings.length, before, "once is enough");
  pep.lastItemsFailure = new Error("the database is away again");
  pep.server.datacenterBack();
  await pep.settled();
  const failed = pep.readings.length;
  pep.server.closed(parseJid(ALICE) as FullJid);
  pep.clock.advance(60_000);
  await pep.settled();
  strictEqual(pep.readings.length, failed, "nobody is there any more");
});

Deno.test("AvatarPhotos reads the avatars of many logins with few queries", async () => {
  await using pep = await PepFixture.open();
  for (let count = 0; count < 21; count++) {
    pep.server.opened(parseJid(`alice${count}@example.com/x`) as FullJid);
  }
  await pep.server.photos.settled();
  deepStrictEqual(pep.readings.map(({ localparts }) => localparts.length), [1, 20]);
});
