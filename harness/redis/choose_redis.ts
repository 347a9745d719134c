import { type Run, runProgram } from "../process/mod.ts";
import { CONTAINER_ENGINES, ContainerRedis, findContainerEngine } from "./container_redis.ts";
import { EmbeddedRedis } from "./embedded_redis.ts";
import { LOCAL_PROGRAMS, LocalRedis } from "./local_redis.ts";
import { RedisCluster } from "./redis_cluster.ts";
import type { FailoverRedis, RedisKind, RedisServer } from "./redis_server.ts";
import { SentinelGroup } from "./sentinel_group.ts";

/** `auto`: the first of container, local server and embedded one that starts. */
export type RedisChoice = RedisKind | "auto";
export const REDIS_CHOICES: readonly RedisChoice[] = ["auto", "docker", "local", "embedded"];

/** Makes and starts one Redis; the kinds of a cluster are decided by its first. */
export interface RedisMaker {
  readonly kind: RedisKind;
  make(
    options: { readonly run: Run; readonly name: string; readonly password?: string },
  ): RedisServer;
}

/** Every way to run a Redis that this machine offers, in the order in which `auto` tries them. */
export async function redisMakers(
  choice: RedisChoice,
  run?: Run,
): Promise<readonly RedisMaker[]> {
  const makers: RedisMaker[] = [];
  const allows = (kind: RedisKind) => choice === kind || choice === "auto";
  if (allows("docker")) {
    const engine = await findContainerEngine(run);
    if (engine !== undefined) {
      makers.push({
        kind: "docker",
        make: (options) => new ContainerRedis({ ...options, engine }),
      });
    }
  }
  if (allows("local")) {
    const program = await findLocalProgram();
    if (program !== undefined) {
      makers.push({ kind: "local", make: (options) => new LocalRedis({ ...options, program }) });
    }
  }
  if (allows("embedded")) {
    makers.push({ kind: "embedded", make: (options) => new EmbeddedRedis(options) });
  }
  if (makers.length === 0) throw new Error(MISSING[choice]);
  return makers;
}

/**
 * Starts one Redis per name, all of one kind. Where that fails and the choice leaves another kind
 * (an engine that cannot get its image, say), the next one is tried.
 */
export async function startRedises(
  choice: RedisChoice,
  names: readonly string[],
  options: { readonly run: Run; readonly password?: string },
): Promise<readonly RedisServer[]> {
  let failure: unknown;
  for (const maker of await redisMakers(choice, options.run)) {
    options.run.signal.throwIfAborted();
    const servers = names.map((name) => maker.make({ ...options, name }));
    const starts = await Promise.allSettled(servers.map((server) => server.start()));
    const failed = starts.find((start) => start.status === "rejected");
    if (failed === undefined) return servers;
    failure = failed.reason;
    await Promise.allSettled(servers.map((server) => server.stop()));
  }
  throw failure;
}

/** Starts one Sentinel group or Redis Cluster per name, of the program that is installed. */
export async function startFailoverRedises(
  form: "sentinel" | "cluster",
  names: readonly string[],
  options: { readonly run: Run },
): Promise<readonly FailoverRedis[]> {
  const program = await findLocalProgram();
  if (program === undefined) throw new Error(MISSING.local);
  const Redises = form === "sentinel" ? SentinelGroup : RedisCluster;
  const servers = names.map((name) => new Redises({ ...options, name, program }));
  try {
    await Promise.all(servers.map((server) => server.start()));
    return servers;
  } catch (thrown) {
    await Promise.allSettled(servers.map((server) => server.stop()));
    throw thrown;
  }
}

async function findLocalProgram(): Promise<string | undefined> {
  for (const program of LOCAL_PROGRAMS) {
    if ((await runProgram(program, ["--version"]))?.code === 0) return program;
  }
  return undefined;
}

const MISSING: Record<RedisChoice, string> = {
  docker: `Cannot use a container for Redis: neither ${CONTAINER_ENGINES.join(" nor ")} answers`,
  local: `Cannot use a local Redis: neither ${LOCAL_PROGRAMS.join(" nor ")} is installed`,
  embedded: "",
  auto: "",
};
