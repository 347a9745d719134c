import { setImmediate } from "node:timers/promises";
import type { ManualClock } from "../../../base/mod.ts";
import type { MemoryRedis } from "../redis/testing/memory_redis.ts";

/** A user who is truly logged in, whatever the tables say. */
export interface SimulatedLogin {
  /** Number of the datacenter, from 0. */
  readonly datacenter: number;
  readonly user: number;
  readonly resource: string;
}

/** Compares every datacenter's keys with the true logins; `logins` are in their order. */
export function keyFaults(
  redises: readonly MemoryRedis[],
  logins: Iterable<SimulatedLogin>,
): string[] {
  const expected = new Map<string, string>();
  for (const { datacenter, user, resource } of logins) {
    expected.set(`user${user}@example.com`, `dc${datacenter}.example.com`);
    expected.set(`user${user}@example.com/${resource}`, `dc${datacenter}.example.com`);
  }
  const faults: string[] = [];
  redises.forEach((redis, i) => {
    const dump = redis.dump();
    for (const [key, host] of expected) {
      if (dump[key] !== host) faults.push(`dc${i}: ${key} is ${dump[key]}, not ${host}`);
    }
    for (const key of Object.keys(dump)) {
      if (key.startsWith("user") && !expected.has(key)) {
        faults.push(`dc${i}: ${key} is ${dump[key]} without a session`);
      }
    }
  });
  return faults;
}

/**
 * Moves `clock` on by one millisecond after the other. Work that became possible begins before the
 * next; now and then all of it ends first.
 * @param before called before each millisecond, from 0
 */
export async function advanceFinely(
  clock: ManualClock,
  byMs: number,
  before: (moved: number) => void = () => {},
): Promise<void> {
  for (let moved = 0; moved < byMs; moved++) {
    before(moved);
    clock.advance(1);
    if (moved % 4 === 0) await setImmediate();
    else for (let i = 0; i < 12; i++) await Promise.resolve();
  }
}
