import type { Clock } from "../../../base/mod.ts";
import type { FullJid, Jid } from "../../../xmpp/mod.ts";
import type { Claim } from "../claims/claims.ts";
import { claimsIn as readClaims, incarnationOf, isHost, newestClaim } from "../claims/claims.ts";
import type { LocationCache } from "./location_cache.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import { LocationReads } from "./location_reads.ts";
import { OvertakenAnswers } from "./overtaken_answers.ts";
import type { Placements } from "./placements.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import type { TableMetrics } from "../table_metrics.ts";

/**
 * Milliseconds that a lookup waits for a silent Redis if memory can answer it; other lookups wait
 * for `redis.command_timeout_ms`. Longer than Redis takes, and too short for people to notice: no
 * option.
 */
const PATIENCE_MS = 250;

/** The parts that a lookup works with. */
export interface LocationLookupDeps {
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

type ReadValue = ReturnType<LocationReads["value"]>;
type ReadHash = ReturnType<LocationReads["claims"]>;

/** One question to Redis, shared by all lookups that ask it meanwhile. */
interface Flight {
  readonly answer: Promise<string | undefined>;
  /** Host that was learned meanwhile; used if the table has none for this very address. */
  learned: string | undefined;
}

/** Claims on an account, as one lookup has read them. */
interface AccountClaims {
  readonly all: readonly Claim[];
  readonly live: readonly Claim[];
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
  readonly #deps: LocationLookupDeps;
  readonly #flights = new Map<string, Flight>();
  readonly #overtaken = new OvertakenAnswers();
  readonly #hosts = new Map<string, string>();
  #questions: Question[] = [];

  constructor(deps: LocationLookupDeps) {
    this.#deps = deps;
  }

  /** Returns the host of `jid` in the table, and caches it. Never rejects. */
  locate(jid: Jid): Promise<string | undefined> {
    return this.#ask(jid).answer;
  }

  /**
   * Returns the hosts of `jids` in the table now, in order, and caches them. Used for addresses
   * whose lookup has just found nothing. With builtin replication keys follow from the claims, so
   * one command answers for all addresses of an account. Never rejects.
   */
  locateAgain(jids: readonly Jid[]): Promise<(string | undefined)[]> {
    const hasReplicas = this.#deps.replicas !== undefined;
    return Promise.all(
      jids.map((jid) => this.#ask(jid, hasReplicas && jid.localpart !== "").answer),
    );
  }

  /** Returns the newest live claim on `jid` in the table, if Redis tells. Never rejects. */
  async newestClaim(jid: FullJid): Promise<Claim | undefined> {
    const { redis, leases, failed } = this.#deps;
    const reads = new LocationReads();
    const at = reads.addClaims(jid.bare.text);
    try {
      await reads.run(redis);
      const claims = claimsIn(reads.claims(at))
        .filter(({ resourcepart }) => resourcepart === jid.resourcepart);
      await leases.read(claims);
      return newestClaim(claims.filter((claim) => leases.isLive(claim)));
    } catch (thrown) {
      failed(String(thrown));
      return undefined;
    }
  }

  /** Asks the table, and caches `host` if the table has none for this very address. */
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
        // A slow Redis may answer a question that was answered without it, and asked anew,
        // meanwhile.
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
    const reads = new LocationReads();
    for (const question of questions) {
      question.asked = asked;
      readLocation(question, reads);
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
      await reads.run(redis);
      cancelPatience();
      measure();
      isMeasured = true;
      const accounts = await this.#readAccounts(questions, reads);
      for (const question of questions) {
        const { jid, nameAt, claimsAt } = question;
        if (jid.localpart === "") {
          await this.#answerDomain(question, reads.value(nameAt), reads.claims(claimsAt));
          continue;
        }
        const claims = accounts.get(claimsAt)!; // all were read
        if (question.asksClaims || !this.#answerJid(question, reads, claims)) {
          this.#answerFromClaims(question, reads, claims.live);
        }
      }
    } catch (thrown) {
      cancelPatience();
      if (!isMeasured) measure();
      this.#deps.failed(String(thrown));
      for (const question of questions) this.#answerWithout(question);
    } finally {
      this.#overtaken.end(asked);
    }
  }

