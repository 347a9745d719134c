import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { discoItems } from "./_disco.ts";
import { Stage } from "./_stage.ts";

/** Hidden components, and a datacenter that shows them to its users. */
export const HIDDEN_COMPONENTS: Scenario = {
  name: "hidden-components",
  summary: "disco at dc3 shows users the hidden components of every datacenter; dc1 and dc2 do not",
  options: {
    configure({ modules }, { name }) {
      if (name === "dc3") modules["mod_disco"] = { users_can_see_hidden_services: true };
    },
  },
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [alice, bob, carol] = await Promise.all([
      stage.enterAvailable("alice", "dc1"),
      stage.enterAvailable("bob", "dc2", { library: "slixmpp" }),
      stage.enterAvailable("carol", "dc3"),
    ]);
    const echo = await stage.connectComponent("echo", "dc2");
    const hidden = await stage.connectComponent("hidden", "dc1");
    for (const [component, at] of [[echo, "dc2"], [hidden, "dc1"]] as const) {
      await stage.untilTableSays(component.jid, `${at}.example.com`);
    }
    const untilListed = async (user: ChatClient, ...domains: readonly string[]) => {
      for (const host of [cluster.globalHost, ...cluster.datacenters.map((dc) => dc.localHost)]) {
        // The datacenter that answers decides. For the global host that is the user's own
        // datacenter.
        const isShown = host === "dc3.example.com" ||
          (user === carol && host === cluster.globalHost);
        const wanted = domains.filter((each) => isShown || each !== hidden.jid).toSorted();
        await cluster.until(async () => {
          assert.deepEqual(await discoItems(user, host), wanted);
          return true;
        }, { what: `disco of ${host} lists ${wanted} to ${user.jid}` });
      }
    };
    for (const user of [alice, bob, carol]) await untilListed(user, echo.jid, hidden.jid);
    say("echo (dc2) is listed everywhere; hidden (dc1) only where dc3 answers");

    const twin = await stage.connectComponent("hidden", "dc3");
    await untilListed(carol, echo.jid, hidden.jid);
    say("hidden is connected at dc3 too: it is listed once");

    for (const user of [alice, bob, carol]) {
      const nearest = user === carol ? twin : hidden;
      await user.sendMessage(hidden.jid, `from ${user.jid}`);
      if (user === bob) {
        const arrived = () =>
          [hidden, twin].filter(({ received }) =>
            received.some(({ body }) => body === `from ${user.jid}`)
          );
        const [recipient] = await cluster.until(
          () => arrived().length > 0 && arrived(),
          { what: "bob's message arrives at one of the two" },
        );
        await recipient!.expectMessage(`from ${user.jid}`);
      } else await nearest.expectMessage(`from ${user.jid}`);
    }
    say("everyone reaches it, listed or not: alice the one at dc1, carol the one at dc3");

    await hidden.disconnect();
    await twin.disconnect();
    await stage.untilGone(hidden.jid);
    for (const user of [alice, bob, carol]) {
      await untilListed(user, echo.jid);
      await user.expectNothingElse();
    }
    await echo.expectNothingElse();
    say("it disconnects: no datacenter lists it, and nothing else arrived");
  },
};
