import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import { causewayCommand, skewedCommand } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { Stage } from "./_stage.ts";

const BUILTIN = ["builtin"] as const;

/** An unknown datacenter joins a running mesh. */
const JOINING: Scenario = {
  name: "joining-datacenter",
  summary: "a new dc3 joins a running mesh through one seed, and gets hosts, endpoints and table",
  options: { links: "direct", replication: "builtin" },
  replications: BUILTIN,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2, dc3] = cluster.datacenters as [Datacenter, Datacenter, Datacenter];
    await dc3.stop();
    await forget(dc3);
    for (const dc of [dc1, dc2]) {
      await untilSet(cluster, dc, "hosts", [dc1.localHost, dc2.localHost]);
    }
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.connectComponent("echo", "dc2");
    for (const [who, at] of [[alice, "dc1"], [bob, "dc2"]] as const) {
      await stage.untilTableSaysOfSession(who, at, ["dc1", "dc2"]);
    }
    say("alice (dc1), bob and a component (dc2) are logged in; dc3 is unknown, its Redis empty");

    const { connections } = dc3.node.configuration.modules.mod_global_distrib;
    assert.equal((connections["seeds"] as readonly unknown[]).length, 1);
    await dc3.start();
    for (const dc of cluster.datacenters) {
      await untilSet(cluster, dc, "hosts", cluster.datacenters.map(({ localHost }) => localHost));
      for (const other of cluster.datacenters) await untilEndpoints(cluster, dc, other);
    }
    await stage.untilTableSaysOfSession(alice, "dc1");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await stage.untilTableSays(`echo.${cluster.globalHost}`, dc2.localHost);
    say(
      "through its one seed it has learned of both others, and has their whole table; they know " +
        "it too",
    );

    const carol = await stage.enterAvailable("carol", "dc3");
    await stage.untilTableSaysOfSession(carol, "dc3");
    await expectTalk([alice, bob, carol]);
    say("everyone reaches everyone");
  },
};

/** A Redis without persistence restarts empty, or somebody flushes it. */
const FLUSHED: Scenario = {
  name: "flushed-redis",
  summary: "dc2's Redis loses all its data, and dc2 and the others fill it again at once",
  options: { replication: "builtin" },
  replications: BUILTIN,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const dc2 = cluster.datacenter("dc2");
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc3");
    const everyone = [[alice, "dc1"], [bob, "dc2"], [carol, "dc3"]] as const;
    for (const [who, at] of everyone) await stage.untilTableSaysOfSession(who, at);

    await forget(dc2);
    for (const [who, at] of everyone) await stage.untilTableSaysOfSession(who, at);
    await untilSet(cluster, dc2, "hosts", cluster.datacenters.map(({ localHost }) => localHost));
    await expectTalk([alice, bob, carol]);
    say("it was flushed: all its data is back long before the next renewal");

    await dc2.redis.stop();
    await alice.disconnect();
    await dc2.redis.start();
    await stage.untilTableSaysOfSession(bob, "dc2");
    await stage.untilTableSaysOfSession(carol, "dc3");
    await stage.untilGone(alice.jid);
    await expectTalk([bob, carol]);
    say("it was restarted, and alice left meanwhile: its data is back, without her");
  },
};

/** Two logins at once: the key of the bare JID names the newest, until it closes. */
const TWO_HOMES: Scenario = {
  name: "two-homes",
  summary: "bob is at dc2 and dc3 at once: the bare JID names his newest login until it ends",
  // A cluster of its own: where replication is external, dc1 may remember for
  // `jid_lifetime_seconds` where bob was in an earlier scenario.
  options: {},
  replications: ["external", "builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const account = `bob@${cluster.globalHost}`;
    const alice = await stage.enterAvailable("alice", "dc1");
    const phone = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    await stage.untilTableSaysOfSession(phone, "dc2");
    const tablet = await stage.enterAvailable("bob", "dc3", { resource: "tablet" });
    await stage.untilTableSaysOfSession(tablet, "dc3");
    await stage.untilTableSays(phone.jid, "dc2.example.com");
    await alice.sendMessage(account, "to wherever you are");
    for (const device of [tablet, phone]) await device.expectMessage("to wherever you are");
    await alice.sendMessage(phone.jid, "to the phone");
    await phone.expectMessage("to the phone");
    say(
      "his tablet logged in last: the key names it, and both get messages to the account, but " +
        "the phone alone those to its full JID",
    );

    await tablet.disconnect();
    await stage.untilTableSays(account, "dc2.example.com");
    await stage.untilGone(tablet.jid);
    await alice.sendMessage(account, "to what is left");
    await phone.expectMessage("to what is left");
    await phone.expectNothingElse();
    say("it leaves: messages to the account go to the phone again");
  },
};

