import type { Clock } from "../../../base/mod.ts";
import type { FullJid, Jid } from "../../../xmpp/mod.ts";
import type { Claim } from "../claims/claims.ts";
import { incarnationOf, isHost, newestClaim, tryParseClaim } from "../claims/claims.ts";
import { claimsKey } from "../redis/keys.ts";
import type { LocationCache } from "./location_cache.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import { OvertakenAnswers } from "./overtaken_answers.ts";
import type { Placements } from "./placements.ts";
import type { RedisCommand, RedisCommands, RedisReply } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import type { TableMetrics } from "../table_metrics.ts";

/**
 * Milliseconds that a lookup waits for a silent Redis if memory can answer it; other lookups wait
 * for `redis.command_timeout_ms`. Longer than Redis takes, and too short for people to notice: no
 * option.
 */
const PATIENCE_MS = 250;

/** The parts that a lookup works with. */
export interface LookupDependencies {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly cache: LocationCache;
  readonly placements: Placements;
  readonly leases: NodeLeases;
  readonly metrics: TableMetrics;
  readonly localHost: string;
  readonly incarnation: number;
  /**
   * With builtin replication, keys follow from the claims. A key that names a host without a live
   * node counts as absent, and the claims answer for an absent key.
   */
  readonly replicas?: {
    isLiveHost(host: string): boolean;
    /** Called when the key of `resourcepart` (empty: none) contradicted the claims. */
    found(name: string, resourcepart: string): void;
  };
  /** True for a session or component of this node; they are known even while Redis is away. */
  isOwn(jid: Jid): boolean;
  /** Called when a command failed that should work, or Redis could not be asked. */
  failed(reason: string): void;
}

/** One question to Redis, shared by all lookups that ask it meanwhile. */
interface Flight {
  readonly answer: Promise<string | undefined>;
  /** Host that was learned meanwhile; used if the table has none. */
  learned: string | undefined;
}

interface Question {
  readonly jid: Jid;
  /** True when only the account's claims are to answer. */
  readonly asksClaims: boolean;
  /** Number of the pipeline that asks it. */
  asked: number;
  /** Places in the pipeline of its replies; −1 for those not read. */
  fullAt: number;
  nameAt: number;
  claimsAt: number;
  readonly flight: Flight;
  resolve(host: string | undefined): void;
}

/**
 * Looks up JIDs and domains in Redis. Concurrent lookups of one address share one query, and all
 * lookups of one event-loop turn share one pipeline, in which each key is read once. Lookups of
 * many full JIDs of one account share the reads of the account.
 */
export class LocationLookup {
  readonly #deps: LookupDependencies;
  readonly #flights = new Map<string, Flight>();
  readonly #overtaken = new OvertakenAnswers();
  readonly #hosts = new Map<string, string>();
  #questions: Question[] = [];

  constructor(deps: LookupDependencies) {
    this.#deps = deps;
  }

  /** Returns the host of `jid` in the table, and caches it. Never rejects. */
  locate(jid: Jid): Promise<string | undefined> {
    return this.#ask(jid).answer;
  }