  /** Stores where the questions' accounts are; returns their claims by place in `reads`. */
  async #readAccounts(
    questions: readonly Question[],
    reads: LocationReads,
  ): Promise<ReadonlyMap<number, AccountClaims>> {
    const { leases, placements, localHost, incarnation } = this.#deps;
    const claims = new Map<number, { readonly all: readonly Claim[]; readonly of: Question }>();
    for (const question of questions) {
      const { jid, claimsAt } = question;
      if (jid.localpart === "" || claims.has(claimsAt)) continue;
      claims.set(claimsAt, { all: claimsIn(reads.claims(claimsAt)), of: question });
    }
    const isOurs = ({ id }: Claim) => incarnationOf(id) === incarnation;
    await leases.read(
      [...claims.values()].flatMap(({ all }) => all.filter((each) => !isOurs(each))),
    );
    const accounts = new Map<number, AccountClaims>();
    for (const [at, { all, of }] of claims) {
      const live = all.filter((claim) => isOurs(claim) || leases.isLive(claim));
      accounts.set(at, { all, live });
      const neighbours = live.filter((claim) => claim.host === localHost && !isOurs(claim));
      placements.put(of.jid, neighbours, { isOld: this.#isOvertaken(of) });
      placements.putSpread(of.jid, live);
    }
    return accounts;
  }

  /** Answers from the keys; false when they are absent and the claims may answer. */
  #answerJid(question: Question, reads: LocationReads, claims: AccountClaims): boolean {
    const { replicas } = this.#deps;
    const { jid, fullAt, nameAt } = question;
    const bare = this.#rightful(this.#readHost(reads.value(nameAt)), claims, "");
    const isFull = fullAt !== -1;
    const first = isFull
      ? this.#rightful(this.#readHost(reads.value(fullAt)), claims, (jid as FullJid).resourcepart)
      : bare;
    if (first instanceof RedisErrorReply || bare instanceof RedisErrorReply) {
      this.#answerWithout(question);
      return true;
    }
    if (isFull && bare !== null) this.#keep(question, jid.bare, bare);
    if (isFull && first === null && this.#answerLearned(question)) return true;
    const host = first ?? bare;
    if (host === null && replicas !== undefined) return false;
    if (host === null) this.#answerUnknown(question);
    else {
      this.#keep(question, jid, host);
      question.resolve(host);
    }
    return true;
  }

  /**
   * Returns the host in a key, or ours where the renewal of a newer login here will correct the key
   * (`key_rule.ts`). After a split, an external replicator may bring older writes last, to both
   * sides: then each table names the other datacenter, and the stanza would go to and fro.
   * @param resourcepart empty for the key of the account
   */
  #rightful(
    host: string | null | RedisErrorReply,
    { all, live }: AccountClaims,
    resourcepart: string,
  ): string | null | RedisErrorReply {
    const { localHost, replicas } = this.#deps;
    if (replicas !== undefined || typeof host !== "string" || host === localHost) return host;
    const isOn = (claim: Claim) => resourcepart === "" || claim.resourcepart === resourcepart;
    if (newestClaim(live.filter(isOn))?.host !== localHost) return host;
    // Without a claim of that host, the key may be news that has come before its claim.
    return all.some((claim) => claim.host === host && isOn(claim)) ? localHost : host;
  }

  /** Answers from the live claims, for a key that is absent or names a dead host, or was not read. */
  #answerFromClaims(question: Question, reads: LocationReads, live: readonly Claim[]): void {
    const { replicas } = this.#deps;
    const { jid, asksClaims } = question;
    const hash = reads.claims(question.claimsAt);
    if (hash instanceof RedisErrorReply && asksClaims) {
      this.#deps.failed(hash.message);
      this.#answerWithout(question);
      return;
    }
    // only a bare JID is its own `bare`
    const resourcepart = jid === jid.bare ? "" : (jid as FullJid).resourcepart;
    const own = newestClaim(live.filter((claim) => claim.resourcepart === resourcepart))?.host;
    if (own === undefined && resourcepart !== "" && this.#answerLearned(question)) return;
    const host = own ?? newestClaim(live)?.host;
    if (host === undefined) {
      this.#answerUnknown(question);
      return;
    }
    this.#keep(question, jid, host);
    if (!asksClaims) replicas?.found(jid.bare.text, resourcepart);
    question.resolve(host);
  }

  /**
   * Answers for a component's domain. If the component is connected in several datacenters, the
   * nearest one counts, ours first.
   */
  async #answerDomain(question: Question, value: ReadValue, hash: ReadHash): Promise<void> {
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
  async #claimedBy(hash: ReadHash): Promise<string | null> {
    const { leases, replicas } = this.#deps;
    if (replicas === undefined) return null;
    const claims = claimsIn(hash);
    await leases.read(claims);
    return newestClaim(claims.filter((claim) => leases.isLive(claim)))?.host ?? null;
  }

