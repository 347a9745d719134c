import assert from "node:assert/strict";
import type { ClusterOptions, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import {
  accountOf,
  befriend,
  expectMark,
  expectPresence,
  logInFully,
  presencesFrom,
} from "./_contacts.ts";
import { Figures } from "./_figures.ts";
import { Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

const THREE: ClusterOptions = {
  datacenters: 3,
  configure: ({ modules }) => {
    const { redis } = modules.mod_global_distrib;
    redis["expire_after"] = 4;
    redis["refresh_after"] = 1;
  },
};

/** Presence of people whose node or datacenter is gone (no ghosts). */
export const GHOSTS: Scenario = {
  name: "ghosts",
  summary:
    "people at a datacenter that is killed or cut off go offline for their contacts, once, " +
    "and come back with it; a login elsewhere with the same resource stays",
  options: THREE,
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await logInFully(await stage.enter("alice", "dc1"));
    const bob = await logInFully(await stage.enter("bob", "dc2"));
    const carol = await logInFully(await stage.enter("carol", "dc3"));
    await befriend(alice, bob);
    await befriend(alice, carol);
    await carol.presence({ to: bob.jid });
    await expectPresence(bob, carol.jid);
    say("alice, bob and carol are at three datacenters; carol has sent bob directed presence");

    cluster.isolate("dc2");
    await expectPresence(alice, bob.jid, "unavailable");
    await expectPresence(bob, alice.jid, "unavailable");
    await expectPresence(bob, carol.jid, "unavailable");
    say("dc2 is cut off: both sides see the others go");
    const late = await logInFully(await stage.enter("bob", "dc2", { resource: "late" }));
    cluster.rejoin("dc2");
    await expectPresence(alice, bob.jid);
    await expectPresence(alice, late.jid);
    for (const client of [bob, late]) await expectPresence(client, alice.jid);
    await expectMark(alice, bob);
    await expectMark(bob, alice);
    assert.deepEqual(presencesFrom(alice, bob.jid), [undefined, "unavailable", undefined], "once");
    assert.deepEqual(presencesFrom(alice, late.jid), [undefined], "once");
    say("it is back: everybody sees everybody again, once, and who has logged in meanwhile");

    const { node } = cluster.datacenter("dc3");
    await node.kill();
    await expectPresence(alice, carol.jid, "unavailable");
    assert.deepEqual(presencesFrom(alice, carol.jid), [undefined, "unavailable"], "once");
    await node.start();
    const again = await logInFully(await stage.enter("carol", "dc3"));
    await expectPresence(alice, again.jid);
    await expectPresence(again, alice.jid);
    assert.equal(accountOf(again), accountOf(carol));
    say("dc3 is killed, and carol goes; she comes back with it");

    const [, resource] = again.jid.split("/");
    const newer = await logInFully(await stage.enter("carol", "dc1", { resource: resource! }));
    assert.equal(newer.jid, again.jid);
    await expectPresence(alice, newer.jid);
    const before = presencesFrom(alice, newer.jid).length;
    const dropped = await outdatedAt(cluster.datacenter("dc1"));
    await again.kill();
    await cluster.until(
      async () => await outdatedAt(cluster.datacenter("dc1")) > dropped,
      { what: "dc1 drops the end of carol's older session", withinMs: PATIENCE_MS },
    );
    await expectMark(alice, newer);
    assert.deepEqual(presencesFrom(alice, newer.jid).slice(before), []);
    say("carol logs in at dc1 as the same resource: the end of her session at dc3 removes nothing");
  },
};

/** Returns how many outdated presences a datacenter's node has dropped. */
async function outdatedAt(datacenter: Datacenter): Promise<number> {
  return (await Figures.read(datacenter)).sum("causeway_presence_outdated_total");
}
