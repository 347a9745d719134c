import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { logIn } from "./_log_in.ts";
import { untilReady } from "./_readiness.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

const ROOM = "tea@muclight.example.com";
/** A room of Multi-User Chat. */
const COVEN = "coven@conference.example.com";
const MUC = "http://jabber.org/protocol/muc";
const UNBLOCK = "<unblock xmlns='urn:xmpp:blocking'/>";
const BLOCK_LIST = "<blocklist xmlns='urn:xmpp:blocking'/>";

/** Requests that need the database, by kind of data. */
const REQUESTS: Readonly<Record<string, string>> = {
  roster: "<query xmlns='jabber:iq:roster'/>",
  vcard: "<vCard xmlns='vcard-temp'/>",
  private: "<query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'/></query>",
  pep: "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='urn:x:notes'/></pubsub>",
  mam: "<metadata xmlns='urn:xmpp:mam:2'/>",
};

/** Messages that alice and bob write to each other while dc1 is cut off. */
const DARK = 10;

/** One datacenter that cannot reach the database, beside two that can. */
export const CUT_OFF_DATABASE: Scenario = {
  name: "cut-off-database",
  summary:
    "a datacenter that cannot reach the database refuses what needs it, goes on with the rest, and " +
    "the other datacenters notice nothing",
  options: {
    database: "postgresql",
    databaseLinks: true,
    archives: true,
    users: ["alice", "bob", "carol", "dave"].map((localpart) => ({
      localpart,
      password: "secret",
    })),
    configure(configuration) {
      configuration.modules["mod_muc_light"] = { host: "muclight.@HOST@" };
      configuration.modules["mod_muc"] = {};
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2, dc3] = cluster.datacenters as [Datacenter, Datacenter, Datacenter];
    const [ALICE, BOB, CAROL, DAVE] = ["alice", "bob", "carol", "dave"]
      .map((who) => `${who}@example.com`) as [string, string, string, string];
    const alice = await enter(stage, "alice", "dc1");
    const bob = await enter(stage, "bob", "dc2");
    const tablet = await stage.enterAvailable("bob", "dc3");
    const carol = await stage.enterAvailable("carol", "dc3");
    for (const client of [alice, bob]) await becomeAvailable(client);
    const block = `<block xmlns='urn:xmpp:blocking'><item jid='${CAROL}'/></block>`;
    assert.equal((await alice.iq({ type: "set", payload: block })).type, "result");
    await makeRoom(alice, [BOB]);
    await enterCoven(alice, "witch");
    const unlock = `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'/></query>`;
    assert.equal((await alice.iq({ type: "set", to: COVEN, payload: unlock })).type, "result");
    await enterCoven(bob, "bard");
    for (const client of [alice, bob, tablet]) await answersAll(client);

    dc1.databaseLink.refuse();
    dc1.databaseLink.cut();
    for (const [kind, payload] of Object.entries(REQUESTS)) {
      const answer = await alice.iq({ type: "get", payload });
      assert.equal(answer.errorCondition, "internal-server-error", `${kind}: ${answer.xml}`);
    }
    for (const client of [bob, tablet]) await answersAll(client);
    await untilReady(cluster, dc1, /rdbms/);
    for (const each of [dc2, dc3]) await untilReady(cluster, each);
    const pool = { pool: "rdbms.default" };
    assert.equal((await Figures.read(dc1)).sum("causeway_storage_up", pool), 0);
    for (const each of [dc2, dc3]) {
      assert.equal((await Figures.read(each)).sum("causeway_storage_up", pool), 1);
    }
    say("dc1 is cut off from the database: requests that need it fail there alone");

    assert.equal(await logIn(dc1, "bob", "secret"), "temporary-auth-failure");
    for (const each of [dc2, dc3]) assert.equal(await logIn(each, "alice", "secret"), "in");
    say("nobody logs in at dc1, alice at dc2 and dc3 as ever");

    await carol.sendMessage(ALICE, "from somebody blocked");
    const refused = await alice.iq({ type: "set", payload: UNBLOCK });
    assert.equal(refused.errorCondition, "internal-server-error");
    const list = await alice.iq({ type: "get", payload: BLOCK_LIST });
    assert.equal(list.errorCondition, "internal-server-error");

    for (let i = 0; i < DARK; i++) {
      await alice.sendMessage(BOB, `alice ${i}`);
      await bob.sendMessage(ALICE, `bob ${i}`);
    }
    for (const device of [bob, tablet]) {
      for (let i = 0; i < DARK; i++) await device.expectMessage(`alice ${i}`);
    }
    await alice.expectMessage(`bob ${DARK - 1}`);
    say("alice and bob talk on: both of his devices get all that she writes, in order");

    const toRoom = await alice.sendMessage(ROOM, "anybody?", { type: "groupchat" });
    await alice.expectError(toRoom, "resource-constraint");
    for (const [device, text] of [[bob, "I am"], [tablet, "I am too"]] as const) {
      await device.sendMessage(ROOM, text, { type: "groupchat" });
      for (const client of [alice, bob, tablet]) await client.expectMessage(text);
    }
    say("the room takes no message from dc1, and those from dc2 and dc3 reach everybody");

    for (const [client, text] of [[alice, "in the dark"], [bob, "in the light"]] as const) {
      await client.sendMessage(COVEN, text, { type: "groupchat" });
      for (const each of [alice, bob]) await each.expectMessage(text);
    }
    await alice.sendStanza(
      `<message to='${COVEN}' type='groupchat' id='subject'><subject>darkness</subject></message>`,
    );
    await alice.expectError("subject", "resource-constraint");
    const past = await alice.iq({ type: "get", to: COVEN, payload: REQUESTS["mam"]! });
    assert.equal(past.errorCondition, "resource-constraint", past.xml);
    say(
      "in a room of Multi-User Chat both are heard; dc1 takes no subject there, and has no archive",
    );

    assert.ok(!alice.received.some(({ xml }) => xml.includes("from somebody blocked")));
    say(
      "carol, whom alice has blocked, does not reach her; the block list can be neither read nor changed",
    );

    await alice.expectError(await alice.sendMessage(DAVE, "later"), "internal-server-error");
    say("a message from dc1 to dave, who is offline, comes back as an error: nothing stores it");

    dc1.databaseLink.heal();
    await untilReady(cluster, dc1);
    await answersAll(alice);
    assert.equal(await logIn(dc1, "bob", "secret"), "in");
    for (const [client, peer] of [[alice, BOB], [bob, ALICE]] as const) {
      await cluster.until(
        async () => (await archived(client, { peer })).includes(`alice ${DARK - 1}`),
        { what: `the archive of ${client.jid} has caught up` },
      );
      const bodies = await archived(client, { peer });
      for (const who of ["alice", "bob"]) {
        assert.deepEqual(
          bodies.filter((body) => body.startsWith(`${who} `)),
          Array.from({ length: DARK }, (_, i) => `${who} ${i}`),
        );
      }
    }
    const spoken = ["in the dark", "in the light"];
    for (const client of [alice, bob]) {
      await cluster.until(
        async () => (await archived(client, { room: COVEN })).length >= spoken.length,
        { what: `the archive of the room has caught up for ${client.jid}` },
      );
      assert.deepEqual((await archived(client, { room: COVEN })).toSorted(), spoken);
    }
    const dave = await enter(stage, "dave", "dc3");
    assert.deepEqual(await archived(dave, { peer: ALICE }), []);
    say("dc1 reaches the database again: all archives have each message once, in order");
  },
};