  /** Stores from the claims `hash` where in this datacenter the domain is; returns its live claims. */
  async #place(question: Question, hash: ReadHash): Promise<readonly Claim[]> {
    const { leases, localHost, incarnation, placements } = this.#deps;
    const claimed = claimsIn(hash).filter((claim) => claim.host === localHost);
    if (claimed.length > 0) await leases.read(claimed);
    const live = claimed.filter((claim) => leases.isLive(claim));
    const others = live.filter(({ id }) => incarnationOf(id) !== incarnation);
    placements.put(question.jid, others, { isOld: this.#isOvertaken(question) });
    return live;
  }

  /** Answers for an address of which Redis knows nothing, or has lost it. */
  #answerUnknown(question: Question): void {
    const { isOwn, localHost } = this.#deps;
    const { jid } = question;
    if (isOwn(jid)) {
      this.#keep(question, jid, localHost);
      return question.resolve(localHost);
    }
    if (this.#answerLearned(question)) return;
    this.#keep(question, jid, null);
    question.resolve(undefined);
  }

  /**
   * Answers with the host from which the address was seen writing, if it was. For a session that the
   * table does not have yet, that is better than where the account's other sessions are.
   */
  #answerLearned(question: Question): boolean {
    const { jid, flight: { learned } } = question;
    if (learned === undefined) return false;
    if (!this.#isOvertaken(question)) this.#deps.cache.putLearned(jid, learned);
    question.resolve(learned);
    return true;
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
  #readHost(value: ReadValue): string | null | RedisErrorReply {
    if (value === null) return null;
    if (value instanceof RedisErrorReply) {
      this.#deps.failed(value.message);
      return value;
    }
    if (this.#hosts.has(value) || isHost(value)) {
      const { replicas } = this.#deps;
      return replicas === undefined || replicas.isLiveHost(value) ? this.#intern(value) : null;
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

/** Reads the keys of the question's JID, then its claims; or the claims alone. */
function readLocation(question: Question, into: LocationReads): void {
  const { jid, asksClaims } = question;
  const isDomain = jid.localpart === "";
  const name = isDomain ? jid.domainpart : jid.bare.text;
  if (!asksClaims) {
    if (!isDomain && jid !== jid.bare) question.fullAt = into.addKey(jid.text);
    question.nameAt = into.addKey(name);
  }
  question.claimsAt = into.addClaims(name);
}

/** Returns the claims; none where Redis has refused to tell. */
function claimsIn(hash: ReadHash): readonly Claim[] {
  return hash instanceof RedisErrorReply ? [] : readClaims(hash);
}
