import assert from "node:assert/strict";
import { withCluster } from "../../../harness/cluster/mod.ts";
import type { Cluster } from "../../../harness/cluster/mod.ts";
import { untilAllLinked } from "../../../harness/scenarios/_linked.ts";
import type { ChatClient } from "../../../harness/clients/mod.ts";
import { Stage } from "../../../harness/scenarios/_stage.ts";
import { runUsersCommand } from "../../../harness/scenarios/_users_command.ts";
import { AnswerCheck } from "../testing/answer_check.ts";

// deno-lint-ignore no-explicit-any
type Answer = any; // the document describes it, and `AnswerCheck` has checked it

/** Uses the API of one datacenter's first node, and checks each answer. */
async function callerOf(cluster: Cluster, name: string) {
  const datacenter = cluster.datacenter(name);
  const check = new AnswerCheck(await (await fetch(datacenter.adminUrl("/openapi.json"))).json());
  const ask = async (method: "GET" | "POST", path: string, body?: object) => {
    const response = await fetch(datacenter.adminUrl(path), {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { "content-type": "application/json" },
      }),
    });
    const answer = await response.json();
    const { status } = response;
    check.check(method, path.split("?")[0]!, { status, body: answer });
    return { status, answer };
  };
  const use = async (...request: Parameters<typeof ask>): Promise<Answer> =>
    (await ask(...request)).answer;
  return {
    check,
    read: (path: string) => use("GET", path),
    statusOf: async (path: string) => (await ask("GET", path)).status,
    act: (name: string, body: object = {}) => use("POST", `/api/v1/actions/${name}`, body),
  };
}

