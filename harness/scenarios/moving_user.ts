import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { bare, Stage } from "./_stage.ts";

/** An account that logs out at one datacenter and in at another. */
export const MOVING_USER: Scenario = {
  name: "moving-user",
  summary: "bob moves from dc2 to dc3, and later has two sessions at once: messages follow him",
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc3");
    const account = `bob@${cluster.globalHost}`;

    const atDc2 = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    await expectMessages([alice, carol], atDc2, account, "bob is at dc2");
    await expectMessages([alice, carol], atDc2, atDc2.jid, "his phone is at dc2");
    say("alice (dc1) and carol (dc3) reach bob at dc2");

    // alice's datacenter has just cached bob's place.
    await atDc2.disconnect();
    const atDc3 = await stage.enterAvailable("bob", "dc3", { resource: "phone" });
    assert.equal(atDc3.jid, atDc2.jid);
    await expectMessages([alice, carol], atDc3, account, "bob is at dc3");
    await expectMessages([alice, carol], atDc3, atDc3.jid, "his phone is at dc3");
    say("he logs out and in at dc3: the next messages find him there");

    await atDc3.kill();
    const atDc1 = await stage.enterAvailable("bob", "dc1", { resource: "phone" });
    await expectMessages([alice, carol], atDc1, account, "bob is at dc1");
    say("his connection is cut, and he logs in at dc1: the next messages find him there");

    const tablet = await stage.enterAvailable("bob", "dc2", { resource: "tablet" });
    await stage.untilTableSays(account, "dc2.example.com");
    await stage.untilTableSays(tablet.jid, "dc2.example.com");
    await stage.untilTableSays(atDc1.jid, "dc1.example.com");
    await expectMessages([atDc1], tablet, tablet.jid, "from my phone to my tablet");
    await expectMessages([tablet], atDc1, atDc1.jid, "and back");
    await expectMessages([alice, carol], tablet, tablet.jid, "to the tablet");
    await expectMessages([alice, carol], atDc1, atDc1.jid, "to the phone");
    say("he logs in at dc2 too: each resource is reached where it is");

    await tablet.disconnect();
    await stage.untilTableSays(account, "dc1.example.com");
    await stage.untilTableSays(tablet.jid, null);
    await expectMessages([alice, carol], atDc1, account, "bob is at dc1 still");
    say("he leaves dc2: his bare JID goes back to dc1");

    for (const from of [alice, carol]) await atDc1.expectNothingElse(from);
    for (const to of [alice, carol]) await to.expectNothingElse(atDc1);
    say("nothing else arrived anywhere");
  },
};

async function expectMessages(
  senders: readonly ChatClient[],
  recipient: ChatClient,
  address: string,
  body: string,
): Promise<void> {
  for (const sender of senders) {
    const id = await sender.sendMessage(address, body);
    const message = await recipient.expectMessage((stanza) =>
      stanza.body === body && stanza.from === sender.jid
    );
    assert.deepEqual([message.id, bare(message.to ?? "")], [id, bare(address)]);
  }
}