  /**
   * Returns the hosts of `jids` in the table now, in order, and caches them. For addresses whose
   * lookup has just found nothing. With builtin replication keys follow from the claims, so one
   * command answers for all addresses of an account. Never rejects.
   */
  locateAgain(jids: readonly Jid[]): Promise<(string | undefined)[]> {
    const hasReplicas = this.#deps.replicas !== undefined;
    return Promise.all(
      jids.map((jid) => this.#ask(jid, hasReplicas && jid.localpart !== "").answer),
    );
  }

  /** Asks the table, and caches `host` if the table has none. */
  learn(jid: Jid, host: string): void {
    if (!this.#deps.isOwn(jid)) this.#ask(jid).learned = this.#intern(host);
  }

  /** Notes that `key` has changed: pending lookups still answer, but are not cached. */
  changed(key: string): void {
    this.#flights.delete(key); // later lookups must get the new value
    const slash = key.indexOf("/");
    this.#overtaken.changed(slash === -1 ? key : key.slice(0, slash));
  }

  /** Like `changed`, for all keys. */
  allChanged(): void {
    this.#flights.clear();
    this.#overtaken.allChanged();
  }

  #ask(jid: Jid, asksClaims = false): Flight {
    const key = jid.localpart === "" ? jid.domainpart : jid.text;
    const running = this.#flights.get(key);
    if (running !== undefined) return running;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const flight: Flight = { answer: promise, learned: undefined };
    this.#flights.set(key, flight);
    this.#questions.push({
      jid,
      asksClaims,
      asked: 0,
      fullAt: -1,
      nameAt: -1,
      claimsAt: -1,
      flight,
      resolve: (host) => {
        // A slow Redis may answer after this was answered without it, and asked anew.
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
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
    const asked = this.#overtaken.begin();
    const pipeline = new Pipeline();
    for (const question of questions) {
      question.asked = asked;
      readLocation(question, this.#deps.placements.isShared, pipeline);
    }
    metrics.fetches.inc(questions.length);
    metrics.misses.inc(questions.length);
    const startMs = clock.monotonicMs();
    const measure = () => {
      const tookUs = Math.round((clock.monotonicMs() - startMs) * 1000);
      metrics.fetchTimeUs.observe(tookUs, questions.length);
    };
    let isMeasured = false;
    const cancelPatience = clock.after(PATIENCE_MS, () => this.#answerFromMemory(questions));
    try {
      const replies = await redis.run(pipeline.commands);
      cancelPatience();
      measure();
      isMeasured = true;
      const missing: Question[] = [];
      /** Places in the pipeline of claims whose placements are stored. */
      const placed = new Set<number>();
      for (const question of questions) {
        const { jid, nameAt, claimsAt } = question;
        if (jid.localpart === "") {
          await this.#answerDomain(question, replies[nameAt]!, replies[claimsAt]!);
          continue;
        }
        // With several nodes in this datacenter the claims were read too.
        if (claimsAt !== -1 && this.#deps.placements.isShared && !placed.has(claimsAt)) {
          await this.#place(question, replies[claimsAt]!);
          placed.add(claimsAt);
        }
        if (question.asksClaims || !this.#answerJid(question, replies)) missing.push(question);
      }
      if (missing.length > 0) await this.#answerFromClaims(missing, replies);
    } catch (thrown) {
      cancelPatience();
      if (!isMeasured) measure();
      this.#deps.failed(String(thrown));
      for (const question of questions) this.#answerWithout(question);
    } finally {
      this.#overtaken.end(asked);
    }
  }

  /** Answers from the keys; false when they are absent and the claims may answer. */
  #answerJid(question: Question, replies: readonly RedisReply[]): boolean {
    const { replicas } = this.#deps;
    const { jid, fullAt, nameAt } = question;
    const bare = this.#readHost(replies[nameAt]!);
    const isFull = fullAt !== -1;
    const first = isFull ? this.#readHost(replies[fullAt]!) : bare;
    if (first instanceof RedisErrorReply || bare instanceof RedisErrorReply) {
      this.#answerWithout(question);
      return true;
    }
    if (isFull && bare !== null) this.#keep(question, jid.bare, bare);
    const host = first ?? bare;
    if (host === null && replicas !== undefined) return false;
    if (host === null) this.#answerUnknown(question);
    else {
      this.#keep(question, jid, host);
      question.resolve(host);
    }
    return true;
  }

  /** Answers from the claims, for keys that are absent, name a dead host, or were not read. */
  async #answerFromClaims(
    questions: readonly Question[],
    replies: readonly RedisReply[],
  ): Promise<void> {
    const { leases, replicas } = this.#deps;
    const hashes = await this.#readClaims(questions, replies);
    const claims = new Map<string, readonly Claim[]>();
    for (const [name, hash] of hashes) claims.set(name, Array.isArray(hash) ? claimsIn(hash) : []);
    await leases.read([...claims.values()].flat());
    for (const [name, all] of claims) {
      claims.set(
        name,
        all.filter((claim) => leases.incarnation(claim) === incarnationOf(claim.id)),
      );
    }
    for (const question of questions) {
      const { jid } = question;
      const hash = hashes.get(jid.bare.text);
      if (hash instanceof RedisErrorReply && question.asksClaims) {
        if (hash.kind !== "WRONGTYPE") this.#deps.failed(hash.message);
        this.#answerWithout(question);
        continue;
      }
      const live = claims.get(jid.bare.text) ?? [];
      // only a bare JID is its own `bare`
      const resourcepart = jid === jid.bare ? "" : (jid as FullJid).resourcepart;
      const host = newestClaim(live.filter((claim) => claim.resourcepart === resourcepart))?.host ??
        newestClaim(live)?.host;
      if (host === undefined) {
        this.#answerUnknown(question);
        continue;
      }
      this.#keep(question, jid, host);
      if (!question.asksClaims) replicas?.found(jid.bare.text, resourcepart);
      question.resolve(host);
    }
  }

  /**
   * Returns the claims of the questions' accounts by bare JID, from `replies` if they were read
   * there.
   */
  async #readClaims(
    questions: readonly Question[],
    replies: readonly RedisReply[],
  ): Promise<Map<string, RedisReply>> {
    const hashes = new Map<string, RedisReply>();
    const unread = new Set<string>();
    for (const { jid, claimsAt } of questions) {
      if (claimsAt === -1) unread.add(jid.bare.text);
      else hashes.set(jid.bare.text, replies[claimsAt]!);
    }
    if (unread.size === 0) return hashes;
    const names = [...unread];
    const read = await this.#deps.redis.run(
      names.map((name) => ["HGETALL", claimsKey(name)] as const),
    );
    for (const [i, name] of names.entries()) hashes.set(name, read[i]!);
    return hashes;
  }

  /**
   * Answers for a component's domain: connected in several datacenters, the nearest counts, here
   * first.
   */
  async #answerDomain(question: Question, value: RedisReply, hash: RedisReply): Promise<void> {
    const { localHost } = this.#deps;
    const host = this.#readHost(value);
    if (host instanceof RedisErrorReply) {
      this.#answerWithout(question);
      return;
    }
    const isHere = (await this.#place(question, hash)).length > 0;
    const other = isHere ? localHost : host ?? await this.#claimedBy(hash);
    if (other === null) this.#answerUnknown(question);
    else {
      this.#keep(question, question.jid, other);
      question.resolve(other);
    }
  }

  /** Returns the host of the newest live claim, with builtin replication. */
  async #claimedBy(hash: RedisReply): Promise<string | null> {
    const { leases, replicas } = this.#deps;
    if (replicas === undefined || !Array.isArray(hash)) return null;
    const claims = claimsIn(hash);
    await leases.read(claims);
    const live = claims.filter((claim) => leases.incarnation(claim) === incarnationOf(claim.id));
    return newestClaim(live)?.host ?? null;
  }

