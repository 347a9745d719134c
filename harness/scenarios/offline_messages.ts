import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { Stage } from "./_stage.ts";

/** A host that all datacenters serve, and that keeps messages for its people. */
const HOST = "chat.example.org";
const ERIN = `erin@${HOST}`;
/** The certificates of the nodes do not name the host. */
const PLAIN = { security: "none", library: "slixmpp", domain: HOST } as const;

/** Messages for an account that is offline wait in the database (XEP-0160). */
export const OFFLINE_MESSAGES: Scenario = {
  name: "offline-messages",
  summary: "messages to an account that is offline wait for its next login at any datacenter, " +
    "in order, once, also when the node that kept them is killed",
  options: {
    datacenters: 3,
    configure(configuration) {
      configuration.hosts.push(HOST);
      configuration["host_config"] = { [HOST]: { modules: { mod_offline: {} } } };
      configuration.modules.mod_global_distrib["bounce"] = { resend_after_ms: 20, max_retries: 1 };
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    await stage.addAccount(ERIN, "dc1");
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");

    await alice.sendMessage(ERIN, "one");
    await alice.sendMessage(`${ERIN}/gone`, "two");
    await alice.sendMessage(ERIN, "news", { type: "headline" });
    await untilKept(cluster, 2);
    await bob.sendMessage(ERIN, "three");
    await untilKept(cluster, 3);
    const refused = await alice.sendMessage(`nobody@${HOST}`, "who is there?");
    await alice.expectError(refused, "service-unavailable");
    assert.deepEqual(errorsAt(bob), []);
    say("alice at dc1 and bob at dc2 write to erin, who is offline: no error comes back");

    await dc1.node.kill();
    const erin = await stage.enterAvailable("erin", "dc2", PLAIN);
    for (const body of ["one", "two", "three"]) {
      const message = await erin.expectMessage(body);
      assert.match(
        message.xml,
        new RegExp(`urn:xmpp:delay[^>]*${HOST}|${HOST}[^>]*urn:xmpp:delay`),
      );
    }
    assert.deepEqual(bodiesOf(erin), ["one", "two", "three"]);
    say("dc1 is killed; she logs in at dc2, and gets all of them in order, with their time");

    await dc1.node.start();
    await erin.disconnect();
    const texts = Array.from({ length: 10 }, (_, i) => `text ${i}`);
    for (const text of texts) await bob.sendMessage(ERIN, text);
    await untilKept(cluster, 1 + texts.length, dc2.name);
    const both = await Promise.all([
      stage.enterAvailable("erin", "dc1", { ...PLAIN, resource: "phone" }),
      stage.enterAvailable("erin", "dc3", { ...PLAIN, resource: "desk" }),
    ]);
    const all = () => both.flatMap(bodiesOf);
    await cluster.until(() => Promise.resolve(all().length >= texts.length), {
      what: "erin's clients get what was kept",
    });
    await bob.sendMessage(ERIN, "now");
    // It is kept at dc2, where she is not, and found by whichever of her nodes looks first.
    await cluster.until(() => Promise.resolve(all().includes("now")), {
      what: "one of erin's clients gets a message that is kept now",
    });
    for (const client of both) {
      const own = bodiesOf(client).filter((body) => body.startsWith("text"));
      assert.deepEqual(own, own.toSorted(), "in their order");
    }
    const kept = all().filter((body) => body !== "now").toSorted();
    assert.deepEqual(kept, texts);
    say("she logs in at dc1 and dc3 at once: each message comes once, to one of her clients");
  },
};

function bodiesOf(client: ChatClient): string[] {
  return client.received.flatMap(({ body }) => body === undefined ? [] : [body]);
}

function errorsAt(client: ChatClient): readonly string[] {
  return client.received.filter(({ type }) => type === "error").map(({ xml }) => xml);
}

/** Waits until the nodes, or those of one datacenter, have together kept so many messages. */
async function untilKept(cluster: Cluster, least: number, at?: string): Promise<void> {
  await cluster.until(async () => {
    let sum = 0;
    for (const datacenter of cluster.datacenters) {
      if (at !== undefined && datacenter.name !== at) continue;
      const figures = await Figures.read(datacenter);
      sum += figures.sum("causeway_offline_messages_total", { outcome: "kept" });
    }
    return sum >= least;
  }, { what: `${least} messages are kept` });
}