/** An operator copies a configuration and forgets to change the local host. */
const HOST_TWICE: Scenario = {
  name: "local-host-twice",
  summary: "a second datacenter called dc2 is refused by name, and the first one is not disturbed",
  options: {
    replication: "builtin",
    configure(configuration, place) {
      if (place.name === "dc3") pretend(configuration, "dc2.example.com");
    },
  },
  replications: BUILTIN,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, , dc3] = cluster.datacenters as [Datacenter, Datacenter, Datacenter];
    await dc3.stop();
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    for (const [who, at] of [[alice, "dc1"], [bob, "dc2"]] as const) {
      await stage.untilTableSaysOfSession(who, at, ["dc1", "dc2"]);
    }
    await expectTalk([alice, bob]);
    const before = await refusals(dc1);

    await dc3.start();
    const eve = await stage.enterAvailable("carol", "dc3");
    await cluster.until(async () => await refusals(dc1) > before, {
      what: "dc1 refuses the second dc2",
    });
    for (const node of [dc1.node, dc3.node]) {
      await cluster.until(() => node.logs.some((line) => line.includes("host-conflict")), {
        what: `${node.name} says why`,
      });
    }
    await expectTalk([alice, bob]);
    await stage.untilTableSays(eve.jid, null, ["dc1", "dc2"]);
    await stage.untilTableSaysOfSession(bob, "dc2", ["dc1", "dc2"]);
    say("the second dc2 is refused as host-conflict, on both sides; alice and bob go on talking");
  },
};

const FIVE_MINUTES_MS = 300_000;

/** Time on one machine is wrong, and nobody has noticed. */
const WRONG_CLOCK: Scenario = {
  name: "wrong-clock",
  summary: "dc2's clock is five minutes ahead: its logins do not count as newer than they are",
  options: {
    replication: "builtin",
    command: (configFile) => {
      const args = ["serve", "--config", configFile];
      return configFile.includes("dc2-")
        ? skewedCommand(FIVE_MINUTES_MS, args)
        : causewayCommand(args);
    },
    configure({ modules }) {
      Object.assign(modules.mod_global_distrib.redis, { expire_after: 10, refresh_after: 1 });
    },
  },
  replications: BUILTIN,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const account = `bob@${cluster.globalHost}`;
    const dc2 = cluster.datacenter("dc2");
    await cluster.until(() => dc2.node.logs.some((line) => line.includes("clock.off")), {
      what: "dc2 notices that its clock is off",
    });
    const phone = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    await stage.untilTableSaysOfSession(phone, "dc2");
    await stage.enterAvailable("bob", "dc1", { resource: "tablet" });
    await stage.untilTableSays(account, "dc1.example.com");
    say("bob logs in at dc2, then at dc1: the account is at dc1");

    cluster.isolate("dc2");
    await stage.enterAvailable("bob", "dc2", { resource: "desk" });
    await stage.untilTableSays(account, "dc2.example.com", ["dc2"]);
    const couch = await stage.enterAvailable("bob", "dc3", { resource: "couch" });
    await stage.untilTableSaysOfSession(couch, "dc3", ["dc1", "dc3"]);
    cluster.rejoin("dc2");
    await stage.untilTableSaysOfSession(couch, "dc3");
    say("dc2 is separated; he logs in there, then at dc3; after healing the account is at dc3");

    const again = await stage.enterAvailable("bob", "dc2", { resource: "lamp" });
    await stage.untilTableSaysOfSession(again, "dc2");
    say("he logs in at dc2 again: the account is at dc2");
  },
};

export const REPLICATION: readonly Scenario[] = [
  JOINING,
  FLUSHED,
  TWO_HOMES,
  HOST_TWICE,
  WRONG_CLOCK,
];

async function forget(datacenter: Datacenter): Promise<void> {
  await datacenter.redisClient.call("FLUSHALL");
}

function pretend(configuration: CausewayConfiguration, localHost: string): void {
  const own = configuration.modules.mod_global_distrib;
  // The name of the folder is random, and may have `dc3` in it.
  const swap = (path: string) => join(dirname(path), basename(path).replace("dc3", "dc2"));
  configuration.hosts = configuration.hosts.map((host) =>
    host === own.local_host ? localHost : host
  );
  configuration.node_name = `node2@${localHost}`;
  own.local_host = localHost;
  const { tls_opts } = own.connections;
  assert.ok(tls_opts !== false);
  own.connections.tls_opts = {
    certfile: swap(tls_opts.certfile),
    keyfile: swap(tls_opts.keyfile),
    cafile: tls_opts.cafile,
  };
}

async function refusals(datacenter: Datacenter): Promise<number> {
  const figures = await Figures.read(datacenter);
  return figures.sum("mod_global_distrib_links_refused_total", { reason: "host-conflict" });
}

async function untilSet(
  cluster: Cluster,
  datacenter: Datacenter,
  key: string,
  members: readonly string[],
): Promise<void> {
  const wanted = members.toSorted().join();
  let seen = "";
  await cluster.until(async () => {
    const reply = await datacenter.redisClient.call("SMEMBERS", key);
    return (seen = Array.isArray(reply) ? reply.map(String).sort().join() : "") === wanted;
  }, { what: `${key} at ${datacenter.name} is ${wanted}`, evidence: () => `it is ${seen}` });
}

async function untilEndpoints(cluster: Cluster, at: Datacenter, of: Datacenter): Promise<void> {
  const { host, port } = of.node.ready.links[0]!; // a node of the harness always accepts links
  const key = `${of.localHost}#node1@${of.localHost}#{endpoints}`;
  await untilSet(cluster, at, key, [`${host}#${port}`]);
}

/** Everyone writes to everyone; each message arrives, and nothing else. */
async function expectTalk(people: readonly ChatClient[]): Promise<void> {
  for (const from of people) {
    for (const to of people) {
      if (from === to) continue;
      const body = `from ${from.jid} to ${to.jid} ${crypto.randomUUID()}`;
      await from.sendMessage(to.jid, body);
      assert.equal((await to.expectMessage(body)).from, from.jid);
    }
  }
  await Promise.all(people.map((each) => each.expectNothingElse()));
}
