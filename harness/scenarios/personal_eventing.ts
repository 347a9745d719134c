import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { accountOf, befriend, expectMark, logInFully } from "./_contacts.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

const METADATA = "urn:xmpp:avatar:metadata";
const DEVICES = "eu.siacs.conversations.axolotl.devicelist";
const BUNDLE = "eu.siacs.conversations.axolotl.bundles:31415";
const NEWER_DEVICES = "urn:xmpp:omemo:2:devices";
const BOOKMARKS = "urn:xmpp:bookmarks:1";
const FOLLOWED = [METADATA, DEVICES, NEWER_DEVICES, BOOKMARKS].join(" ");

const PRIVATE = JSON.stringify({
  persist_items: "true",
  max_items: "max",
  send_last_published_item: "never",
  access_model: "whitelist",
});
const OPEN = JSON.stringify({ access_model: "open" });

/** Personal eventing with the plugins of a real client (XEP-0163, XEP-0084, XEP-0115). */
export const PERSONAL_EVENTING: Scenario = {
  name: "personal-eventing",
  summary:
    "avatars, keys of devices and bookmarks that are published at one datacenter reach the " +
    "interested clients of contacts and owners at another, and nobody else",
  options: { datacenters: 3 },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const enter = async (who: string, at: string, resource: string) => {
      const client = await stage.enter(who, at, {
        library: "slixmpp",
        resource,
        streamManagement: true,
      });
      assert.ok(client instanceof SlixmppClient);
      await client.task("follow", { nodes: FOLLOWED });
      await logInFully(client);
      return client;
    };
    const desk = await enter("alice", "dc1", "desk");
    const phone = await enter("bob", "dc2", "phone");
    const stranger = await stage.enter("carol", "dc3", { library: "slixmpp" });
    assert.ok(stranger instanceof SlixmppClient);
    await becomeAvailable(stranger);
    const alice = accountOf(desk);
    await befriend(desk, phone);
    say("alice at dc1 and bob at dc2 are contacts, and carol at dc3 is nobody's");

    const picture = "not really a picture";
    const id = String(await desk.task("set_avatar", { text: picture }));
    await expectEvent(phone, alice, METADATA, id);
    await expectEvent(desk, alice, METADATA, id);
    assert.equal(await phone.task("fetch_avatar", { of: alice, id }), picture);
    await phone.expectStanza(({ kind, from, xml }) =>
      kind === "presence" && from === desk.jid && xml.includes(`<photo>${id}</photo>`)
    );
    assert.match(await vcardOf(phone, alice), new RegExp(`<BINVAL>${btoa(picture)}</BINVAL>`));
    say(
      "she sets her avatar: bob's client hears of it, fetches it, and sees it in presence and vCard",
    );

    for (const account of [alice, `nobody@${cluster.globalHost}`]) {
      await assert.rejects(stranger.task("fetch_avatar", { of: account, id }), /item-not-found/);
      await assert.rejects(vcardOf(stranger, account), /item-not-found/);
    }
    say("carol cannot tell alice from an account that does not exist");

    const devices = "<list xmlns='eu.siacs.conversations.axolotl'><device id='31415'/></list>";
    const bundle =
      "<bundle xmlns='eu.siacs.conversations.axolotl'><identityKey>QUJD</identityKey>" +
      "</bundle>";
    const newer = "<devices xmlns='urn:xmpp:omemo:2'><device id='31415'/></devices>";
    const publish = (node: string, xml: string, options: string) =>
      desk.task("publish_item", { node, id: "current", xml, options });
    await publish(BUNDLE, bundle, OPEN);
    await publish(DEVICES, devices, OPEN);
    await publish(NEWER_DEVICES, newer, OPEN);
    await expectEvent(phone, alice, DEVICES, "31415");
    await expectEvent(phone, alice, NEWER_DEVICES, "31415");
    for (const reader of [phone, stranger]) {
      const items = await reader.task("read_items", { node: BUNDLE, of: alice });
      assert.match(String(items), /^current .*identityKey>QUJD</);
    }
    await assert.rejects(
      desk.task("publish_item", { node: DEVICES, id: "current", xml: devices, options: PRIVATE }),
      /conflict/,
    );
    say("bob's client hears of her devices of both kinds, and everybody may fetch her keys");

    const laptop = await enter("alice", "dc2", "laptop");
    for (const part of [id, "31415"]) {
      await laptop.expectStanza(({ from, xml }) => from === alice && xml.includes(part));
    }
    const bookmark = (name: string) => `<conference xmlns='${BOOKMARKS}' name='${name}'/>`;
    const room = "tea@rooms.example.com";
    await desk.task("publish_item", {
      node: BOOKMARKS,
      id: room,
      xml: bookmark("Tea"),
      options: PRIVATE,
    });
    await expectEvent(laptop, alice, BOOKMARKS, room);
    await Promise.all([
      desk.task("publish_item", { node: BOOKMARKS, id: "a@r", xml: bookmark("A") }),
      laptop.task("publish_item", { node: BOOKMARKS, id: "b@r", xml: bookmark("B") }),
    ]);
    const shared = await laptop.task("read_items", { node: BOOKMARKS });
    assert.ok(Array.isArray(shared));
    assert.deepEqual(shared.map((each) => String(each).split(" ")[0]).sort(), ["a@r", "b@r", room]);
    await laptop.task("retract_item", { node: BOOKMARKS, id: room });
    await desk.expectStanza(({ xml }) => /<retract id=["']tea@rooms/.test(xml));
    await assert.rejects(
      phone.task("read_items", { node: BOOKMARKS, of: alice }),
      /item-not-found/,
    );
    say("her two devices share bookmarks, also when both write at once");

    await phone.disconnect();
    const tablet = await enter("bob", "dc3", "tablet");
    await expectEvent(tablet, alice, METADATA, id);
    await expectEvent(tablet, alice, DEVICES, "31415");
    await expectEvent(tablet, alice, NEWER_DEVICES, "31415");
    await expectMark(desk, stranger);
    for (const client of [phone, stranger, tablet]) {
      assert.ok(!client.received.some(({ xml }) => xml.includes(BOOKMARKS)), client.jid);
    }
    assert.ok(!stranger.received.some(isEvent), "carol is told nothing");
    say("bob logs in at dc3 and gets the last of each; nobody has heard of her bookmarks");
  },
};

function isEvent({ kind, xml }: ReceivedStanza): boolean {
  return kind === "message" && xml.includes("http://jabber.org/protocol/pubsub#event");
}

/** Takes the notification of `from` for a node that says `part`. */
function expectEvent(
  client: ChatClient,
  from: string,
  node: string,
  part: string,
): Promise<ReceivedStanza> {
  return client.expectStanza((stanza) =>
    isEvent(stanza) && stanza.from === from && stanza.xml.includes(node) &&
    stanza.xml.includes(part)
  );
}

async function vcardOf(client: ChatClient, account: string): Promise<string> {
  const answer = await client.iq({
    type: "get",
    to: account,
    payload: "<vCard xmlns='vcard-temp'/>",
  });
  if (answer.type === "error") throw new Error(answer.errorCondition);
  return answer.xml;
}
