import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { bodiesOf, enterManaged, errorsOf, numbered, proxyBefore } from "./_managed_client.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

const MESSAGES = 150;

/** Real clients come back to their stream (XEP-0198 §5). */
export const STREAM_MANAGEMENT_RESUME: Scenario = {
  name: "stream-management-resume",
  summary: "bob's connection is cut under traffic; he resumes, and nothing is lost or duplicated",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    for (const library of ["@xmpp", "slixmpp"] as const) {
      await using proxy = await proxyBefore(cluster, "dc2");
      const resource = library === "slixmpp" ? "python" : "js";
      await using bob = await enterManaged(cluster, "bob", { library, at: "dc2", resource, proxy });
      await becomeAvailable(bob);
      const ping = await bob.iq({ type: "get", payload: "<ping xmlns='urn:xmpp:ping'/>" });
      assert.equal(ping.type, "result");
      const down = numbered(`to ${library}`, 1, MESSAGES);
      // slixmpp forgets its unacknowledged stanzas when it asks to resume.
      const up = numbered(`from ${library}`, 1, library === "slixmpp" ? 0 : 20);
      for (const [index, body] of down.entries()) {
        if (index === 50) {
          for (const each of up) await bob.sendMessage(alice.jid, each);
          proxy.refuse();
          proxy.cut();
        }
        await alice.sendMessage(bob.jid, body);
        if (index === 100) {
          proxy.heal();
          await bob.comeBack();
        }
      }
      assert.equal(proxy.counts.cuts, 1);
      await bob.expectMessage(down.at(-1)!);
      for (const body of up.slice(-1)) await alice.expectMessage(body);
      assert.deepEqual(bodiesOf(bob, `to ${library}`), down);
      assert.deepEqual(bodiesOf(alice, `from ${library}`), up);
      assert.deepEqual([errorsOf(alice), errorsOf(bob)], [[], []]);
      say(`${library} at dc2: ${down.length} messages from dc1 over a cut, each once and in order`);
      await bob.disconnect();
      await stage.untilGone(bob.jid);
    }
  },
};
