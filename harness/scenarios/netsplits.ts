import type { Cluster } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Correspondence } from "./_correspondence.ts";
import { untilNothingIsHeld } from "./_figures.ts";
import { easilySplit, untilLinkIsDown } from "./_splits.ts";
import { Stage } from "./_stage.ts";

const EXPIRE_AFTER_SECONDS = 10;

/** Length of a split: the event to wait for before it is healed. */
type Length = "a moment" | "until links are given up" | "until the tables forget";

const SPLITS: readonly Length[] = [
  "a moment",
  "until links are given up",
  "until the tables forget",
  "a moment",
  "until the tables forget",
];

/**
 * dc1 is separated from dc2 and dc3 again and again, while everyone goes on writing to everyone.
 *
 * A stanza may arrive just before a split, before the sender's node learns of its delivery. If the
 * split outlasts `expire_after`, that stanza also comes back as an error: the node cannot know
 * better. Everyone therefore pauses before each split until no stanza is on its way, and each
 * message must have one fate.
 */
export const NETSPLITS: Scenario = {
  name: "netsplits",
  summary:
    "dc1 is separated from the others five times: each message arrives or comes back, in order",
  replications: REPLICATIONS,
  options: easilySplit(EXPIRE_AFTER_SECONDS),
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc3");
    const everyone = [[alice, "dc1"], [bob, "dc2"], [carol, "dc3"]] as const;
    for (const [who, at] of everyone) await stage.untilTableSaysOfSession(who, at);
    await using letters = new Correspondence(cluster, [alice, bob, carol]);
    letters.start();
    await letters.goesOnFor(10);

    for (const length of SPLITS) {
      await letters.pause();
      await untilNothingIsHeld(cluster);
      const returned = letters.returnedTo(alice);
      cluster.isolate("dc1");
      letters.start();
      await letters.goesOnFor(10);
      if (length !== "a moment") await untilLinksAreDown(cluster);
      if (length === "until the tables forget") {
        for (const who of [bob, carol]) await stage.untilTableSays(who.jid, null, ["dc1"]);
        await stage.untilTableSays(alice.jid, null, ["dc2", "dc3"]);
        await cluster.until(() => letters.returnedTo(alice) > returned, {
          what: "alice is told that her messages do not arrive",
        });
      }
      cluster.rejoin("dc1");
      await letters.flowsAgain();
      for (const [who, at] of everyone) await stage.untilTableSaysOfSession(who, at);
      say(`separated for ${length}, and healed: everyone reaches everyone`);
    }

    const { sent, returned } = await letters.check();
    const beside = letters.between(bob, carol);
    if (beside.returned > 0) throw new Error("Expected bob and carol not to notice anything");
    say(`${sent} messages: ${sent - returned} arrived, once and in order; ${returned} came back`);
  },
};

/** Waits until neither side has a link that crosses the split. */
async function untilLinksAreDown(cluster: Cluster): Promise<void> {
  const [dc1, ...others] = cluster.datacenters;
  for (const other of others) {
    await untilLinkIsDown(cluster, dc1!, other);
    await untilLinkIsDown(cluster, other, dc1!);
  }
}
