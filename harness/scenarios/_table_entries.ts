import type { Cluster } from "../cluster/mod.ts";
import { bare } from "./_stage.ts";

/** Deletes the entries of `jid` from dc1's table, and returns them. */
export async function takeEntries(
  cluster: Cluster,
  jid: string,
): Promise<ReadonlyMap<string, string>> {
  const { redisClient } = cluster.datacenter("dc1");
  const entries = new Map<string, string>();
  for (const key of [jid, bare(jid)]) {
    const value = await redisClient.call("GET", key);
    if (typeof value !== "string") throw new Error(`dc1's table does not know ${key}`);
    entries.set(key, value);
    await redisClient.call("DEL", key);
  }
  return entries;
}

/** Restores the entries from `takeEntries`, for a minute. */
export async function putEntries(
  cluster: Cluster,
  entries: ReadonlyMap<string, string>,
): Promise<void> {
  const { redisClient } = cluster.datacenter("dc1");
  for (const [key, value] of entries) await redisClient.call("SET", key, value, "EX", 60);
}
