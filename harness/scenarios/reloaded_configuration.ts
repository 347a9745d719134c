import assert from "node:assert/strict";
import pg from "pg";
import type { ChatClient } from "../clients/mod.ts";
import type { Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { logIn } from "./_log_in.ts";
import { assertNoneReturned, isAscending, MessageRun } from "./_message_run.ts";
import { Stage } from "./_stage.ts";

/** Messages while the pool is replaced, beside those before and after. */
const MESSAGES = 300;
/** Messages of a client that exceeds the limit which a reload has brought. */
const FLOOD = 60;

/** The part of the configuration that names the database. */
interface Pools {
  readonly rdbms: {
    readonly default: {
      workers: number;
      readonly connection: pg.ClientConfig & { username: string };
    };
  };
}

/** Answer of the action `reload`, as the admin API describes it. */
interface Answer {
  readonly status: number;
  readonly outcome?: string;
  readonly message?: string;
  readonly reload?: {
    readonly changes: readonly { readonly path: string; readonly effect: string }[];
    readonly pools: readonly string[];
  };
}

export const RELOADED_CONFIGURATION: Scenario = {
  name: "reloaded-configuration",
  summary:
    "a reload brings limits, log level, links and a database's new password, sessions stay, " +
    "no message is lost, and a file with a mistake changes nothing",
  options: { datacenters: 2, database: "postgresql", archives: true },
  replications: ["builtin"],
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    const { node } = dc1;
    const { configuration } = node;
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const run = new MessageRun(alice);
    await stage.untilTableSaysOfSession(bob, "dc2");

    configuration["log"] = { level: "debug" };
    configuration["limits"] = {
      stanza_rate_per_account: 300,
      stanza_burst_per_account: 5,
      kept_requests: 77,
    };
    configuration.modules.mod_global_distrib.connections["connections_per_endpoint"] = 2;
    const slowed = () => limitHits(dc1);
    assert.equal(await slowed(), 0);
    await node.writeConfiguration();
    node.signal("SIGHUP");
    await cluster.until(() => logged(node.logs, "config.reloaded"), { what: "dc1 has reloaded" });
    const line = node.logs.find((each) => each.includes("config.reloaded"))!;
    assert.match(line, /limits\.stanza_rate_per_account/);
    assert.match(line, /restart=\["limits\.kept_requests"\]/);
    await run.send(bob.jid, FLOOD);
    await run.untilArrived(cluster, bob, FLOOD);
    assert.ok(await slowed() > 0, "a session that was open before is slowed");
    await cluster.until(async () => await openLinks(dc1) === 2, { what: "dc1 has two links" });
    assert.equal(await levelOf(dc1), "debug");
    say("SIGHUP: a session that stays is under the new limit, the log level and links are others");

    const broken = { ...configuration, log: { level: "loud" } };
    node.configuration = broken;
    await node.writeConfiguration();
    const refused = await reload(dc1);
    assert.equal(refused.status, 409);
    assert.match(refused.message!, /log\.level: expected .*found "loud"/);
    assert.equal(await levelOf(dc1), "debug");
    assert.equal((await Figures.read(dc1)).sum("causeway_config_last_reload_successful"), 0);
    node.configuration = configuration;
    say("a file with a mistake is refused with its key, and changes nothing");

    configuration["limits"] = { kept_requests: 77 };
    const { default: pool } = (configuration["outgoing_pools"] as Pools).rdbms;
    const password = crypto.randomUUID();
    pool.workers = 6;
    const sending = run.send(bob.jid, MESSAGES);
    const unready = { ...pool.connection, password: pool.connection.password };
    pool.connection.password = password; // which the database does not know yet
    await node.writeConfiguration();
    const early = await reload(dc1);
    assert.equal(early.status, 409);
    assert.match(early.message!, /rdbms\.default/);
    await changePassword(unready, password);
    const done = await reload(dc1);
    assert.deepEqual([done.status, done.outcome], [200, "done"]);
    assert.deepEqual(done.reload?.pools, ["rdbms.default"]);
    const effects = new Map(done.reload.changes.map(({ path, effect }) => [path, effect]));
    assert.equal(effects.get("outgoing_pools.rdbms.default.connection.password"), "now");
    assert.equal(effects.get("limits.kept_requests"), "restart");
    await sending;
    await run.send(bob.jid, 10);
    assert.equal(await logIn(dc1, "carol", "secret"), "in");
    const fates = await run.fates(cluster, [bob]);
    assertNoneReturned(fates, "bob is there");
    assert.ok(isAscending(fates.arrived[0]!));
    const workers = (await (await fetch(dc1.adminUrl("/api/v1/databases"))).json()).items
      .find((each: { readonly pool: string }) => each.pool === "rdbms.default").maxConnections;
    assert.equal(workers, 6);
    say(
      `the pool has the database's new password; ${run.length} messages arrived meanwhile, in order, ` +
        "and none came back",
    );

    const again = await reload(dc1);
    assert.deepEqual(again.reload?.changes, [{ path: "limits.kept_requests", effect: "restart" }]);
    assert.equal(again.outcome, "nothing-to-do");
    await everybodyIsHere([alice, bob]);
    say("only the setting that needs a restart is named again, and all sessions are there");
  },
};

async function reload(datacenter: Datacenter): Promise<Answer> {
  const response = await fetch(datacenter.adminUrl("/api/v1/actions/reload"), {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  return { status: response.status, ...await response.json() };
}

/** Changes the password of the database's user, as an operator would. */
async function changePassword(
  { username, ...connection }: Pools["rdbms"]["default"]["connection"],
  password: string,
): Promise<void> {
  const { host, port, database, password: own } = connection;
  const client = new pg.Client({ host, port, database, user: username, password: own });
  await client.connect();
  try {
    await client.query(`ALTER USER ${username} PASSWORD '${password}'`);
  } finally {
    await client.end();
  }
}

async function limitHits(datacenter: Datacenter): Promise<number> {
  return (await Figures.read(datacenter)).sum("xmpp_limit_hits_total", { limit: "stanza-rate" });
}

async function openLinks(datacenter: Datacenter): Promise<number> {
  const { items } = await (await fetch(datacenter.adminUrl("/api/v1/lanes"))).json();
  return items.filter((each: { readonly state: string; readonly scope?: string }) =>
    each.state === "open"
  ).length;
}

async function levelOf(datacenter: Datacenter): Promise<string> {
  const { values } = await (await fetch(datacenter.adminUrl("/api/v1/config"))).json();
  return values.log.level;
}

function logged(lines: readonly string[], event: string): boolean {
  return lines.some((line) => line.includes(event));
}

/** Checks that each client has the stream that it began with, and nothing it has not claimed. */
async function everybodyIsHere(clients: readonly ChatClient[]): Promise<void> {
  for (const client of clients) {
    const ping = { type: "get", payload: "<ping xmlns='urn:xmpp:ping'/>" } as const;
    assert.equal((await client.iq(ping)).type, "result");
    await client.expectNothingElse();
  }
}
