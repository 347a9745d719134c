import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Cluster, ClusterOptions } from "../cluster/mod.ts";

/** Two datacenters of two nodes each, with entries that expire within seconds. */
export const TWO_NODES: ClusterOptions = {
  datacenters: 2,
  nodes: 2,
  configure: ({ modules }) => {
    const { redis } = modules.mod_global_distrib;
    redis["expire_after"] = 10;
    redis["refresh_after"] = 1;
  },
};

/**
 * The same datacenters, where each lookup asks Redis: what its table says, every node knows at
 * once.
 */
export function withoutCache(options: ClusterOptions): ClusterOptions {
  return {
    ...options,
    configure: (configuration, place) => {
      options.configure?.(configuration, place);
      configuration.modules.mod_global_distrib["cache"] = { jid_lifetime_seconds: 0 };
    },
  };
}

/** Yields every ordered pair of two different items. */
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

/**
 * As `expectChat`, but the first messages may still go to the old place of `address`. Takes all
 * that arrive.
 *
 * @param alsoAt takes the copies that another client gets
 */
export async function untilChat(
  cluster: Cluster,
  from: ChatClient,
  to: ChatClient,
  address: string = to.jid,
  alsoAt?: (body: string) => Promise<unknown>,
): Promise<void> {
  const bodies: string[] = [];
  const first = await cluster.until(async () => {
    const body = crypto.randomUUID();
    bodies.push(body);
    await from.sendMessage(address, body);
    await alsoAt?.(body);
    // On a busy machine, an earlier attempt may arrive late.
    const isOne = (stanza: ReceivedStanza) => bodies.includes(stanza.body ?? "");
    return (await to.expectMessage(isOne, 500).catch(() => undefined))?.body;
  }, { what: `${to.jid} gets what ${from.jid} sends to ${address}` });
  // Messages arrive in order, so the later ones arrive too.
  for (const body of bodies.slice(bodies.indexOf(first) + 1)) await to.expectMessage(body);
}

/** The numbers from 0 to `count`, each once and in order. */
export function assertOrdered(numbers: readonly number[], count: number): void {
  assert.deepEqual(numbers, Array.from({ length: count }, (_, number) => number));
}
