import type { CausewayConfiguration, Cluster, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectSameMemory } from "./_memory.ts";
import { expectMoved } from "./_moved.ts";
import { readiness, untilReady } from "./_readiness.ts";
import { SmallTalk } from "./_small_talk.ts";
import { bare, Stage } from "./_stage.ts";

/** All commands that the session table sends to Redis after login. */
const COMMANDS = [
  ...["GET", "SET", "DEL", "EXPIRE", "HGETALL", "HSET", "HDEL"],
  ...["SADD", "SREM", "SMEMBERS", "SUNION"],
];
/** Retries of the scenario that counts every lookup in Redis. */
const MAX_RETRIES = 1;
const JID_LIFETIME_SECONDS = 1;

function optionsWith(retries: number): ClusterOptions {
  return {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      const distribution = configuration.modules.mod_global_distrib;
      distribution["bounce"] = { resend_after_ms: 100, max_retries: retries };
      distribution["cache"] = { jid_lifetime_seconds: JID_LIFETIME_SECONDS };
      // A node checks Redis four times in this span: every second.
      Object.assign(distribution.redis, { refresh_after: 4 });
    },
  };
}

/** Enough retries to outlast the moment in which an empty Redis is filled again. */
const OUTLASTING_RETRIES = 7;

const REFUSING_REDIS: Scenario = {
  name: "refusing-redis",
  summary: "a Redis that answers only errors makes its datacenter degraded, and nothing worse",
  // The replicating proxy sends the errors.
  options: { ...optionsWith(OUTLASTING_RETRIES), replication: "external" },
  run: (cluster, say) =>
    degrade(cluster, {
      say,
      what: "answers every command with an error",
      reason: /ERR unknown command/,
      begin: (dc1) => Promise.resolve(dc1.replicator.refuse(COMMANDS)),
      end: (dc1) => Promise.resolve(dc1.replicator.refuse([])),
    }),
};

const KILLED_REDIS: Scenario = {
  name: "killed-redis",
  summary: "a killed Redis that comes back empty is filled again, and users notice nothing",
  options: optionsWith(OUTLASTING_RETRIES),
  run: (cluster, say) =>
    degrade(cluster, {
      say,
      what: "was killed",
      reason: /\S/,
      begin: (dc1) => dc1.redis.stop(),
      end: (dc1) => dc1.redis.start(),
    }),
};

const GARBAGE_IN_REDIS: Scenario = {
  name: "garbage-in-redis",
  summary: "foreign values in Redis are counted and otherwise ignored",
  replications: REPLICATIONS,
  options: optionsWith(MAX_RETRIES),
  run: readGarbage,
};

/** Scenarios with a Redis that misbehaves. */
export const BAD_REDIS: readonly Scenario[] = [
  REFUSING_REDIS,
  KILLED_REDIS,
  GARBAGE_IN_REDIS,
];

interface Outage {
  readonly say: (line: string) => void;
  readonly what: string;
  /** Reason that `/ready` shows. */
  readonly reason: RegExp;
  begin(datacenter: Datacenter): Promise<void>;
  end(datacenter: Datacenter): Promise<void>;
}

async function degrade(cluster: Cluster, outage: Outage): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  await using talk = await SmallTalk.start(cluster);
  await talk.goesOn();
  const before = await Figures.read(dc1);
  await outage.begin(dc1);
  await untilReady(cluster, dc1, outage.reason);
  const { reasons } = await readiness(dc1);
  await expectMoved(cluster, dc1, before, { causeway_redis_up: { "": -1 } });
  const down = await Figures.read(dc1);
  if (down.sum("causeway_redis_errors_total") <= before.sum("causeway_redis_errors_total")) {
    throw new Error("Expected the errors of Redis to be counted");
  }
  outage.say(`dc1's Redis ${outage.what}; /ready says 503: ${reasons.join(", ")}`);

  await using stage = new Stage(cluster);
  const carol = await stage.enterAvailable("carol", "dc1");
  const neighbour = await stage.enterAvailable("alice", "dc1");
  await carol.sendMessage(neighbour.jid, "still here");
  await neighbour.expectMessage("still here");
  const unknown = await carol.sendMessage(`nobody@${cluster.globalHost}`, "who are you?");
  await carol.expectError(unknown, "service-unavailable");
  // The talk goes on longer than the lifetime of the cache entries.
  const endMs = performance.now() + 1000 * JID_LIFETIME_SECONDS;
  do await talk.goesOn(); while (performance.now() < endMs);
  outage.say("known users and new logins are reached; carol gets an error for an unknown user");

  await outage.end(dc1);
  await untilReady(cluster, dc1);
  await stage.untilTableSays(carol.jid, dc1.localHost);
  await stage.untilTableSays(bare(neighbour.jid), dc1.localHost);
  await expectMoved(cluster, dc1, before, { causeway_redis_up: {} });
  await expectSameMemory(dc1, before);
  for (const client of [carol, neighbour]) await client.expectNothingElse();
  outage.say(
    `Redis is back with every session; alice and bob talked ${await talk.stop()} rounds meanwhile`,
  );
}

async function readGarbage(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  await using talk = await SmallTalk.start(cluster);
  await using stage = new Stage(cluster);
  const carol = await stage.enterAvailable("carol", "dc1");
  // A key is read at first, and again at each retry, unless retries read the claims instead.
  const reads = cluster.options.replication === "builtin" ? 1 : 1 + MAX_RETRIES;
  for (
    const [what, command, value] of [
      ["a value that is no domain", "SET", "no such host!\0"],
      ["a value of 100 kB", "SET", "x".repeat(100_000)],
      ["a list instead of a string", "LPUSH", dc1.localHost],
    ] as const
  ) {
    const before = await Figures.read(dc1);
    const ghost = `${crypto.randomUUID()}@${cluster.globalHost}`; // a JID that is not in the cache
    await dc1.redisClient.call(command, ghost, value);
    const id = await carol.sendMessage(ghost, "are you there?");
    await carol.expectError(id, "service-unavailable");
    await expectMoved(cluster, dc1, before, {
      causeway_table_garbage_total: { "": reads },
      causeway_redis_up: {},
    });
    await dc1.redisClient.call("DEL", ghost);
    await talk.goesOn();
    say(`${what}: counted, and carol gets the error for an unknown user`);
  }
  await clearWrongTypes(cluster, dc1);
  await talk.goesOn();
  say("lists instead of the table's own sets and hashes: deleted, counted, and written again");
  await carol.expectNothingElse();
  say(`alice and bob talked ${await talk.stop()} rounds meanwhile`);
}

/** Replaces every set and hash by a list, and waits until they are sets and hashes again. */
async function clearWrongTypes(
  cluster: Cluster,
  { redisClient: redis }: Datacenter,
): Promise<void> {
  const names = await redis.call("KEYS", "*") as string[]; // KEYS returns a list of keys
  const types = new Map<string, unknown>();
  for (const name of names) {
    const type = await redis.call("TYPE", name);
    if (type !== "string") types.set(name, type);
  }
  if (!types.has("hosts")) throw new Error(`Expected hosts among ${names.join(" ")}`);
  for (const name of types.keys()) {
    await redis.call("DEL", name);
    await redis.call("LPUSH", name, "nonsense");
  }
  for (const [name, type] of types) {
    // dc1 need not read dc2's keys, and a replicator that cannot write one drops the write.
    if (cluster.options.replication === "external" && /dc2\.|bob@/.test(name)) continue;
    await cluster.until(async () => await redis.call("TYPE", name) === type, {
      what: `${name} is a ${type} again`,
    });
  }
}