  /** Stores from the claims `hash` where in this datacenter the JID is; returns its live claims. */
  async #place(question: Question, hash: RedisReply): Promise<readonly Claim[]> {
    const { leases, localHost, incarnation, placements } = this.#deps;
    const claimed = Array.isArray(hash) ? claimsAt(localHost, hash) : [];
    if (claimed.length > 0) await leases.read(claimed);
    const live = claimed.filter((claim) => leases.incarnation(claim) === incarnationOf(claim.id));
    const others = live.filter(({ id }) => incarnationOf(id) !== incarnation);
    placements.put(question.jid, others, { isOld: this.#isOvertaken(question) });
    return live;
  }

  #answerUnknown(question: Question): void {
    const { jid, flight } = question;
    if (flight.learned === undefined) this.#keep(question, jid, null);
    else if (!this.#isOvertaken(question)) this.#deps.cache.putLearned(jid, flight.learned);
    question.resolve(flight.learned);
  }

  /** Answers, while Redis is slow, questions about known addresses and our own sessions. */
  #answerFromMemory(questions: readonly Question[]): void {
    const { cache, isOwn } = this.#deps;
    for (const question of questions) {
      if (isOwn(question.jid) || cache.stale(question.jid) !== undefined) {
        this.#answerWithout(question);
      }
    }
  }

