import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { isPresence, Stage } from "./_stage.ts";

const MUC = "http://jabber.org/protocol/muc";
const SERVICE = "conference.example.com";
const COVEN = `coven@${SERVICE}`;
/** Messages that each of two people writes at the same moment. */
const MESSAGES = 20;

/** Multi-User Chat over three datacenters, each of which serves all rooms. */
export const MULTI_USER_CHAT: Scenario = {
  name: "multi-user-chat",
  summary:
    "a room has one order of messages for people at three datacenters; both sides of a split talk " +
    "on, and meet again with one nickname each and one archive; the people of a killed datacenter " +
    "leave",
  options: {
    datacenters: 3,
    archives: true,
    configure({ modules }) {
      const { redis } = modules.mod_global_distrib;
      Object.assign(redis, { expire_after: 4, refresh_after: 1 });
      modules["mod_muc"] = { max_created_rooms: 1 };
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1", { library: "slixmpp" });
    const bob = await stage.enterAvailable("bob", "dc2", { streamManagement: true });
    const carol = await stage.enterAvailable("carol", "dc3", { library: "slixmpp" });
    const all = [alice, bob, carol];

    await enter(alice, "witch");
    const unlock = `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'/></query>`;
    const unlocked = await alice.iq({ type: "set", to: COVEN, payload: unlock });
    assert.equal(unlocked.type, "result");
    await bob.joinRoom(`${COVEN}/witch`);
    const taken = await bob.expectStanza(isPresence({ from: `${COVEN}/witch`, type: "error" }));
    assert.equal(taken.errorCondition, "conflict");
    await enter(bob, "bard", ["witch"]);
    await enter(carol, "crone", ["witch", "bard"]);
    for (const nick of ["bard", "crone"]) await alice.expectStanza(isThere(nick));
    const info = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
    assert.match((await carol.iq({ type: "get", to: COVEN, payload: info })).xml, /muc_open/);
    const heath = `heath@${SERVICE}/witch`;
    await alice.joinRoom(heath);
    const full = await alice.expectStanza(isPresence({ from: heath, type: "error" }));
    assert.equal(full.errorCondition, "resource-constraint");
    say(
      "alice makes a room at dc1, and may make no other; bob and carol enter it at dc2 and dc3, each " +
        "with a nickname",
    );

    const texts = (who: string) => Array.from({ length: MESSAGES }, (_, i) => `${who} ${i}`);
    await Promise.all([[alice, "alice"], [bob, "bob"]].map(async ([client, who]) => {
      for (const text of texts(who as string)) {
        await (client as ChatClient).sendMessage(COVEN, text, { type: "groupchat" });
      }
    }));
    for (const client of all) {
      for (const who of ["alice", "bob"]) {
        for (const text of texts(who)) await client.expectMessage(text);
      }
    }
    const heard = all.map(talkOf);
    for (const each of heard) assert.deepEqual(each, heard[0], "the same order everywhere");
    assert.equal(heard[0]!.length, 2 * MESSAGES);
    assert.deepEqual(await archiveAt(alice), archivedAt(carol), "the archive has that order too");
    say("alice and bob write at once: all three hear everything once, in the order of the archive");

    const phone = await stage.enterAvailable("carol", "dc1", {
      resource: "phone",
      streamManagement: true,
    });
    await enter(phone, "crone", ["witch", "bard"]);
    await alice.sendMessage(`${COVEN}/crone`, "psst");
    const ids = await Promise.all([carol, phone].map(async (client) => {
      const { xml, type, from } = await client.expectMessage("psst");
      assert.deepEqual([type, from], ["chat", `${COVEN}/witch`]);
      return archiveIds(xml, "carol@example.com");
    }));
    assert.equal(ids[0]!.length, 1);
    assert.deepEqual(ids[1], ids[0]);
    await phone.presence({ to: `${COVEN}/crone`, type: "unavailable" });
    await phone.expectStanza(isGone("crone"));
    say(
      "alice writes to carol alone: both of carol's devices get it, as one message of her archive",
    );

    const admin = (item: string) => `<query xmlns='${MUC}#admin'>${item}</query>`;
    const mute = admin("<item nick='crone' role='visitor'/>");
    assert.equal((await alice.iq({ type: "set", to: COVEN, payload: mute })).type, "result");
    await carol.expectStanza(({ xml }) => /role=["']visitor["']/.test(xml));
    const refused = await carol.sendMessage(COVEN, "may I?", { type: "groupchat" });
    await carol.expectError(refused, "forbidden");
    const speak = admin("<item nick='crone' role='participant'/>");
    assert.equal((await alice.iq({ type: "set", to: COVEN, payload: speak })).type, "result");
    // The answer comes from dc1. What dc3 has to hear of it may still be under way.
    await carol.expectStanza(({ xml }) => /role=["']participant["'].*<actor/.test(xml));
    say("alice takes carol's voice at dc3, and gives it back");

    cluster.isolate("dc3");
    await alice.expectStanza(isGone("crone"));
    await carol.expectStanza(isGone("witch"));
    await carol.sendMessage(COVEN, "alone", { type: "groupchat" });
    await alice.sendMessage(COVEN, "without her", { type: "groupchat" });
    await carol.expectMessage("alone");
    await bob.expectMessage("without her");
    const dave = await stage.enterAvailable("alice", "dc2", { resource: "tablet" });
    await enter(dave, "twin");
    const twin = await stage.enterAvailable("carol", "dc3", { resource: "tablet" });
    await enter(twin, "twin");
    say("dc3 is cut off: both sides talk on, and give one nickname away twice");

    cluster.rejoin("dc3");
    await alice.expectMessage("alone");
    await carol.expectMessage("without her");
    for (const [client, nick] of [[alice, "crone"], [carol, "witch"], [bob, "crone"]] as const) {
      await client.expectStanza(isThere(nick));
    }
    await twin.expectStanza(({ xml }) => xml.includes("'303'") || xml.includes('"303"'));
    await alice.expectStanza(isThere("twin 2"));
    await carol.sendMessage(COVEN, "together", { type: "groupchat" });
    for (const client of [...all, dave, twin]) await client.expectMessage("together");
    for (const client of [...all, dave, twin]) {
      assert.equal(new Set(talkOf(client)).size, talkOf(client).length, "nothing comes twice");
    }
    const archived = await archiveAt(carol);
    assert.deepEqual(await archiveAt(alice), archived, "both sides have one archive");
    const bodies = archived.map((each) => each.slice(each.indexOf(" ") + 1));
    assert.equal(new Set(bodies).size, bodies.length, "nothing is in it twice");
    assert.deepEqual(
      bodies.toSorted(),
      [...["alice", "bob"].flatMap(texts), "alone", "without her", "together"].toSorted(),
    );
    say(
      "it is back: each side gets what it has missed, the older join keeps the nickname, and one " +
        "archive has everything once",
    );

    await cluster.datacenter("dc2").node.kill();
    for (const client of [alice, carol]) await client.expectStanza(isGone("bard"));
    await carol.sendMessage(COVEN, "still here", { type: "groupchat" });
    await alice.expectMessage("still here");
    say("dc2 is killed: its people leave the room, which goes on");
  },
};

/** Returns what the archive of the room has, as "id body". */
async function archiveAt(client: ChatClient): Promise<readonly string[]> {
  assert.ok(client instanceof SlixmppClient);
  const page = await client.task("read_archive", { room: COVEN, max: "50" }) as {
    readonly messages: readonly string[];
    readonly complete: boolean;
  }; // what our script makes
  assert.ok(page.complete);
  return page.messages;
}

/** Returns what a client has heard in the room, as "id body". */
function archivedAt(client: ChatClient): readonly string[] {
  return client.received.flatMap(({ body, xml }) => {
    const id = /<stanza-id [^>]*>/.exec(xml)?.[0].match(/ id=["'](\d+)["']/)?.[1];
    return body !== undefined && id !== undefined ? [`${id} ${body}`] : [];
  });
}

/** Returns the ids that a message has in somebody's archive. */
function archiveIds(xml: string, archive: string): readonly string[] {
  const elements = xml.match(/<(?:\w+:)?stanza-id [^>]*>/g) ?? [];
  return elements.filter((each) => new RegExp(` by=["']${archive}["']`).test(each))
    .flatMap((each) => / id=["']([^"']+)["']/.exec(each)?.[1] ?? []);
}

async function enter(client: ChatClient, nick: string, others: readonly string[] = []) {
  await client.joinRoom(`${COVEN}/${nick}`);
  for (const other of others) await client.expectStanza(isThere(other));
  await client.expectStanza(({ from, xml }) => from === `${COVEN}/${nick}` && /110/.test(xml));
}

function isThere(nick: string) {
  return isPresence({ from: `${COVEN}/${nick}`, type: undefined });
}

function isGone(nick: string) {
  return isPresence({ from: `${COVEN}/${nick}`, type: "unavailable" });
}

/** Returns what a client has heard in the room, in its order. */
function talkOf(client: ChatClient): readonly string[] {
  return client.received.flatMap(({ body, type, from }: ReceivedStanza) =>
    body !== undefined && type === "groupchat" && from?.startsWith(COVEN) === true
      ? [`${from} ${body}`]
      : []
  );
}
