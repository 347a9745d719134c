import assert from "node:assert/strict";
import type { ChatClient, XmppComponent } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { discoItems } from "./_disco.ts";
import { isAscending, MessageRun } from "./_message_run.ts";
import { PATIENT_BOUNCE } from "./_patient_bounce.ts";
import { readRedis } from "./_redis_entries.ts";
import { Stage } from "./_stage.ts";

const MESSAGES = 60;

/** A component goes while users of every datacenter write to it. */
export const COMPONENT_DISCONNECTS: Scenario = {
  name: "component-disconnects",
  summary: "a component at dc1 leaves while alice, bob and carol write: each message has one fate",
  options: PATIENT_BOUNCE,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const users = await enterAll(stage);
    const echo = await stage.connectComponent("echo", "dc1");
    await stage.untilTableSays(echo.jid, "dc1.example.com");

    const runs = users.map((user) => new MessageRun(user));
    const sendAll = () => Promise.all(runs.map((run) => run.send(echo.jid, MESSAGES / 3)));
    await sendAll();
    for (const run of runs) await run.untilArrived(cluster, echo, MESSAGES / 6);
    await Promise.all([echo.disconnect(), sendAll()]);
    await sendAll();
    const counts: string[] = [];
    for (const run of runs) {
      const { arrived: [arrived], returned, conditions } = await run.fates(cluster, [echo]);
      // messages may come back from the datacenter that lost the session, or from their own
      assert.ok(
        isAscending([...arrived!, ...sorted(returned)]),
        `out of order: ${arrived} | ${returned}`,
      );
      assert.deepEqual([...conditions], ["service-unavailable"]);
      assert.ok(arrived!.length > 0 && returned.length > 0);
      counts.push(`${arrived!.length} + ${returned.length}`);
    }
    say(`arrived + came back, in order: ${counts.join(", ")} of ${MESSAGES}`);

    await stage.untilGone(echo.jid);
    const waiting = users.map((user) => new MessageRun(user));
    for (const run of waiting) await run.send(echo.jid, MESSAGES / 3);
    const again = await stage.connectComponent("echo", "dc1");
    for (const run of waiting) {
      const { arrived: [arrived], returned } = await run.fates(cluster, [again]);
      assert.deepEqual([arrived!.length, returned], [run.length, []]);
      assert.ok(isAscending(arrived!), `out of order: ${arrived}`);
    }
    say("it is back before the retries end: all messages that waited arrive, in order");

    again.echo();
    for (const user of users) {
      await user.sendMessage(again.jid, "are you there?");
      await user.expectMessage("are you there?");
    }
    await again.kill();
    await stage.untilGone(again.jid);
    await Promise.all(users.map((user) => expectGone(user, again.jid)));
    await expectSilence(users);
    say("its connection is cut: each user's next message comes back, and nothing else arrived");
  },
};

/** A component that has gone leaves nothing behind, in any datacenter. */
export const COMPONENT_UNREGISTERS: Scenario = {
  name: "component-unregisters",
  summary: "a component at dc1 goes for good, and every table, disco list and cache forgets it",
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const users = await enterAll(stage);
    const echo = await stage.connectComponent("echo", "dc1");
    echo.echo();
    await stage.untilTableSays(echo.jid, "dc1.example.com");
    for (const user of users) {
      await user.sendMessage(echo.jid, "hello");
      await user.expectMessage("hello");
      await cluster.until(
        async () => (await discoItems(user, cluster.globalHost)).includes(echo.jid),
        { what: `disco lists ${echo.jid} to ${user.jid}` },
      );
    }
    say("alice, bob and carol reach it: each datacenter caches its place");

    await echo.disconnect();
    await stage.untilGone(echo.jid);
    await untilNoTrace(cluster, echo);
    for (const user of users) {
      await cluster.until(
        async () => (await discoItems(user, cluster.globalHost)).length === 0,
        { what: `disco lists nothing to ${user.jid}` },
      );
    }
    await Promise.all(users.map((user) => expectGone(user, echo.jid)));
    say(
      "it goes: no Redis has a key or member with its name, disco does not list it, senders " +
        "get errors",
    );

    const elsewhere = await stage.connectComponent("echo", "dc3");
    elsewhere.echo((message) => `from dc3: ${message.body}`);
    await stage.untilTableSays(elsewhere.jid, "dc3.example.com");
    for (const user of users) {
      await user.sendMessage(elsewhere.jid, "where are you?");
      await user.expectMessage("from dc3: where are you?");
    }
    await expectSilence(users);
    say("it connects to dc3: no stanza goes to its old place, and nothing else arrived");
  },
};

function enterAll(stage: Stage): Promise<readonly ChatClient[]> {
  return Promise.all([
    stage.enterAvailable("alice", "dc1"),
    stage.enterAvailable("bob", "dc2", { library: "slixmpp" }),
    stage.enterAvailable("carol", "dc3", { security: "direct" }),
  ]);
}

async function expectGone(user: ChatClient, domain: string): Promise<void> {
  const id = await user.sendMessage(domain, "are you there?");
  const error = await user.expectError(id, "service-unavailable");
  assert.deepEqual([error.from, error.to], [domain, user.jid]);
}

/** Waits until the component's domain is neither a key nor a member anywhere. */
async function untilNoTrace(cluster: Cluster, { jid }: XmppComponent): Promise<void> {
  for (const { name, redisClient } of cluster.datacenters) {
    await cluster.until(async () => {
      const traces = [...await readRedis(redisClient)]
        .filter(([key, { value }]) => key.includes(jid) || JSON.stringify(value).includes(jid));
      if (traces.length > 0) throw new Error(JSON.stringify(traces));
      return true;
    }, { what: `the Redis of ${name} knows nothing of ${jid}` });
  }
}

async function expectSilence(users: readonly ChatClient[]): Promise<void> {
  for (const user of users) for (const from of users) await user.expectNothingElse(from);
}

function sorted(numbers: readonly number[]): readonly number[] {
  return numbers.toSorted((one, other) => one - other);
}
