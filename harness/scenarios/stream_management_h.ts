import assert from "node:assert/strict";
import type { RawSocket } from "../clients/mod.ts";
import { RawClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { enterManaged, proxyBefore } from "./_managed_client.ts";
import { Stage } from "./_stage.ts";

const SM = "urn:xmpp:sm:3";
/** `ack_hold_ms` of every node: longer than another node takes to hold a stanza. */
const HOLD_MS = 8_000;

/** The promise of `h`: the stanza survives the death of the node that sends it. */
export const STREAM_MANAGEMENT_H: Scenario = {
  name: "stream-management-h",
  summary: "h covers stanzas that another node holds at once, and others after `ack_hold_ms`",
  options: {
    datacenters: 2,
    configure: (configuration) => {
      configuration.modules["mod_stream_management"] = { ack_hold_ms: HOLD_MS };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const figures = await Figures.read(cluster.datacenter("dc1"));
    assert.equal(figures.sum("xmpp_sm_unprotected_total"), 0);
    for (const { at, isHeld } of [{ at: "dc2", isHeld: true }, { at: "dc1", isHeld: false }]) {
      await using proxy = await proxyBefore(cluster, at);
      const entrance = { library: "@xmpp", at, resource: at, proxy } as const;
      await using bob = await enterManaged(cluster, "bob", entrance);
      await stage.untilTableSaysOfSession(bob, at);
      await using alice = await logInRaw(cluster);
      // bob's client cannot acknowledge: nothing reaches it.
      proxy.blackHole();
      const sinceMs = performance.now();
      await alice.send(`<message to='${bob.jid}' type='chat' id='1'><body>h</body></message>`);
      await alice.send(`<r xmlns='${SM}'/>`);
      // The node sends a stanza's `h` once it is covered, without another request.
      let h = await readH(alice.socket);
      while (h === "0") h = await readH(alice.socket);
      const tookMs = performance.now() - sinceMs;
      assert.equal(h, "1");
      if (!isHeld) assert.ok(tookMs > HOLD_MS / 2, `h took ${tookMs} ms`);
      // An h that is told because time is up is counted.
      const unprotected = (await Figures.read(cluster.datacenter("dc1")))
        .sum("xmpp_sm_unprotected_total");
      assert.equal(unprotected, isHeld ? 0 : 1);
      say(
        `bob at ${at} acknowledges nothing: alice at dc1 is told h='1' after ${
          Math.round(tookMs)
        } ms`,
      );
      await alice.logout();
      proxy.heal();
      await bob.expectMessage("h");
      await bob.disconnect();
      await stage.untilGone(bob.jid);
    }
  },
};

async function logInRaw(cluster: Cluster): Promise<RawClient> {
  const { host, port } = cluster.datacenter("dc1").clientAddress("none");
  const { password } = cluster.users.find(({ localpart }) => localpart === "alice")!; // of every cluster
  const domain = cluster.globalHost;
  const alice = await RawClient.login({ host, port, domain, localpart: "alice", password });
  await alice.send(`<enable xmlns='${SM}'/>`);
  await alice.socket.readUntil(`<enabled xmlns='${SM}'/>`);
  return alice;
}

/** Reads the `h` of the next `<a/>`. */
async function readH(socket: RawSocket): Promise<string> {
  const text = await socket.readUntil("/>");
  const h = /<a [^>]*h='(\d+)'\/>$/.exec(text)?.[1];
  if (h === undefined) throw new Error(`Expected <a/>: got ${text}`);
  return h;
}
