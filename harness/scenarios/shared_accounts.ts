import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { untilReady } from "./_readiness.ts";
import { logIn } from "./_log_in.ts";
import { runUsersCommand } from "./_users_command.ts";
import { SmallTalk } from "./_small_talk.ts";

const SUMMARY = "an account that is added, changed or removed at one datacenter is so at all of " +
  "them at once";

/** Accounts in one database that all datacenters share. */
export const SHARED_ACCOUNTS: readonly Scenario[] = [
  {
    name: "shared-accounts",
    summary: `${SUMMARY}, and a dead database stops logins alone`,
    replications: ["builtin"],
    options: { database: "postgresql" },
    async run(cluster, say) {
      await followAnAccount(cluster, say);
      await outliveTheDatabase(cluster, say);
    },
  },
  {
    name: "shared-accounts-in-a-file",
    summary: `${SUMMARY} of one machine, in one SQLite file`,
    replications: ["builtin"],
    options: { database: "internal" },
    async run(cluster, say) {
      await followAnAccount(cluster, say);
    },
  },
];

async function followAnAccount(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const [dc1, dc2, dc3] = cluster.datacenters as [Datacenter, Datacenter, Datacenter];
  const jid = `newcomer@${cluster.globalHost}`;
  const everywhere = (password: string) =>
    Promise.all(cluster.datacenters.map((at) => logIn(at, "newcomer", password)));
  const all = (outcome: string) => cluster.datacenters.map(() => outcome);

  assert.deepEqual(await everywhere("first"), all("not-authorized"));
  await runUsersCommand(cluster, dc1, ["add", jid], "first");
  assert.deepEqual(await everywhere("first"), all("in"));
  say("an account is added at dc1: it logs in at every datacenter at once");

  await runUsersCommand(cluster, dc1, ["passwd", jid], "second");
  assert.equal(await logIn(dc2, "newcomer", "second"), "in");
  assert.deepEqual(await everywhere("first"), all("not-authorized"));
  await runUsersCommand(cluster, dc2, ["passwd", jid], "third");
  assert.deepEqual(await everywhere("third"), all("in"));
  say("its password is changed at dc1 and again at dc2: only the newest one works, everywhere");

  await runUsersCommand(cluster, dc3, ["remove", jid]);
  assert.deepEqual(await everywhere("third"), all("not-authorized"));
  say("it is removed at dc3: it logs in nowhere any more");
}

/** Logins that are under way at each datacenter while the database is killed. */
const UNDER_WAY = 5;

async function outliveTheDatabase(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await using talk = await SmallTalk.start(cluster);
  const logins = logInEverywhere(cluster);
  await cluster.database.kill();
  for (const outcome of await logins) {
    // Nobody gets a resource whose block list cannot be read: it would keep nobody out.
    assert.match(outcome, /^(in|temporary-auth-failure|unbound: internal-server-error)$/);
  }
  for (const at of cluster.datacenters) {
    assert.equal(await logIn(at, "carol", "secret"), "temporary-auth-failure", at.name);
    assert.equal(await logIn(at, "nobody", "secret"), "temporary-auth-failure", at.name);
    await untilReady(cluster, at, /rdbms/);
    assert.equal((await Figures.read(at)).sum("causeway_storage_up", { pool: "rdbms.default" }), 0);
  }
  const refused = await runUsersCommand(cluster, cluster.datacenters[0]!, [
    "remove",
    `carol@${cluster.globalHost}`,
  ]).then(() => assert.fail("the account was removed"), String);
  assert.match(refused, /Cannot connect to the database rdbms\.default .*: it cannot be reached/);
  await talk.goesOn();
  say(
    "the database is killed in the middle of logins: they fail with temporary-auth-failure, " +
      "/ready says so, and a running conversation goes on",
  );

  await cluster.database.restart();
  await untilLoggedInAgain(cluster);
  await talk.goesOn();
  say("the database is back: logins work again");

  const resume = cluster.database.suspend();
  try {
    for (const outcome of await logInEverywhere(cluster)) {
      assert.equal(outcome, "temporary-auth-failure");
    }
    await talk.goesOn();
  } finally {
    resume();
  }
  await untilLoggedInAgain(cluster);
  say(
    "it stands still for longer than a login waits: logins fail with temporary-auth-failure, and " +
      `nobody else waits; alice and bob talked ${await talk.stop()} rounds`,
  );
}

/** Logs carol in several times at each datacenter, all at once. */
function logInEverywhere(cluster: Cluster): Promise<readonly string[]> {
  return Promise.all(
    cluster.datacenters.flatMap((at) =>
      Array.from({ length: UNDER_WAY }, () => logIn(at, "carol", "secret"))
    ),
  );
}

/** Waits until every datacenter reaches the database again, and checks that it says so. */
async function untilLoggedInAgain(cluster: Cluster): Promise<void> {
  for (const at of cluster.datacenters) {
    await cluster.until(async () => await logIn(at, "carol", "secret") === "in", {
      what: `carol logs in at ${at.name} again`,
    });
    assert.equal(await logIn(at, "carol", "wrong"), "not-authorized", at.name);
    await untilReady(cluster, at);
    const events = at.node.logs.filter((line) => /storage\.(down|up)/.test(line));
    assert.equal(events.length % 2, 0, `each outage has a line, and its end: ${events}`);
  }
}
