import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import { SlixmppClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import {
  accountOf,
  befriend,
  expectMark,
  expectPresence,
  logInFully,
  presencesFrom,
} from "./_contacts.ts";
import { enterManaged } from "./_managed_client.ts";
import { PING } from "./_ping.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

const LAST = "<query xmlns='jabber:iq:last'/>";

/** The blocking command over three datacenters, with the plugin of a real client (XEP-0191). */
export const BLOCKED_CONTACTS: Scenario = {
  name: "blocked-contacts",
  summary:
    "a contact that somebody blocks at one datacenter reaches none of their clients anywhere, " +
    "takes them for offline, and sees them again once unblocked at the other",
  options: { datacenters: 3 },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const enter = async (who: string, at: string, resource: string) => {
      const library = who === "alice" ? "slixmpp" : "@xmpp";
      return await logInFully(await stage.enter(who, at, { resource, library }));
    };
    const phone = slixmpp(await enter("alice", "dc1", "phone"));
    const laptop = slixmpp(await enter("alice", "dc2", "laptop"));
    const bob = await enter("bob", "dc2", "desk");
    const carol = await enter("carol", "dc3", "desk");
    const clients = [phone, laptop];
    for (const client of [phone, laptop, bob, carol]) {
      const { jid } = client;
      await stage.untilTableSays(jid, cluster.datacenter(dcOf(client)).localHost);
    }
    await befriend(phone, bob);
    await expectPresence(bob, laptop.jid);
    await expectPresence(laptop, bob.jid);
    for (const client of clients) assert.deepEqual(await client.task("read_blocked", {}), []);
    say("alice's phone at dc1 and her laptop at dc2 see bob at dc2, and read an empty block list");

    await phone.task("block", { jid: accountOf(bob) });
    for (const client of clients) await expectPush(client, "block", accountOf(bob));
    for (const { jid } of clients) await expectPresence(bob, jid, "unavailable");
    for (const client of clients) await expectPresence(client, bob.jid, "unavailable");
    say("she blocks bob at her phone: her laptop hears of it, and both sides see the other leave");

    const before = clients.map(({ received }) => received.length);
    const errors = bob.received.length;
    await bob.sendMessage(accountOf(phone), "to the account");
    await bob.presence({ priority: 3 });
    for (const { jid } of clients) {
      await bob.sendMessage(jid, "to a client");
      await bob.presence({ to: jid });
      // The answer comes behind all that bob has sent to this client.
      const answer = await bob.iq({ type: "get", to: jid, payload: PING });
      assert.equal(answer.errorCondition, "service-unavailable");
    }
    const seen = await bob.iq({ type: "get", to: accountOf(phone), payload: LAST });
    assert.equal(seen.errorCondition, "forbidden", "he may see her presence, and is blocked");
    const second = await enter("bob", "dc1", "second");
    await carol.presence({ to: accountOf(phone), type: "subscribe" });
    for (const client of clients) await expectPresence(client, accountOf(carol), "subscribe");
    for (const client of clients) await expectMark(carol, client);
    for (const [index, client] of clients.entries()) {
      const heard = client.received.slice(before[index]).filter(({ from }) =>
        from?.startsWith(`${accountOf(bob)}/`)
      );
      assert.deepEqual(heard, []);
    }
    assert.deepEqual(bob.received.slice(errors).filter(({ kind }) => kind === "message"), []);
    for (const { jid } of clients) assert.deepEqual(presencesFrom(second, jid), []);
    say("nothing of bob's reaches them, he is told no reason, and a stranger's request still does");

    for (const client of clients) {
      const mark = crypto.randomUUID();
      await client.sendMessage(bob.jid, mark);
      const error = await client.expectStanza(({ kind, type, from }) =>
        kind === "message" && type === "error" && from === bob.jid
      );
      assert.equal(error.errorCondition, "not-acceptable");
      assert.match(error.xml, /<blocked xmlns=["']urn:xmpp:blocking:errors["']/);
      assert.ok(bob.received.every(({ body }) => body !== mark));
    }
    await phone.task("block", { jid: accountOf(carol) });
    for (const client of clients) await expectPush(client, "block", accountOf(carol));
    assert.deepEqual(await laptop.task("read_blocked", {}), [accountOf(bob), accountOf(carol)]);
    await carol.presence({ to: accountOf(phone), type: "probe" });
    const probed = await carol.iq({ type: "get", to: laptop.jid, payload: PING });
    assert.equal(probed.errorCondition, "service-unavailable");
    say("she can write to bob from neither client, and blocks carol too");

    const watch = await logInFully(await stage.enter("alice", "dc3", { resource: "watch" }));
    await expectPresence(laptop, watch.jid);
    await watch.disconnect();
    // Her own clients hear of the end behind her contacts.
    await expectPresence(laptop, watch.jid, "unavailable");
    for (const each of [bob, second]) assert.deepEqual(presencesFrom(each, watch.jid), []);
    say("she comes and goes at dc3, where she has no other client, and bob hears nothing of it");

    await laptop.task("unblock", { jid: accountOf(bob) });
    for (const client of clients) await expectPush(client, "unblock", accountOf(bob));
    for (const each of [bob, second]) {
      for (const { jid } of clients) await expectPresence(each, jid);
    }
    for (const client of clients) {
      for (const { jid } of [bob, second]) await expectPresence(client, jid);
      await expectMark(bob, client);
      await expectMark(client, second);
    }
    say("she unblocks him at her laptop: everybody sees everybody again, and messages arrive");

    const tablet = slixmpp(await enter("alice", "dc3", "tablet"));
    assert.deepEqual(await tablet.task("read_blocked", {}), [accountOf(carol)]);
    const refused = await carol.iq({ type: "get", to: tablet.jid, payload: PING });
    assert.equal(refused.errorCondition, "service-unavailable");
    await expectPresence(bob, tablet.jid);
    assert.deepEqual(presencesFrom(carol, tablet.jid), []);
    say("her tablet, which logs in later at dc3, keeps carol out from the first moment");

    const quiet = `<list name='quiet'><item type='jid' value='${accountOf(bob)}' action='deny' ` +
      "order='1'><message/></item><item action='allow' order='2'/></list>";
    for (const command of [quiet, "<active name='quiet'/>"]) {
      const answer = await tablet.iq({ type: "set", payload: privacy(command) });
      assert.equal(answer.type, "result");
    }
    for (const client of [...clients, tablet]) {
      await client.expectStanza(({ kind, type, xml }) =>
        kind === "iq" && type === "set" && /<list name=["']quiet["'] ?\/>/.test(xml)
      );
    }
    const lists = await laptop.iq({ type: "get", payload: privacy("") });
    assert.match(lists.xml, /<list name=["']quiet["']/);
    assert.doesNotMatch(lists.xml, /<active /, "that is the list of her tablet alone");
    await bob.sendMessage(tablet.jid, "hush");
    // The answer comes behind the message.
    const heard = await bob.iq({ type: "get", to: tablet.jid, payload: PING });
    assert.notEqual(heard.errorCondition, "service-unavailable", "her client answers");
    assert.ok(tablet.received.every(({ body }) => body !== "hush"));
    await expectMark(bob, laptop);
    say("a privacy list that her tablet makes and uses keeps bob's messages from it alone");

    const entrance = { library: "@xmpp", at: "dc1", resource: "pad" } as const;
    await using pad = await enterManaged(cluster, "alice", entrance);
    await becomeAvailable(pad);
    await expectPresence(bob, pad.jid);
    await pad.drop();
    const asked = bob.iq({ type: "get", to: pad.jid, payload: PING });
    await expectMark(bob, phone); // behind the request
    await laptop.task("block", { jid: accountOf(bob) });
    for (const client of clients) await expectPush(client, "block", accountOf(bob));
    await pad.comeBack();
    assert.equal((await asked).errorCondition, "service-unavailable");
    say("bob asks her pad, which has lost its connection: blocked since, he takes it for gone");
  },
};

function privacy(content: string): string {
  return `<query xmlns='jabber:iq:privacy'>${content}</query>`;
}

function slixmpp(client: ChatClient): SlixmppClient {
  assert.ok(client instanceof SlixmppClient);
  return client;
}

function dcOf({ jid }: ChatClient): string {
  if (jid.startsWith("carol@")) return "dc3";
  return jid.endsWith("/phone") ? "dc1" : "dc2";
}

/** Takes the next push of the block list, about this address. */
async function expectPush(client: ChatClient, command: string, jid: string): Promise<void> {
  await client.expectStanza(({ kind, type, xml }: ReceivedStanza) =>
    kind === "iq" && type === "set" && xml.includes("urn:xmpp:blocking") &&
    xml.includes(`<${command} `) && xml.includes(jid)
  );
}
