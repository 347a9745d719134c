import assert from "node:assert/strict";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { untilNothingIsHeld } from "./_figures.ts";
import { ascents, assertNoneReturned, MessageRun } from "./_message_run.ts";
import { easilySplit, untilLinkIsDown } from "./_splits.ts";
import { bare, Stage } from "./_stage.ts";

const MESSAGES = 20;
/** Longer than the scenario takes, so that no message expires. */
const EXPIRE_AFTER_SECONDS = 60;

/** A datacenter is silently cut off, and one of its users logs in at another. */
export const MOVED_BEHIND_SPLIT: Scenario = {
  name: "moved-behind-split",
  summary:
    "messages to bob's datacenter, which is silently cut off, reach him where he logs in next",
  replications: REPLICATIONS,
  options: easilySplit(EXPIRE_AFTER_SECONDS),
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    const carol = await stage.enterAvailable("carol", "dc3");
    await stage.untilTableSaysOfSession(bob, "dc2");
    for (const other of [alice, carol]) {
      await other.sendMessage(bob.jid, "before");
      await bob.expectMessage((message) => message.body === "before" && message.from === other.jid);
    }
    await untilNothingIsHeld(cluster); // dc2 could no longer report recent deliveries
    cluster.isolate("dc2");
    const runs = [alice, carol].map((sender) => new MessageRun(sender));
    const send = () => Promise.all(runs.map((run) => run.send(bob.jid, MESSAGES)));
    await send();
    for (const name of ["dc1", "dc3"]) {
      await untilLinkIsDown(cluster, cluster.datacenter(name), cluster.datacenter("dc2"));
    }
    await send();
    say("dc2 is cut off; alice and carol write to bob there, before and after their nodes notice");

    const moved = await stage.enterAvailable("bob", "dc3", { resource: "phone" });
    for (const run of runs) {
      const fates = await run.fates(cluster, [moved]);
      assertNoneReturned(fates, "he is reached");
      const { arrived } = fates;
      assert.ok(ascents(arrived[0]!) <= 2, `more than two ways to dc3: ${arrived[0]}`);
    }
    say("he logs in at dc3: all messages reach him there");

    cluster.rejoin("dc2");
    await stage.untilTableSaysOfSession(moved, "dc3");
    for (const other of [alice, carol]) {
      await other.sendMessage(bare(moved.jid), "after");
      await moved.expectMessage((message) =>
        message.body === "after" && message.from === other.jid
      );
      await moved.expectNothingElse(other);
    }
    say("dc2 is back: nothing arrives twice");
  },
};
