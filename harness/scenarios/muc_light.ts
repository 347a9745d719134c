import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { accountOf } from "./_contacts.ts";
import { Stage } from "./_stage.ts";

const MUC_LIGHT = "urn:xmpp:muclight:0";
const SERVICE = "muclight.example.com";
const COVEN = `coven@${SERVICE}`;
/** Messages that each of three people writes at the same moment. */
const MESSAGES = 15;

/** MUC Light rooms over three datacenters, each of which serves all of them. */
export const MUC_LIGHT_ROOMS: Scenario = {
  name: "muc-light",
  summary:
    "a room that is made at one datacenter takes messages and changes at all, with one order and one " +
    "archive, and lives on when one of them is killed",
  options: {
    datacenters: 3,
    archives: true,
    configure(configuration) {
      configuration.modules["mod_muc_light"] = { host: "muclight.@HOST@" };
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1", { library: "slixmpp" });
    const bob = await stage.enterAvailable("bob", "dc2", { streamManagement: true });
    const phone = await stage.enterAvailable("bob", "dc1", {
      library: "slixmpp",
      resource: "phone",
    });
    const carol = await stage.enterAvailable("carol", "dc3", { library: "slixmpp" });
    const all = [alice, bob, phone, carol];
    for (const { jid } of [alice, phone]) {
      await stage.untilTableSays(jid, cluster.datacenter("dc1").localHost);
    }
    await stage.untilTableSays(bob.jid, cluster.datacenter("dc2").localHost);
    await stage.untilTableSays(carol.jid, cluster.datacenter("dc3").localHost);
    const items = "<query xmlns='http://jabber.org/protocol/disco#items'/>";
    for (const client of [alice, bob]) {
      const { xml } = await client.iq({ type: "get", to: "example.com", payload: items });
      assert.match(xml, new RegExp(SERVICE));
    }

    const made = await alice.iq({
      type: "set",
      to: COVEN,
      payload: query(
        "create",
        `<occupants>${user(bob, "member")}${user(carol, "member")}</occupants>`,
      ),
    });
    assert.equal(made.type, "result");
    for (const client of all) {
      const { xml } = await expectEvent(client, "affiliations");
      assert.ok(xml.includes(accountOf(client)), "their own affiliation");
    }
    const versions = await Promise.all([alice, bob, carol].map(versionAt));
    assert.equal(new Set(versions).size, 1);
    say("alice at dc1 makes a room with bob and carol: all are told, and read it where they are");

    await bob.sendMessage(COVEN, "hello", { type: "groupchat" });
    for (const client of all) {
      const { from, type } = await client.expectMessage("hello");
      assert.deepEqual([from, type], [`${COVEN}/${accountOf(bob)}`, "groupchat"]);
    }
    const subject = query("configuration", "<subject>news</subject>");
    assert.equal((await carol.iq({ type: "set", to: COVEN, payload: subject })).type, "result");
    for (const client of all) {
      assert.match((await expectEvent(client, "configuration")).xml, /news/);
    }
    say("bob writes at dc2, carol changes the subject: all clients hear of it");

    const texts = (who: string) => Array.from({ length: MESSAGES }, (_, i) => `${who} ${i}`);
    await Promise.all(
      [[alice, "alice"], [bob, "bob"], [carol, "carol"]].map(async ([client, who]) => {
        for (const text of texts(who as string)) {
          await (client as ChatClient).sendMessage(COVEN, text, { type: "groupchat" });
        }
      }),
    );
    const numbers: string[][] = [];
    for (const client of all) {
      for (const who of ["alice", "bob", "carol"]) {
        for (const text of texts(who)) await client.expectMessage(text);
        const got = bodiesOf(client).filter((body) => body.startsWith(`${who} `));
        assert.deepEqual(got, texts(who), "in the order of their sender, each once");
      }
      numbers.push(numbersAt(client));
    }
    for (const each of numbers) assert.deepEqual(each, numbers[0], "the same order everywhere");
    assert.ok(alice instanceof SlixmppClient);
    const page = await alice.task("read_archive", { room: COVEN, max: "50" });
    assert.deepEqual(page, { messages: numbers[0], complete: true });
    say("all write at once: each message comes once to all clients, in the order of the archive");

    const removal = query("affiliations", user(carol, "none"));
    assert.equal((await alice.iq({ type: "set", to: COVEN, payload: removal })).type, "result");
    for (const client of all) await expectEvent(client, "affiliations");
    const refused = await carol.sendMessage(COVEN, "still here?", { type: "groupchat" });
    await carol.expectError(refused, "item-not-found");
    const info = await carol.iq({ type: "get", to: COVEN, payload: query("info") });
    assert.equal(info.errorCondition, "item-not-found");
    say("alice removes carol, who is out of the room at dc3 at once");

    await cluster.datacenter("dc1").node.kill();
    await bob.sendMessage(COVEN, "alone", { type: "groupchat" });
    await bob.expectMessage("alone");
    assert.match((await bob.iq({ type: "get", to: COVEN, payload: query("info") })).xml, /news/);
    say("dc1 is killed: the room goes on at dc2");
  },
};

function query(what: string, content = ""): string {
  return `<query xmlns='${MUC_LIGHT}#${what}'>${content}</query>`;
}

function user(client: ChatClient, affiliation: string): string {
  return `<user affiliation='${affiliation}'>${accountOf(client)}</user>`;
}

async function expectEvent(client: ChatClient, what: string) {
  return await client.expectMessage(({ from, xml }) =>
    from === COVEN && xml.includes(`${MUC_LIGHT}#${what}`)
  );
}

async function versionAt(client: ChatClient): Promise<string | undefined> {
  const { xml } = await client.iq({ type: "get", to: COVEN, payload: query("info") });
  return /<(?:\w+:)?version>(\d+)</.exec(xml)?.[1];
}

function bodiesOf(client: ChatClient): readonly string[] {
  return client.received.flatMap(({ body }) => body === undefined ? [] : [body]);
}

/** Returns number and body of each message that a client has got from the room, in its order. */
function numbersAt(client: ChatClient): string[] {
  return client.received.flatMap(({ body, xml }) => {
    const number = /<(?:\w+:)?stanza-id [^>]*id=["'](\d+)["']/.exec(xml)?.[1];
    return number === undefined ? [] : [`${number} ${body}`];
  });
}
