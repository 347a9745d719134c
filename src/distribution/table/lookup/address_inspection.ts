import type { Jid } from "../../../xmpp/mod.ts";
import { FullJid } from "../../../xmpp/mod.ts";
import type { Clock } from "../../../base/mod.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import { claimsIn, isHost } from "../claims/claims.ts";
import type { Answer } from "../redis/ask.ts";
import { askEach } from "../redis/ask.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import type { CachedAnswer, LocationCache } from "./location_cache.ts";
import { LocationReads } from "./location_reads.ts";

/** A login in the claims of an account or domain, as Redis has it. */
export interface InspectedClaim {
  readonly host: string;
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  readonly priority: number | undefined;
  /** Milliseconds since the login, by the hybrid clock of its node. */
  readonly ageMs: number;
  /** True while the process that made the claim holds its node's lease. */
  readonly isLive: boolean;
}

/** A key of the session table and its value; null when it is absent, or no host: lookups ignore it. */
export interface InspectedKey {
  readonly key: string;
  readonly host: string | null;
  /** Milliseconds until it expires, in whole seconds; undefined when Redis does not say. */
  readonly expiresInMs: number | undefined;
}

/** Answer of Redis about an address, or the reason why there is none. */
export type RedisInspection =
  | {
    readonly isReachable: true;
    readonly keys: readonly InspectedKey[];
    readonly claims: readonly InspectedClaim[];
    /** Milliseconds that the answer took. */
    readonly tookMs: number;
  }
  | { readonly isReachable: false; readonly reason: string };

/** Answers of the cache and of Redis about an address. */
export interface AddressInspection {
  /** The addresses that lookups of it use, as cached. */
  readonly cache: readonly CachedAnswer[];
  readonly redis: RedisInspection;
}

/** The parts that an inspection reads. */
export interface AddressInspectionDeps {
  readonly redis: RedisCommands;
  readonly leases: NodeLeases;
  readonly cache: LocationCache;
  readonly clock: Clock;
}

/** Claims of one account that an inspection returns. */
const MAX_CLAIMS = 1000;

/**
 * Reads where an address is, for an operator. It changes nothing: neither the cache nor the order in
 * which the cache forgets. Never rejects.
 */
export async function inspectAddress(
  jid: Jid,
  { redis, leases, cache, clock }: AddressInspectionDeps,
): Promise<AddressInspection> {
  const cached = cache.inspect(jid);
  const isDomain = jid.localpart === "";
  const name = isDomain ? jid.domainpart : jid.bare.text;
  const names = !isDomain && jid instanceof FullJid ? [jid.text, name] : [name];
  const startMs = clock.monotonicMs();
  try {
    const reads = new LocationReads();
    const places = names.map((key) => ({ key, at: reads.addKey(key) }));
    const claimsAt = reads.addClaims(name);
    await reads.run(redis);
    const keys = places.map(({ key, at }) => {
      const value = reads.value(at);
      if (value instanceof RedisErrorReply) throw new Error(value.message);
      return { key, host: isHost(value) ? value : null };
    });
    const hash = reads.claims(claimsAt);
    if (hash instanceof RedisErrorReply) throw new Error(hash.message);
    const claims = claimsIn(hash).slice(0, MAX_CLAIMS);
    await leases.read(claims);
    const nowMs = clock.wallMs();
    const tookMs = clock.monotonicMs() - startMs;
    // A Redis may refuse this one: earlier builds did without.
    const lives = await askEach(redis, names.map((key) => ["TTL", key]));
    return {
      cache: cached,
      redis: {
        isReachable: true,
        keys: keys.map((each, i) => ({ ...each, expiresInMs: lifeOf(lives[i]) })),
        claims: claims.map((claim) => ({
          host: claim.host,
          node: claim.node,
          resourcepart: claim.resourcepart,
          priority: claim.priority,
          ageMs: Math.max(0, nowMs - claim.epoch / 1000),
          isLive: leases.isLive(claim),
        })),
        tookMs,
      },
    };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return { cache: cached, redis: { isReachable: false, reason } };
  }
}

/** Returns the milliseconds that an answer to TTL stands for. */
function lifeOf(answer: Answer | RedisErrorReply | undefined): number | undefined {
  return typeof answer === "number" && answer >= 0 ? answer * 1000 : undefined;
}
