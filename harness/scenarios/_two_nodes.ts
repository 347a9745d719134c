import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster, ClusterOptions } from "../cluster/mod.ts";

/** Two datacenters of two nodes each, in which what is gone is forgotten within seconds. */
export const TWO_NODES: ClusterOptions = {
  datacenters: 2,
  nodes: 2,
  configure: ({ modules }) => {
    const { redis } = modules.mod_global_distrib;
    redis["expire_after"] = 4;
    redis["refresh_after"] = 1;
  },
};

/** Every ordered pair of two different ones. */
export function* pairs<T>(all: readonly T[]): Iterable<readonly [T, T]> {
  for (const one of all) for (const other of all) if (one !== other) yield [one, other];
}

/** `from` writes to `address`, and `to` gets it. */
export async function expectChat(
  from: ChatClient,
  to: ChatClient,
  address: string = to.jid,
): Promise<void> {
  const body = `${from.jid} → ${address} ${crypto.randomUUID()}`;
  const id = await from.sendMessage(address, body);
  const message = await to.expectMessage(body);
  assert.deepEqual([message.from, message.to, message.id], [from.jid, address, id]);
}

/** As `expectChat`; where `address` is known as it was, the first messages may still go there. */
export async function untilChat(
  cluster: Cluster,
  from: ChatClient,
  to: ChatClient,
  address: string = to.jid,
): Promise<void> {
  await cluster.until(async () => {
    const body = crypto.randomUUID();
    await from.sendMessage(address, body);
    return await to.expectMessage(body, 500).catch(() => undefined);
  }, { what: `${to.jid} gets what ${from.jid} sends to ${address}` });
}

/** The numbers from 0 to `count`, each once and in order. */
export function assertOrdered(numbers: readonly number[], count: number): void {
  assert.deepEqual(numbers, Array.from({ length: count }, (_, number) => number));
}
