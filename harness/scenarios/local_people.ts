import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { ClusterOptions } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { PING } from "./_ping.ts";
import { bare, Stage } from "./_stage.ts";
import { expectChat, pairs, TWO_NODES, untilChat } from "./_two_nodes.ts";

/** A host that both datacenters list, and one that dc1 alone lists. */
const SHARED = "chat.example.org";
const ALONE = "lab.example.org";

const OPTIONS: ClusterOptions = {
  ...TWO_NODES,
  configure: (configuration, place) => {
    TWO_NODES.configure?.(configuration, place);
    configuration.hosts.push(SHARED);
    if (place.name === "dc1") configuration.hosts.push(ALONE);
  },
};

/** Every entry of `hosts` has accounts, not only the global host. */
export const LOCAL_PEOPLE: Scenario = {
  name: "local-people",
  summary:
    "users of the local host and of other hosts log in where these are served, and write to " +
    "everyone",
  options: OPTIONS,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = cluster.datacenters.map((each) => each.localHost) as [string, string];
    await stage.addAccount(`carol@${dc1}`, "dc1");
    await stage.addAccount(`dave@${dc2}`, "dc2");
    await stage.addAccount(`erin@${SHARED}`, "dc1");
    await stage.addAccount(`frank@${SHARED}`, "dc2");
    await stage.addAccount(`gina@${ALONE}`, "dc1");
    const refused = stage.addAccount(`gina@${ALONE}`, "dc2");
    await assert.rejects(refused, /lab\.example\.org is not one of hosts/);
    say("accounts are added where their host is served, and nowhere else");

    const alice = await stage.enterAvailable("alice", "dc2", { node: 1 });
    const bob = await stage.enterAvailable("bob", "dc1");
    const carol = await stage.enterAvailable("carol", "dc1", { domain: dc1, resource: "desk" });
    const dave = await stage.enterAvailable("dave", "dc2", {
      domain: dc2,
      library: "slixmpp",
      node: 1,
    });
    assert.equal(carol.jid, `carol@${dc1}/desk`);
    // The certificates of these nodes do not name the other hosts.
    const plain = { security: "none", library: "slixmpp" } as const;
    const gina = await stage.enterAvailable("gina", "dc1", { ...plain, domain: ALONE, node: 1 });
    const wrong = stage.enter("carol", "dc2", { ...plain, domain: dc1 });
    await assert.rejects(wrong, `carol@${dc1} is let in at dc2`);
    for (const user of [alice, bob]) {
      const at = user === alice ? "dc2" : "dc1";
      await stage.untilTableSaysOfSession(user, at);
    }
    say(`${carol.jid} logs in at dc1, ${dave.jid} at dc2, ${gina.jid} at dc1`);

    const people = [alice, bob, carol, dave, gina];
    for (const [from, to] of pairs(people)) {
      await expectChat(from, to);
      await expectChat(from, to, bare(to.jid));
    }
    say("each writes to each, to full and bare JIDs, within and between datacenters");

    const phone = await stage.enter("carol", "dc1", { domain: dc1, node: 1, resource: "phone" });
    await phone.presence({ priority: 5 });
    for (const from of [dave, alice, gina, bob]) {
      await untilChat(cluster, from, phone, bare(carol.jid));
      await expectChat(from, carol);
    }
    say("carol's phone at another node of dc1 gets the messages to her bare JID, whoever writes");

    const here = await stage.enterAvailable("erin", "dc1", { ...plain, domain: SHARED });
    const there = await stage.enterAvailable("erin", "dc2", { ...plain, domain: SHARED });
    const frank = await stage.enterAvailable("frank", "dc2", { ...plain, domain: SHARED, node: 1 });
    await expectChat(frank, there, bare(there.jid));
    await expectChat(there, frank, bare(frank.jid));
    await expectChat(bob, here, bare(here.jid));
    await expectChat(alice, there, bare(there.jid));
    for (const erin of [here, there]) {
      await expectChat(erin, alice);
      await expectChat(erin, bob);
      await expectChat(erin, carol);
    }
    say(`${SHARED} is a host of its own in each datacenter that lists it`);

    for (
      const [user, host] of [[carol, dc1], [dave, dc2], [gina, ALONE], [frank, SHARED]] as const
    ) {
      for (const payload of [PING, VERSION, TIME, INFO, ITEMS]) {
        const answer = await user.iq({ type: "get", to: host, payload });
        assert.equal(answer.type, "result", `${host} answers ${answer.xml}`);
      }
      const info = await user.iq({ type: "get", to: bare(user.jid), payload: INFO });
      assert.match(info.xml, /category=["']account["']/);
    }
    const far = await alice.iq({ type: "get", to: ALONE, payload: PING });
    assert.deepEqual([far.type, far.from], ["result", ALONE]);
    say("services answer at every one of the hosts, and for their accounts");

    for (const user of [alice, bob, carol, dave]) {
      const id = await user.sendMessage(`nobody@${dc1}`, "anybody there?");
      await user.expectError(id, "service-unavailable");
    }
    say(`a message to an unknown account at ${dc1} comes back`);
    await expectNothingElse([...people, phone, here, there, frank]);
  },
};

const VERSION = "<query xmlns='jabber:iq:version'/>";
const TIME = "<time xmlns='urn:xmpp:time'/>";
const INFO = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
const ITEMS = "<query xmlns='http://jabber.org/protocol/disco#items'/>";

async function expectNothingElse(clients: readonly ChatClient[]): Promise<void> {
  for (const client of clients) await client.expectNothingElse();
}
