import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { ClusterOptions } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { PATIENCE_MS } from "../until.ts";
import { Figures, untilHeld, untilNothingIsHeld } from "./_figures.ts";
import { ascents, assertNoneReturned, isAscending, MessageRun } from "./_message_run.ts";
import { PING } from "./_ping.ts";
import { bare, Stage } from "./_stage.ts";

const MESSAGES = 40;
/** Seconds after which a datacenter that was killed is forgotten. */
const EXPIRE_AFTER_SECONDS = 10;
/**
 * Milliseconds until stanzas on their way to a killed datacenter reach their recipients elsewhere.
 */
const RESCUE_WITHIN_MS = 1000 * EXPIRE_AFTER_SECONDS + PATIENCE_MS;

const OPTIONS: ClusterOptions = {
  links: "direct", // without a proxy in between, dc1 notices that nobody listens any more
  configure({ modules }) {
    const distribution = modules.mod_global_distrib;
    Object.assign(distribution.redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
    distribution["cache"] = { jid_lifetime_seconds: 1 };
    // Longer than it takes to log in elsewhere.
    distribution["bounce"] = { resend_after_ms: 200, max_retries: 8 };
  },
};

const LOCATION_KILLED: Scenario = {
  name: "location-killed",
  summary: "bob's datacenter dies, and messages to him reach him where he logs in next",
  options: OPTIONS,
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const { alice, bob, carol } = await enterAll(stage);
    const dc2 = cluster.datacenter("dc2");
    await dc2.kill();
    const runs = [alice, carol].map((sender) => new MessageRun(sender));
    await runs[0]!.send(bob.jid, MESSAGES);
    await runs[1]!.send(bare(bob.jid), MESSAGES);
    // A login while messages are on their way would open two routes to bob. That case is not tested
    // here.
    await Promise.all(["dc1", "dc3"].map((at) => untilHeld(cluster, at, MESSAGES)));
    say(`dc2 is killed; alice (dc1) and carol (dc3) write ${MESSAGES} messages each to bob there`);

    const moved = await stage.enterAvailable("bob", "dc3", { resource: "phone" });
    await stage.untilTableSaysOfSession(moved, "dc3", ["dc1", "dc3"]);
    for (const run of runs) {
      const fates = await run.fates(cluster, [moved], RESCUE_WITHIN_MS);
      assertNoneReturned(fates, "he is there");
      const { arrived } = fates;
      assert.ok(isAscending(arrived[0]!), `out of order: ${arrived[0]}`);
    }
    say("he logs in at dc3: all messages arrive there, in order");
    await expectTalk([alice, carol], moved);

    await dc2.start();
    await cluster.until(
      async () => (await Figures.read(dc2)).sum("mod_global_distrib_links_open") >= 2,
      { what: "dc2 is linked to the others" },
    );
    await stage.untilTableSaysOfSession(moved, "dc3");
    const dan = await stage.enterAvailable("alice", "dc2", { resource: "dc2" });
    await expectTalk([alice, carol, dan], moved);
    await expectSilence([alice, carol, moved, dan]);
    say("dc2 is back: everyone still finds him at dc3, and nothing else arrived anywhere");
  },
};

const LOCATION_LEAVES: Scenario = {
  name: "location-leaves",
  summary: "bob's datacenter is stopped while alice and carol write: each message has one fate",
  options: OPTIONS,
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const { alice, bob, carol } = await enterAll(stage);
    const dc2 = cluster.datacenter("dc2");
    const runs = [alice, carol].map((sender) => new MessageRun(sender));
    const send = () => Promise.all(runs.map((run) => run.send(bob.jid, MESSAGES)));
    await send();
    for (const run of runs) await run.untilArrived(cluster, bob, MESSAGES / 2);
    await Promise.all([dc2.stop(), send()]);
    await send();
    const moved = await stage.enterAvailable("bob", "dc3", { resource: "phone" });
    await send();
    const counts: string[] = [];
    for (const run of runs) {
      const fates = await run.fates(cluster, [bob, moved]);
      const { arrived: [atDc2, atDc3] } = fates;
      assert.ok(isAscending(atDc2!), `out of order at dc2: ${atDc2}`);
      // He has moved: messages that waited for dc2 reach him on one route, messages sent directly
      // on another.
      assert.ok(ascents(atDc3!) <= 2, `more than two ways to dc3: ${atDc3}`);
      // Messages that dc2 could no longer deliver stay with the other datacenters, which find him.
      assertNoneReturned(fates, "he has been at dc2 or dc3 all the time");
      counts.push(`${atDc2!.length} + ${atDc3!.length}`);
    }
    say(`arrived at dc2 + at dc3: ${counts.join(", ")} of ${4 * MESSAGES}; nothing came back`);

    await stage.untilTableSaysOfSession(moved, "dc3", ["dc1", "dc3"]);
    await expectTalk([alice, carol], moved);
    await expectGone(alice, dc2.localHost);
    await dc2.start();
    await stage.untilTableSaysOfSession(moved, "dc3");
    await cluster.until(async () => {
      const { type } = await alice.iq({ type: "get", to: dc2.localHost, payload: PING });
      return type === "result";
    }, { what: "dc2 answers alice again" });
    await expectTalk([alice, carol], moved);
    await expectSilence([alice, carol, moved]);
    say("dc2 is back and answers; bob is still found at dc3, and nothing else arrived anywhere");
  },
};

/** Scenarios in which the recipient's datacenter goes away. */
export const LOCATION_DISCONNECTS: readonly Scenario[] = [LOCATION_KILLED, LOCATION_LEAVES];

interface Cast {
  readonly alice: ChatClient;
  readonly bob: ChatClient;
  readonly carol: ChatClient;
}

/** alice (dc1), bob (dc2) and carol (dc3) log in and have talked, so that all links are up. */
async function enterAll(stage: Stage): Promise<Cast> {
  const alice = await stage.enterAvailable("alice", "dc1");
  const bob = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
  const carol = await stage.enterAvailable("carol", "dc3");
  await stage.untilTableSaysOfSession(alice, "dc1");
  await stage.untilTableSaysOfSession(bob, "dc2");
  await stage.untilTableSaysOfSession(carol, "dc3");
  await expectTalk([alice, carol], bob);
  await untilNothingIsHeld(stage.cluster);
  return { alice, bob, carol };
}

/** Each of `others` writes to `one` and is answered. */
async function expectTalk(others: readonly ChatClient[], one: ChatClient): Promise<void> {
  for (const other of others) {
    const body = `${other.jid} asks`;
    await other.sendMessage(bare(one.jid), body);
    await one.expectMessage((message) => message.body === body && message.from === other.jid);
    await one.sendMessage(other.jid, `answer to ${body}`);
    await other.expectMessage(`answer to ${body}`);
  }
}

/** Checks that a request to a stopped datacenter comes back as an error. */
async function expectGone(asking: ChatClient, host: string): Promise<void> {
  const answer = await asking.iq({
    type: "get",
    to: host,
    payload: PING,
    withinMs: RESCUE_WITHIN_MS,
  });
  assert.equal(answer.type, "error");
}

async function expectSilence(clients: readonly ChatClient[]): Promise<void> {
  for (const client of clients) for (const from of clients) await client.expectNothingElse(from);
}