async function enter(stage: Stage, who: string, at: string): Promise<SlixmppClient> {
  const client = await stage.enter(who, at, { library: "slixmpp" });
  assert.ok(client instanceof SlixmppClient);
  return client;
}

async function answersAll(client: ChatClient): Promise<void> {
  for (const [kind, payload] of Object.entries(REQUESTS)) {
    const answer = await client.iq({ type: "get", payload });
    const isRight = answer.type === "result" ||
      (kind === "pep" && answer.errorCondition === "item-not-found");
    assert.ok(isRight, `${kind}: ${answer.xml}`);
  }
}

async function enterCoven(client: ChatClient, nick: string): Promise<void> {
  await client.joinRoom(`${COVEN}/${nick}`);
  await client.expectStanza(({ from, xml }) => from === `${COVEN}/${nick}` && /110/.test(xml));
}

async function makeRoom(client: ChatClient, members: readonly string[]): Promise<void> {
  const occupants = members.map((jid) => `<user affiliation='member'>${jid}</user>`).join("");
  const payload =
    `<query xmlns='urn:xmpp:muclight:0#create'><occupants>${occupants}</occupants></query>`;
  assert.equal((await client.iq({ type: "set", to: ROOM, payload })).type, "result");
}

/** Returns the bodies of messages in the archive of a client, or of a room. */
async function archived(
  client: SlixmppClient,
  of: { readonly peer: string } | { readonly room: string },
): Promise<readonly string[]> {
  const page = await client.task("read_archive", { ...of, max: "50" }) as {
    readonly messages: readonly string[]; // what our script makes
  };
  return page.messages.map((text) => text.slice(text.indexOf(" ") + 1));
}