Deno.test("a real node pauses and resumes links, drops its cache, kicks, reloads, rebalances, refreshes and drains", async () => {
  await withCluster({ datacenters: 2 }, async (cluster) => {
    await untilAllLinked(cluster);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await alice.sendMessage(bob.jid, "one");
    await bob.expectMessage("one");
    const { check, read, act } = await callerOf(cluster, "dc1");
    const datacenter = cluster.datacenter("dc2").localHost;
    const stateOf = async () => {
      const { items } = await read("/api/v1/datacenters");
      return items.find((each: Answer) => each.datacenter === datacenter).state;
    };

    assert.equal((await act("pause", { datacenter })).outcome, "done");
    assert.equal((await act("pause", { datacenter })).outcome, "nothing-to-do");
    assert.equal((await act("pause", { datacenter: "dc9.example.com" })).error, "not-found");
    await cluster.until(async () => await stateOf() === "paused", { what: "dc2 is paused" });
    const { items: endpoints } = await read(`/api/v1/endpoints?datacenter=${datacenter}`);
    assert.deepEqual(endpoints.map(({ state }: Answer) => state), ["paused"]);
    await alice.sendMessage(bob.jid, "two");
    await act("retry");
    assert.equal(await stateOf(), "paused");
    assert.equal((await act("resume", { datacenter })).outcome, "done");
    await bob.expectMessage("two");
    await cluster.until(async () => await stateOf() === "linked", { what: "dc2 is linked" });
    assert.equal((await act("rebalance", { datacenter })).outcome, "nothing-to-do", "one lane");
    assert.equal((await act("rebalance", { datacenter: "dc9.example.com" })).error, "not-found");

    const { affected } = await act("refresh");
    assert.ok(affected > 0);
    assert.equal((await act("drop-cache", { jid: bob.jid })).outcome, "done");
    await cluster.until(async () => {
      await act("drop-cache"); // a lookup may fill it again at any time
      return (await read("/api/v1/status")).counts.cached === 0;
    }, { what: "the cache is empty" });
    await alice.sendMessage(bob.jid, "three");
    await bob.expectMessage("three");
    const reloaded = await act("reload");
    assert.deepEqual([reloaded.outcome, reloaded.affected], ["nothing-to-do", 0]);
    assert.deepEqual(reloaded.reload, { changes: [], certificates: [], pools: [] });
    const { node: reloading } = cluster.datacenter("dc1");
    reloading.configuration["log"] = { level: "debug" };
    await reloading.writeConfiguration();
    assert.deepEqual((await act("reload")).reload.changes, [{ path: "log.level", effect: "now" }]);
    await untilAllLinked(cluster);

    const carols: ChatClient[] = [];
    for (const resource of ["one", "two", "three"]) {
      const carol = await stage.enterAvailable("carol", "dc1", { resource });
      await carol.sendMessage(bob.jid, resource);
      await bob.expectMessage(resource);
      carols.push(carol);
    }
    const { mod_global_distrib } = reloading.configuration["modules"] as Answer;
    mod_global_distrib.connections.connections_per_endpoint = 2;
    await reloading.writeConfiguration();
    assert.deepEqual((await act("reload")).reload.changes.map(({ path }: Answer) => path), [
      "modules.mod_global_distrib.connections.connections_per_endpoint",
    ]);
    const lanesToDc2 = async (): Promise<readonly Answer[]> =>
      (await read(`/api/v1/lanes?datacenter=${datacenter}`)).items;
    await cluster.until(async () => {
      const lanes = await lanesToDc2();
      return lanes.length === 2 &&
        lanes.every(({ state, heldItems }) => state === "open" && heldItems === 0);
    }, { what: "there is a second lane, and all is settled" });
    const sendersOf = async () => (await lanesToDc2()).map(({ senders }) => senders as number);
    const [crowded = 0, empty] = await sendersOf();
    assert.ok(crowded >= 4, `alice and three of carol: ${crowded}`);
    assert.equal(empty, 0, "a new lane takes nobody from another");
    const rebalanced = await act("rebalance", { datacenter });
    const moved = Math.floor(crowded / 2);
    assert.deepEqual([rebalanced.outcome, rebalanced.affected], ["done", moved]);
    assert.deepEqual(await sendersOf(), [crowded - moved, moved]);
    assert.equal((await act("rebalance")).outcome, "nothing-to-do", "they are even");
    for (const carol of carols) {
      await carol.sendMessage(bob.jid, `again from ${carol.jid}`);
      await bob.expectMessage(`again from ${carol.jid}`);
    }
    assert.equal((await act("kick", { jid: carols[0]!.jid.split("/")[0] })).affected, 3);

    for (const jid of [bob.jid, "bob@elsewhere.example.com", "example.com"]) {
      assert.equal((await act("check-account", { jid })).error, "not-found", jid);
    }
    const ofBob = bob.jid.split("/")[0]!;
    assert.equal((await act("check-account", { jid: ofBob })).affected, 1);
    await alice.sendMessage(bob.jid, "four");
    await bob.expectMessage("four");
    await runUsersCommand(cluster, cluster.datacenter("dc1"), ["remove", ofBob]);
    assert.equal((await act("check-account", { jid: ofBob })).affected, 1);
    await assert.rejects(bob.expectMessage("five"), /not-authorized|disconnected|closed/);
    assert.equal((await act("kick", { jid: bob.jid })).error, "not-found", "bob is at dc2");
    assert.equal((await act("kick", { jid: alice.jid })).affected, 1);
    await cluster.until(
      async () => (await read("/api/v1/sessions")).total === 0,
      { what: "alice's session is over" },
    );

    const { items } = await read("/api/v1/audit?limit=3");
    assert.deepEqual(
      items.map(({ who, action, outcome }: Answer) => [who, action, outcome]),
      [["local", "kick", "done"], ["local", "kick", "not-found"], [
        "local",
        "check-account",
        "done",
      ]],
    );
    const { items: events } = await read("/api/v1/event-log");
    assert.ok(events.some(({ kind }: Answer) => kind === "action"));

    assert.equal((await act("drain")).outcome, "started");
    assert.deepEqual(check.unchecked.filter((name) => name.startsWith("POST ")), []);
    const { node } = cluster.datacenter("dc1");
    await cluster.until(
      () => node.logs.some((line) => line.includes("node.stopped")),
      { what: "dc1 has stopped" },
    );
  });
});

Deno.test("a real node shows the progress of its drain while stanzas wait for a paused datacenter", async () => {
  await withCluster({
    datacenters: 2,
    configure: (configuration) => configuration["limits"] = { shutdown_timeout: 10 },
  }, async (cluster) => {
    await untilAllLinked(cluster);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await alice.sendMessage(bob.jid, "one");
    await bob.expectMessage("one");
    const { read, act, statusOf } = await callerOf(cluster, "dc1");
    await act("pause", { datacenter: cluster.datacenter("dc2").localHost });
    const id = await alice.sendMessage(bob.jid, "two");
    await cluster.until(
      async () => (await read("/api/v1/drain")).stanzas > 0,
      { what: "the stanza waits" },
    );
    assert.equal((await read("/api/v1/drain")).isDraining, false);
    await act("drain");
    let drain: Answer;
    await cluster.until(async () => {
      drain = await read("/api/v1/drain");
      return drain.isDraining && drain.step === "lanes";
    }, { what: "the drain waits for the lanes" });
    assert.ok(drain.stanzas > 0);
    assert.ok(Date.parse(drain.deadlineAt) > Date.parse(drain.startedAt));
    const status = await read("/api/v1/status");
    assert.equal(status.ready, false);
    assert.equal((await read("/ready")).ready, false);
    assert.deepEqual(await read("/readyz"), { ok: false });
    for (const [probe, expected] of [["/ready", 503], ["/readyz", 503], ["/livez", 200]] as const) {
      assert.equal(await statusOf(probe), expected, probe);
    }
    await alice.expectError(id, "service-unavailable");
  });
});
