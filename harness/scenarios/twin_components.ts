import assert from "node:assert/strict";
import type { ChatClient, XmppComponent } from "../clients/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { discoItems } from "./_disco.ts";
import { Stage } from "./_stage.ts";

/** One component in two datacenters. */
export const TWIN_COMPONENTS: Scenario = {
  name: "twin-components",
  summary: "a component is connected at dc1 and dc2: disco lists it once, the nearer one answers",
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [alice, bob, carol] = await Promise.all([
      stage.enterAvailable("alice", "dc1"),
      stage.enterAvailable("bob", "dc2", { library: "slixmpp" }),
      stage.enterAvailable("carol", "dc3"),
    ]);
    const users = [alice, bob, carol];
    const first = await connect(stage, "dc1");
    await stage.untilTableSays(first.jid, "dc1.example.com");
    for (const user of users) await expectAnswer(user, first.jid, "dc1");
    say("it is connected at dc1, and answers alice, bob and carol");

    // dc2 and dc3 have just cached its place, for minutes.
    const second = await connect(stage, "dc2");
    await stage.untilTableSays(second.jid, "dc2.example.com");
    const hosts = [cluster.globalHost, ...cluster.datacenters.map((each) => each.localHost)];
    for (const user of users) {
      for (const host of hosts) {
        await cluster.until(async () => {
          assert.deepEqual(await discoItems(user, host), [first.jid]);
          return true;
        }, { what: `disco of ${host} lists ${first.jid} once to ${user.jid}` });
      }
    }
    await expectAnswer(alice, first.jid, "dc1");
    await expectAnswer(bob, first.jid, "dc2");
    const chosen = await askWho(carol, first.jid);
    assert.ok(["dc1", "dc2"].includes(chosen), `carol was answered by ${chosen}`);
    say(
      `at dc2 too: alice is answered at dc1, bob at dc2, carol by one (${chosen}), disco lists one`,
    );

    await bob.sendMessage(alice.jid, "which one did you get?");
    await alice.expectMessage("which one did you get?");
    const twin = await first.sendMessage(second.jid, "who am I?", { from: `twin@${first.jid}` });
    assert.equal((await first.expectMessage("who am I?")).id, twin);
    say("the one at dc1 writes to its own domain, and reaches itself");

    await first.disconnect();
    await cluster.until(async () => await askWho(alice, first.jid) === "dc2", {
      what: "alice is answered at dc2",
    });
    for (const user of [bob, carol]) await expectAnswer(user, first.jid, "dc2");
    for (const user of users) {
      assert.deepEqual(await discoItems(user, cluster.globalHost), [second.jid]);
    }
    await stage.untilTableSays(second.jid, "dc2.example.com");
    say("it leaves dc1: dc2 answers everyone, and disco still lists it");

    await second.disconnect();
    await stage.untilGone(second.jid);
    await Promise.all(users.map(async (user) => {
      const id = await user.sendMessage(second.jid, "anybody?");
      await user.expectError(id, "service-unavailable");
    }));
    for (const user of users) for (const from of users) await user.expectNothingElse(from);
    say("it leaves dc2: everyone gets an error, and nothing else arrived");
  },
};

/** Connects one of the twins; it answers whoever asks with the name of its datacenter. */
async function connect(stage: Stage, at: string): Promise<XmppComponent> {
  const component = await stage.connectComponent("echo", at);
  component.echo((message) => `${message.body} ${at}`);
  return component;
}

/**
 * Returns the datacenter of the twin that answers `user`, or the error condition when none does.
 */
async function askWho(user: ChatClient, domain: string): Promise<string> {
  const id = await user.sendMessage(domain, "who is it?");
  const answer = await user.expectMessage((message) => message.id === id);
  return answer.errorCondition ?? answer.body!.replace("who is it? ", "");
}

async function expectAnswer(user: ChatClient, domain: string, at: string): Promise<void> {
  assert.equal(await askWho(user, domain), at, `${user.jid} is answered at ${at}`);
}