  /** Answers without Redis: by our own sessions, then the cache, then the learned host. */
  #answerWithout(question: Question): void {
    const { cache, isOwn, localHost } = this.#deps;
    const { jid, flight } = question;
    const host = isOwn(jid) ? localHost : cache.stale(jid);
    if (host === undefined && flight.learned !== undefined) cache.putLearned(jid, flight.learned);
    question.resolve(host ?? flight.learned);
  }

  /**
   * Caches the table's answer for `jid`, the one asked for or its bare JID, unless it is overtaken.
   */
  #keep(question: Question, jid: Jid, host: string | null): void {
    if (this.#isOvertaken(question)) return;
    const { cache } = this.#deps;
    if (jid.localpart === "") cache.putDomain(jid.domainpart, host);
    else cache.putJid(jid.text, host);
  }

  #isOvertaken({ jid, asked }: Question): boolean {
    const name = jid.localpart === "" ? jid.domainpart : jid.bare.text;
    return this.#overtaken.isOvertaken(name, asked);
  }

  /** Reads a host: null for none or for garbage (counted), or the error in its place. */
  #readHost(reply: RedisReply): string | null | RedisErrorReply {
    if (reply === null) return null;
    if (typeof reply === "string" && (this.#hosts.has(reply) || isHost(reply))) {
      const { replicas } = this.#deps;
      return replicas === undefined || replicas.isLiveHost(reply) ? this.#intern(reply) : null;
    }
    if (reply instanceof RedisErrorReply && reply.kind !== "WRONGTYPE") {
      this.#deps.failed(reply.message);
      return reply;
    }
    this.#deps.metrics.garbage.inc();
    return null;
  }

  /** Returns one string for each host: thousands of replies name a handful of them. */
  #intern(host: string): string {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    if (this.#hosts.size >= 1_000) this.#hosts.clear(); // only garbage makes so many
    this.#hosts.set(host, host);
    return host;
  }
}

/** Commands of one pipeline, each key read once. */
class Pipeline {
  readonly commands: RedisCommand[] = [];
  readonly #keys = new Map<string, number>();
  readonly #hashes = new Map<string, number>();

  /** Reads `key`; returns the place of its value. */
  get(key: string): number {
    return this.#read("GET", key, this.#keys);
  }

  /** Reads the claims of `name`, a bare JID or a domain; returns their place. */
  claims(name: string): number {
    return this.#read("HGETALL", claimsKey(name), this.#hashes);
  }

  #read(verb: "GET" | "HGETALL", key: string, places: Map<string, number>): number {
    const known = places.get(key);
    if (known !== undefined) return known;
    places.set(key, this.commands.length);
    return this.commands.push([verb, key]) - 1;
  }
}

/**
 * Reads the keys of the question's JID, then its claims: always for a domain, else only if
 * `isShared`. Or reads the claims alone.
 */
function readLocation(question: Question, isShared: boolean, into: Pipeline): void {
  const { jid, asksClaims } = question;
  const isDomain = jid.localpart === "";
  const name = isDomain ? jid.domainpart : jid.bare.text;
  if (!asksClaims) {
    if (!isDomain && jid !== jid.bare) question.fullAt = into.get(jid.text);
    question.nameAt = into.get(name);
  }
  if (isDomain || isShared || asksClaims) question.claimsAt = into.claims(name);
}

function claimsAt(host: string, hash: readonly string[]): readonly Claim[] {
  return claimsIn(hash).filter((claim) => claim.host === host);
}

function claimsIn(hash: readonly string[]): readonly Claim[] {
  const claims: Claim[] = [];
  for (let i = 0; i + 1 < hash.length; i += 2) {
    const claim = tryParseClaim(hash[i]!, hash[i + 1]!);
    if (claim !== undefined) claims.push(claim);
  }
  return claims;
}
