import assert from "node:assert/strict";
import { DinoClient, SocksGateway, XServer } from "../desktop/mod.ts";
import type { Scenario } from "../scenario.ts";
import { accountOf, befriend, expectPresence, expectPush, logInFully } from "./_contacts.ts";
import { Stage } from "./_stage.ts";

const ENABLE_CARBONS = "<enable xmlns='urn:xmpp:carbons:2'/>";

/** A person at a graphical client: Dino, with its windows on a screen in memory. */
export const GRAPHICAL_CLIENT: Scenario = {
  name: "graphical-client",
  summary: "alice, with the program Dino at dc1, sees her roster and chats with bob at dc2",
  // Dino takes a certificate of the cluster's own authority only below this domain.
  options: { datacenters: 2, globalHost: "causeway.onion" },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const laptop = await logInFully(await stage.enter("alice", "dc2", { resource: "laptop" }));
    const bob = await logInFully(
      await stage.enter("bob", "dc2", { library: "slixmpp", resource: "desk" }),
    );
    const [alice, his] = [accountOf(laptop), accountOf(bob)];
    const carol = `carol@${cluster.globalHost}`;
    await befriend(laptop, bob);
    for (const [jid, name] of [[his, "Robert"], [carol, "Caroline"]] as const) {
      await laptop.iq({
        type: "set",
        payload: `<query xmlns='jabber:iq:roster'><item jid='${jid}' name='${name}'/></query>`,
      });
      await expectPush(laptop, jid, { name });
    }
    await laptop.iq({ type: "set", payload: ENABLE_CARBONS });
    say("alice has two contacts, of whom bob is at dc2");

    const dc1 = cluster.datacenter("dc1");
    await using gateway = await SocksGateway.start(
      `${cluster.globalHost}:5222`,
      dc1.clientAddress("starttls"),
    );
    await using screen = await XServer.start(cluster.run);
    const user = cluster.users.find(({ localpart }) => localpart === "alice");
    assert.ok(user !== undefined);
    await using dino = await DinoClient.start({
      run: cluster.run,
      screen,
      proxy: gateway.url,
      domain: cluster.globalHost,
      ...user,
      resource: "dino",
    });
    await expectPresence(bob, dino.jid);
    await stage.untilTableSays(dino.jid, dc1.localHost);
    await dino.expectRoster([
      { jid: his, name: "Robert", subscription: "both" },
      { jid: carol, name: "Caroline", subscription: "none" },
    ]);
    await dino.showRoster(cluster.run.path("dino-roster.png"));
    say("Dino logs in at dc1 and has her roster, and bob sees her come");

    await dino.choose("Robert");
    await dino.say("hello from a window");
    assert.equal((await bob.expectMessage("hello from a window")).from, dino.jid);
    const messages = [{ body: "hello from a window", counterpart: his, isSent: true }];
    await dino.expectMessages(messages);
    for (const body of ["grüße & <b>", "😀"]) {
      await bob.sendMessage(alice, body);
      messages.push({ body, counterpart: his, isSent: false });
      await dino.expectMessages(messages);
    }
    say("she picks bob there and writes to him, and Dino shows what he answers");

    await laptop.sendMessage(bob.jid, "from the laptop");
    await bob.expectMessage("from the laptop");
    messages.push({ body: "from the laptop", counterpart: his, isSent: true });
    await dino.expectMessages(messages);
    await laptop.expectStanza(({ xml }) =>
      xml.includes("urn:xmpp:carbons:2") && xml.includes(">hello from a window<")
    );
    await screen.screenshot(cluster.run.path("dino-chat.png"));
    say("it shows what her laptop at dc2 writes, and the laptop what was written in Dino");

    // It leaves its stream open: the session itself stays for a while, and could be resumed.
    await dino.quit();
    await expectPresence(bob, dino.jid, "unavailable");
    say("she quits Dino, and bob sees her go");
  },
};
