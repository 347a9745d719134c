import assert from "node:assert/strict";
import type { Cluster } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { ascents, assertNoneReturned, isAscending, MessageRun } from "./_message_run.ts";
import { bare, Stage } from "./_stage.ts";

/** Messages of each phase. */
const MESSAGES = 50;

/** A user moves from one datacenter to another while others write to him. */
export const GRACEFUL_MOVE: Scenario = {
  name: "graceful-move",
  summary: "bob moves from dc2 to dc3 with messages in flight: all arrive once, and soon in order",
  options: {
    configure({ modules }) {
      // Longer than a new login takes, so that bouncing messages reach him.
      modules.mod_global_distrib["bounce"] = { resend_after_ms: 200, max_retries: 8 };
    },
  },
  replications: REPLICATIONS,
  async run(cluster, say) {
    for (const address of ["full", "bare"] as const) {
      const [atDc2, atDc3] = await move(cluster, address);
      say(`to his ${address} JID: ${atDc2} messages arrived at dc2, ${atDc3} at dc3, none twice`);
    }
    say("messages after the move arrived in order, and nothing else arrived anywhere");
  },
};

/** Moves bob, and returns how many messages he received at his old and his new place. */
async function move(
  cluster: Cluster,
  address: "full" | "bare",
): Promise<readonly [atDc2: number, atDc3: number]> {
  await using stage = new Stage(cluster);
  const resource = `moving-${address}`;
  const alice = await stage.enterAvailable("alice", "dc1");
  const before = await stage.enterAvailable("bob", "dc2", { resource });
  const to = address === "full" ? before.jid : bare(before.jid);
  await stage.untilTableSaysOfSession(before, "dc2");

  const moving = new MessageRun(alice);
  await moving.send(to, MESSAGES);
  await moving.untilArrived(cluster, before, MESSAGES / 2);
  await Promise.all([before.disconnect(), moving.send(to, MESSAGES)]);
  await moving.send(to, MESSAGES);
  const after = await stage.enterAvailable("bob", "dc3", { resource });
  await moving.send(to, MESSAGES);
  const moved = await moving.fates(cluster, [before, after]);
  assertNoneReturned(moved, "he was away for a moment only");
  const { arrived: [atDc2, atDc3] } = moved;
  assert.ok(isAscending(atDc2!), `out of order at dc2: ${atDc2}`);
  // Messages reach dc3 through dc2 or directly from dc1. Each route keeps its order.
  assert.ok(ascents(atDc3!) <= 2, `more than two ways to dc3: ${atDc3}`);
  assert.ok(atDc2!.length > 0 && atDc3!.length > MESSAGES, "messages came while he moved");

  await stage.untilTableSaysOfSession(after, "dc3");
  const settled = new MessageRun(alice);
  await settled.send(to, MESSAGES);
  const fates = await settled.fates(cluster, [after]);
  assert.deepEqual(fates.arrived[0], Array.from({ length: MESSAGES }, (_, number) => number));
  await after.sendMessage(alice.jid, "I am at dc3");
  await alice.expectMessage("I am at dc3");
  await after.expectNothingElse(alice);
  await alice.expectNothingElse(after);
  await after.disconnect();
  await stage.untilGone(bare(after.jid));
  return [atDc2!.length, atDc3!.length];
}
