import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { PING } from "./_ping.ts";
import { bare, becomeAvailable, isPresence, Stage } from "./_stage.ts";
import { untilChat } from "./_two_nodes.ts";

/** Two clients that bind the same full JID. */
export const RESOURCE_CONFLICT: Scenario = {
  name: "resource-conflict",
  summary: "of two clients with one full JID the newer stays; in two datacenters both stay",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc3");
    const older = await stage.enterAvailable("alice", "dc1", { resource: "pager" });
    await expectChat(bob, older, older.jid);
    const newer = await stage.enter("alice", "dc1", {
      resource: "pager",
      library: "slixmpp",
      security: "direct",
    });
    assert.equal(newer.jid, older.jid);
    await assert.rejects(older.expectMessage("anything more"), /conflict/);
    await stage.untilTableSaysOfSession(newer, "dc1");
    await expectChat(bob, newer, newer.jid);
    await becomeAvailable(newer);
    await expectChat(bob, newer, bare(newer.jid));
    await expectChat(newer, bob, bob.jid);
    say("the older client at dc1 gets a conflict, and later messages go to the newer one");

    // Across datacenters nobody ends the older session: the table names the newest login. A
    // datacenter that has just looked up the older login may use it until its cache entry expires.
    // dc2 has not looked it up.
    const away = await stage.enterAvailable("alice", "dc3", { resource: "pager" });
    assert.equal(away.jid, newer.jid);
    await stage.untilTableSaysOfSession(away, "dc3");
    const carol = await stage.enterAvailable("carol", "dc2");
    await expectChat(carol, away, away.jid);
    say("the same full JID at dc3: messages go to the newest login");

    await away.disconnect();
    await stage.untilTableSaysOfSession(newer, "dc1");
    await expectChat(carol, newer, newer.jid);
    await newer.expectNothingElse(bob);
    await bob.expectNothingElse(newer);
    say("it leaves: messages go to the session at dc1 again, and nothing else arrived");
  },
};

/** Stanzas that a user sends to her own account. */
export const ONESELF: Scenario = {
  name: "oneself",
  summary:
    "alice writes to her own clients, the same one and others, at her datacenter and elsewhere",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const phone = await stage.enter("alice", "dc1", { resource: "phone" });
    await expectChat(phone, phone, phone.jid);
    const early = await phone.sendMessage(bare(phone.jid), "anybody?");
    await phone.expectError(early, "service-unavailable");
    await becomeAvailable(phone);
    await expectChat(phone, phone, phone.jid);
    await expectChat(phone, phone, bare(phone.jid));
    say("to her own full JID, and after presence to her bare JID");

    const desk = await stage.enter("alice", "dc1", { resource: "desk", library: "slixmpp" });
    await desk.presence({ priority: 5 });
    for (const client of [phone, desk]) {
      await client.expectStanza(isPresence({ from: desk.jid, type: undefined }));
    }
    await desk.expectStanza(isPresence({ from: phone.jid, type: undefined }));
    say("her two clients at dc1 learn of each other");
    await expectChat(phone, desk, desk.jid);
    await expectChat(desk, phone, phone.jid);
    await expectChat(phone, desk, bare(phone.jid));
    await expectChat(desk, desk, bare(desk.jid));
    say("each is reached by its full JID, and the one of higher priority by the bare JID");

    const laptop = await stage.enterAvailable("alice", "dc3", { resource: "laptop" });
    await stage.untilTableSaysOfSession(laptop, "dc3");
    await expectChat(phone, laptop, laptop.jid);
    await expectChat(laptop, desk, desk.jid);
    // Memory may still say that all her clients are at one datacenter.
    await untilChat(cluster, laptop, desk, bare(phone.jid), (body) => laptop.expectMessage(body));
    await untilChat(cluster, phone, laptop, bare(phone.jid), (body) => desk.expectMessage(body));
    for (const client of [phone, laptop]) {
      const body = `a note of ${client.jid}`;
      await client.sendMessage(bare(phone.jid), body);
      for (const device of [desk, laptop]) await device.expectMessage(body);
    }
    say(
      "a third client at dc3 is reached too; messages to the bare JID reach the best client of " +
        "each datacenter",
    );

    // The table does not know this resource, so the bare JID decides: it is where the last login
    // was.
    const gone = await phone.sendMessage(`${bare(phone.jid)}/nowhere`, "to whoever is there");
    assert.equal((await laptop.expectMessage("to whoever is there")).id, gone);
    const asked = await phone.iq({
      type: "get",
      to: `${bare(phone.jid)}/nowhere`,
      payload: PING,
    });
    assert.equal(asked.errorCondition, "service-unavailable");
    say(
      "a resource that is not there: a chat message goes to the last login, a request comes back",
    );

    await desk.disconnect();
    await phone.expectStanza(isPresence({ from: desk.jid, type: "unavailable" }));
    await expectChat(phone, phone, bare(phone.jid));
    await laptop.expectMessage(`${phone.jid} writes to ${bare(phone.jid)}`);
    await phone.expectNothingElse(laptop);
    await laptop.expectNothingElse(phone);
    say("the desk leaves: the phone gets its unavailable presence, and nothing else arrived");
  },
};

/** `from` writes to `address`, and `to` gets it, as it was sent. */
async function expectChat(from: ChatClient, to: ChatClient, address: string): Promise<void> {
  const body = `${from.jid} writes to ${address}`;
  const id = await from.sendMessage(address, body);
  const message = await to.expectMessage(body);
  assert.deepEqual([message.id, message.from, message.to], [id, from.jid, address]);
}
