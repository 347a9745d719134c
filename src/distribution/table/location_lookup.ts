import type { Clock } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { isHost, newestClaim, tryParseClaim } from "./claims.ts";
import { incarnationOf } from "./claims.ts";
import { claimsKey } from "./keys.ts";
import type { LocationCache } from "./location_cache.ts";
import type { NodeLeases } from "./node_leases.ts";
import type { RedisCommand, RedisCommands, RedisReply } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";
import type { TableMetrics } from "./table_metrics.ts";

/** What a lookup needs. */
export interface LookupDependencies {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly cache: LocationCache;
  readonly leases: NodeLeases;
  readonly metrics: TableMetrics;
  readonly localHost: string;
  /** True for a session or component of this very node; what is known when Redis is not there. */
  isOwn(jid: Jid): boolean;
  /** Redis answered an error to a command that should work, or could not be asked. */
  failed(reason: string): void;
}

/** One question to Redis, shared by all that ask it meanwhile. */
interface Flight {
  readonly answer: Promise<string | undefined>;
  /** Host that was learned while it was under way, for the case that the table knows nothing. */
  learned: string | undefined;
}

interface Question {
  readonly jid: Jid;
  readonly flight: Flight;
  resolve(host: string | undefined): void;
}

/**
 * Asks Redis where JIDs and domains are: one query for many concurrent lookups of one address, and
 * one pipeline for all the lookups of one event-loop turn.
 */
export class LocationLookup {
  readonly #deps: LookupDependencies;
  readonly #flights = new Map<string, Flight>();
  readonly #hosts = new Map<string, string>();
  #questions: Question[] = [];

  constructor(deps: LookupDependencies) {
    this.#deps = deps;
  }

  /** Host of `jid` as the table has it, and puts it into the cache. Never rejects. */
  locate(jid: Jid): Promise<string | undefined> {
    return this.#ask(jid).answer;
  }

  /** Asks the table, and puts `host` into the cache if it knows nothing. */
  learn(jid: Jid, host: string): void {
    if (!this.#deps.isOwn(jid)) this.#ask(jid).learned = this.#intern(host);
  }

  #ask(jid: Jid): Flight {
    const key = jid.localpart === "" ? jid.domainpart : jid.text;
    const running = this.#flights.get(key);
    if (running !== undefined) return running;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const flight: Flight = { answer: promise, learned: undefined };
    this.#flights.set(key, flight);
    this.#questions.push({
      jid,
      flight,
      resolve: (host) => {
        this.#flights.delete(key);
        resolve(host);
      },
    });
    if (this.#questions.length === 1) queueMicrotask(() => void this.#askAll()); // never rejects
    return flight;
  }

  async #askAll(): Promise<void> {
    const questions = this.#questions;
    this.#questions = [];
    const { redis, clock, metrics } = this.#deps;
    const commands: RedisCommand[] = [];
    for (const { jid } of questions) readLocation(jid, commands);
    metrics.fetches.inc(questions.length);
    metrics.misses.inc(questions.length);
    const startMs = clock.monotonicMs();
    try {
      const replies = await redis.run(commands);
      const tookUs = Math.round((clock.monotonicMs() - startMs) * 1000);
      let at = 0;
      for (const question of questions) {
        metrics.fetchTimeUs.observe(tookUs);
        const { jid } = question;
        if (jid.localpart === "") {
          await this.#answerDomain(question, replies[at]!, replies[at + 1]!);
        } else this.#answerJid(question, replies, at);
        at += locationReads(jid);
      }
    } catch (thrown) {
      this.#deps.failed(String(thrown));
      for (const question of questions) this.#answerWithout(question);
    }
  }

  #answerJid(question: Question, replies: readonly RedisReply[], at: number): void {
    const { cache } = this.#deps;
    const { jid } = question;
    const first = this.#readHost(replies[at]!);
    const isFull = jid !== jid.bare;
    const bare = isFull ? this.#readHost(replies[at + 1]!) : first;
    if (first instanceof RedisErrorReply || bare instanceof RedisErrorReply) {
      this.#answerWithout(question);
      return;
    }
    if (isFull && bare !== null) cache.putJid(jid.bare.text, bare);
    const host = first ?? bare;
    if (host === null) this.#answerUnknown(question);
    else {
      cache.putJid(jid.text, host);
      question.resolve(host);
    }
  }

  /** A component connected in several datacenters is reached at the nearest: here, if it is here. */
  async #answerDomain(question: Question, value: RedisReply, hash: RedisReply): Promise<void> {
    const { cache, leases, localHost } = this.#deps;
    const host = this.#readHost(value);
    if (host instanceof RedisErrorReply) {
      this.#answerWithout(question);
      return;
    }
    const domain = question.jid.domainpart;
    const here = Array.isArray(hash) ? claimsAt(localHost, hash) : [];
    if (here.length > 0) await leases.read(here);
    const isHere = newestClaim(
      here.filter((claim) => leases.incarnation(claim) === incarnationOf(claim.id)),
    ) !== undefined;
    if (!isHere && host === null) this.#answerUnknown(question);
    else {
      const nearest = isHere ? localHost : host!;
      cache.putDomain(domain, nearest);
      question.resolve(nearest);
    }
  }

  #answerUnknown(question: Question): void {
    const { cache } = this.#deps;
    const { jid, flight } = question;
    if (flight.learned !== undefined) cache.putLearned(jid, flight.learned);
    else if (jid.localpart === "") cache.putDomain(jid.domainpart, null);
    else cache.putJid(jid.text, null);
    question.resolve(flight.learned);
  }

  /** Redis cannot say: what was known counts, then what we hold, then what traffic taught. */
  #answerWithout(question: Question): void {
    const { cache, isOwn, localHost } = this.#deps;
    const { jid, flight } = question;
    const host = isOwn(jid) ? localHost : cache.stale(jid);
    if (host === undefined && flight.learned !== undefined) cache.putLearned(jid, flight.learned);
    question.resolve(host ?? flight.learned);
  }

  /** A host, null for none or for garbage (counted), or the error that stood in its place. */
  #readHost(reply: RedisReply): string | null | RedisErrorReply {
    if (reply === null) return null;
    if (typeof reply === "string" && (this.#hosts.has(reply) || isHost(reply))) {
      return this.#intern(reply);
    }
    if (reply instanceof RedisErrorReply && reply.kind !== "WRONGTYPE") {
      this.#deps.failed(reply.message);
      return reply;
    }
    this.#deps.metrics.garbage.inc();
    return null;
  }

  /** One string for each host: thousands of replies name a handful of them. */
  #intern(host: string): string {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    if (this.#hosts.size >= 1_000) this.#hosts.clear(); // garbage only can come to so many
    this.#hosts.set(host, host);
    return host;
  }
}

function locationReads(jid: Jid): number {
  return jid.localpart === "" || jid !== jid.bare ? 2 : 1;
}

function readLocation(jid: Jid, into: RedisCommand[]): void {
  if (jid.localpart === "") {
    into.push(["GET", jid.domainpart], ["HGETALL", claimsKey(jid.domainpart)]);
  } else {
    into.push(["GET", jid.text]);
    if (jid !== jid.bare) into.push(["GET", jid.bare.text]);
  }
}

function claimsAt(host: string, hash: readonly string[]) {
  const claims = [];
  for (let i = 0; i + 1 < hash.length; i += 2) {
    const claim = tryParseClaim(hash[i]!, hash[i + 1]!);
    if (claim !== undefined && claim.host === host) claims.push(claim);
  }
  return claims;
}
