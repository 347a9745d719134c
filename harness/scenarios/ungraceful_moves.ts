import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { enterManaged, proxyBefore } from "./_managed_client.ts";
import { ascents, assertNoneReturned, isAscending, MessageRun } from "./_message_run.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";

const MESSAGES = 40;
/** Refreshes of the datacenter that comes first. */
const REFRESHES = 2;
/** A node renews its lease so often within one refresh. */
const BEATS_PER_REFRESH = 4;
/** Milliseconds after which dc2's writes come to dc3's Redis, once the split is healed. */
const LAG_MS = 1500;
const LANE_ITEMS = "mod_global_distrib_lane_items";
const OLD = "dc2";
const NEW = "dc3";

/** `expire_after` and `refresh_after` of a datacenter that renews all the time, or not in our time. */
const LIVELY = { expire_after: 10, refresh_after: 1 };
const SLEEPY = { expire_after: 120, refresh_after: 60 };

/**
 * bob's network dies at dc2, which does not notice, and he logs in at dc3. dc2 does not learn of
 * that login until one of the two renews its claim of bob. Nothing is lost, whichever renews first.
 *
 * An external replicator brings the older writes of both datacenters to the other when the split is
 * over. Then dc2's table says dc3, and dc3's says dc2, until one of them writes again.
 */
export const UNGRACEFUL_MOVES: readonly Scenario[] = [
  ungracefulMove("ungraceful-move-old-first", "dc2, where he was, refreshes first", OLD),
  ungracefulMove("ungraceful-move-new-first", "dc3, where he is, refreshes first", NEW),
  ungracefulMove("ungraceful-move-no-refresh", "neither refreshes", undefined),
];

function ungracefulMove(name: string, who: string, refresher: string | undefined): Scenario {
  return {
    name,
    summary: `bob's socket at dc2 is dead, he logs in at dc3, and ${who}; nothing is lost`,
    options: {
      configure({ modules }, place) {
        const distribution = modules.mod_global_distrib;
        Object.assign(distribution.redis, place.name === refresher ? LIVELY : SLEEPY);
        distribution["cache"] = { jid_lifetime_seconds: 1 };
        modules["mod_stream_management"] = {
          ack_delay_ms: 100,
          ack_timeout: 5,
          moved_check_ms: 100,
        };
      },
    },
    replications: REPLICATIONS,
    run: (cluster, say) => move(cluster, refresher, say),
  };
}

async function move(
  cluster: Cluster,
  refresher: string | undefined,
  say: (line: string) => void,
): Promise<void> {
  await using stage = new Stage(cluster);
  const alice = await stage.enterAvailable("alice", "dc1");
  await using network = await proxyBefore(cluster, OLD);
  const phone = { library: "@xmpp", resource: "phone" } as const;
  await using before = await enterManaged(cluster, "bob", { ...phone, at: OLD, proxy: network });
  await becomeAvailable(before);
  await stage.untilTableSaysOfSession(before, OLD);
  const run = new MessageRun(alice);
  const sendToBoth = async (count: number) => {
    for (let sent = 0; sent < count; sent += 2) {
      await run.send(before.jid, 1);
      await run.send(bare(before.jid), 1);
    }
  };
  await sendToBoth(MESSAGES / 2);
  await run.untilArrived(cluster, before, MESSAGES / 2);
  // Only an acknowledgement of bob's client shows that he has them.
  await cluster.until(
    async () => (await Figures.read(cluster.datacenter("dc1"))).sum(LANE_ITEMS) === 0,
    { what: "bob has acknowledged what he has read" },
  );

  network.blackHole();
  await sendToBoth(MESSAGES);
  say(`bob reads ${MESSAGES / 2} messages at dc2; ${MESSAGES} more go to a socket that is dead`);

  cluster.part(OLD, NEW);
  await using after = await enterManaged(cluster, "bob", { ...phone, at: NEW });
  assert.equal(after.jid, before.jid);
  await becomeAvailable(after);
  await sendToBoth(MESSAGES);
  if (refresher !== undefined) await untilRefreshed(cluster, cluster.datacenter(refresher));
  await sendToBoth(MESSAGES);
  const old = cluster.datacenter(OLD);
  // dc2 writes whose the keys are when bob's session there ends, which would mend dc3's table.
  if (old.hasReplicator) cluster.replication(OLD, NEW).lagMs = LAG_MS;
  cluster.heal(OLD, NEW);
  await cluster.until(async () => (await Figures.read(old)).sum("xmpp_sm_sessions") === 0, {
    what: "bob's session at dc2 has ended",
    everyMs: 5,
  });
  await sendToBoth(MESSAGES);
  const seen = refresher === undefined
    ? "hears of it"
    : `hears of it when ${refresher} has renewed`;
  say(`he logs in at dc3 with the same name; dc2 ${seen}; ${3 * MESSAGES} messages more`);

  const fates = await run.fates(cluster, [before, after]);
  assertNoneReturned(fates, "bob has been somewhere all the time");
  const { arrived: [atOld, atNew] } = fates;
  assert.deepEqual(atOld, Array.from({ length: MESSAGES / 2 }, (_, number) => number));
  // Messages that dc2 returned, and messages on the direct route. dc2 may have returned its
  // messages in two batches.
  const held = atNew!.filter((number) => number < MESSAGES / 2 + MESSAGES);
  assert.ok(isAscending(held), `what dc2 held is out of order: ${held}`);
  assert.ok(ascents(atNew!) <= 3, `out of order: ${atNew}`);
  await stage.untilTableSaysOfSession(after, NEW);
  say(
    `${atOld!.length} arrived at dc2, the other ${atNew!.length} at dc3, each once, none came back`,
  );

  for (const to of [after.jid, bare(after.jid)]) {
    await alice.sendMessage(to, `last to ${to}`);
    await after.expectMessage(`last to ${to}`);
  }
  await after.sendMessage(alice.jid, "I have them all");
  await alice.expectMessage("I have them all");
  await after.expectNothingElse(alice);
  await alice.expectNothingElse(after);
  await after.disconnect();
  await stage.untilGone(bare(after.jid));
  say("every table has him at dc3, where all later messages arrive; nothing else arrived anywhere");
}

/** Waits until the node of `datacenter` has renewed everything of its own `REFRESHES` times. */
async function untilRefreshed(cluster: Cluster, datacenter: Datacenter): Promise<void> {
  const { localHost, redisClient } = datacenter;
  const lease = `causeway:node:${localHost}#node1@${localHost}`;
  let beats = 0;
  let lastMs = Infinity;
  await cluster.until(async () => {
    const leftMs = Number(await redisClient.call("PTTL", lease));
    if (leftMs > lastMs) beats++;
    lastMs = leftMs;
    return beats > REFRESHES * BEATS_PER_REFRESH;
  }, { what: `${datacenter.name} has renewed its entries ${REFRESHES} times`, everyMs: 10 });
}
