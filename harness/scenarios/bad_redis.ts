import type { CausewayConfiguration, Cluster, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectSameMemory } from "./_memory.ts";
import { expectMoved } from "./_moved.ts";
import { readiness, untilReady } from "./_readiness.ts";
import { SmallTalk } from "./_small_talk.ts";
import { bare, Stage } from "./_stage.ts";

/** All that the session table asks of Redis once it has logged in. */
const COMMANDS = [
  ...["GET", "SET", "DEL", "EXPIRE", "HGETALL", "HSET", "HDEL"],
  ...["SADD", "SREM", "SMEMBERS", "SUNION"],
];
/** Where every look into Redis is counted. */
const MAX_RETRIES = 1;
const JID_LIFETIME_SECONDS = 1;

function optionsWith(retries: number): ClusterOptions {
  return {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      const distribution = configuration.modules.mod_global_distrib;
      distribution["bounce"] = { resend_after_ms: 100, max_retries: retries };
      distribution["cache"] = { jid_lifetime_seconds: JID_LIFETIME_SECONDS };
      // A node looks at Redis four times in this span: every second.
      Object.assign(distribution.redis, { refresh_after: 4 });
    },
  };
}

/** Retries that reach over the moment in which a Redis that came back empty is filled again. */
const OUTLASTING_RETRIES = 5;

const REFUSING_REDIS: Scenario = {
  name: "refusing-redis",
  summary: "a Redis that answers nothing but errors makes its datacenter degraded, no more",
  // The replicating proxy is what refuses.
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
  summary: "a Redis that is killed and comes back empty is filled again, and nobody notices",
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
  summary: "values in Redis that nobody of us wrote are counted and taken for nothing",
  replications: REPLICATIONS,
  options: optionsWith(MAX_RETRIES),
  run: readGarbage,
};

/** A Redis that does not do what it should. */
export const BAD_REDIS: readonly Scenario[] = [
  REFUSING_REDIS,
  KILLED_REDIS,
  GARBAGE_IN_REDIS,
];

interface Outage {
  readonly say: (line: string) => void;
  readonly what: string;
  /** What `/ready` says of it. */
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
  // They go on past the lifetime of what the cache holds of them.
  const endMs = performance.now() + 1000 * JID_LIFETIME_SECONDS;
  do await talk.goesOn(); while (performance.now() < endMs);
  outage.say("who is known is reached, who logs in too; who is unknown is not, and carol is told");

  await outage.end(dc1);
  await untilReady(cluster, dc1);
  await stage.untilTableSays(carol.jid, dc1.localHost);
  await stage.untilTableSays(bare(neighbour.jid), dc1.localHost);
  await expectMoved(cluster, dc1, before, { causeway_redis_up: {} });
  await expectSameMemory(dc1, before);
  for (const client of [carol, neighbour]) await client.expectNothingElse();
  outage.say(
    `Redis is back, everybody is in it; ${await talk.stop()} rounds were talked all along`,
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
    const ghost = `${crypto.randomUUID()}@${cluster.globalHost}`; // which the cache does not know
    await dc1.redisClient.call(command, ghost, value);
    const id = await carol.sendMessage(ghost, "are you there?");
    await carol.expectError(id, "service-unavailable");
    await expectMoved(cluster, dc1, before, {
      causeway_table_garbage_total: { "": reads },
      causeway_redis_up: {},
    });
    await dc1.redisClient.call("DEL", ghost);
    await talk.goesOn();
    say(`${what}: counted, and carol is told that nobody is there`);
  }
  await clearWrongTypes(cluster, dc1);
  await talk.goesOn();
  say("lists instead of the table's own sets and hashes: deleted, counted, and written again");
  await carol.expectNothingElse();
  say(`next to it ${await talk.stop()} rounds were talked`);
}

/** Puts a list in the place of every set and hash, and waits until they are what they were. */
async function clearWrongTypes(
  cluster: Cluster,
  { redisClient: redis }: Datacenter,
): Promise<void> {
  const names = await redis.call("KEYS", "*") as string[]; // what the command is for
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
    // What is dc2's need not be read at dc1; a replicator that cannot write it gives up on it.
    if (cluster.options.replication === "external" && /dc2\.|bob@/.test(name)) continue;
    await cluster.until(async () => await redis.call("TYPE", name) === type, {
      what: `${name} is a ${type} again`,
    });
  }
}
