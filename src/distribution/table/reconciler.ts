import type { Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Account, OwnSession } from "./account.ts";
import type { AccountView, PlanContext } from "./account_plan.ts";
import { drawEpochs, planAccount, readAccount, viewAccount } from "./account_plan.ts";
import { claimIdPrefix, incarnationOf } from "./claims.ts";
import type { HybridClock } from "./hybrid_clock.ts";
import type { KeyRule } from "./key_rule.ts";
import { fullJidKey } from "./keys.ts";
import type { NodeLeases } from "./node_leases.ts";
import type { ResolvedTable } from "./options.ts";
import { replicaSeconds } from "./options.ts";
import type { RedisCommand, RedisCommands, RedisReply } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";
import type { TableMetrics } from "./table_metrics.ts";

/** Accounts in one pipeline: enough that a round trip costs little, few enough to be no burst. */
export const BATCH_ACCOUNTS = 256;

/** What the reconciler needs. */
export interface ReconcilerDependencies {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly epochs: HybridClock;
  readonly leases: NodeLeases;
  readonly metrics: TableMetrics;
  readonly options: ResolvedTable;
  readonly rule: KeyRule;
  /** The account has changed, or is not as it should be: it wants to be read back. */
  lookAgain(account: Account): void;
  /** Nothing of the account is left to see to. */
  emptied(account: Account): void;
  /** The value of a key is not what the cache may have. */
  changed(key: string): void;
  /** The epochs of sessions that had none are settled: their claims can be told to others. */
  settled(account: Account, sessions: readonly OwnSession[]): void;
  /** Another node of this datacenter has since been given the full JID of a session of ours. */
  displaced(account: Account, session: OwnSession): void;
  /** Claims of a datacenter on one account were taken away: it has more than it may. */
  overfull?(host: string, count: number): void;
  /** Redis refused, or could not be asked. */
  failed(reason: string): void;
}

interface Request {
  readonly done: Promise<boolean>;
  resolve(isDone: boolean): void;
}

/**
 * Makes the table say what it should about accounts: reads claims and keys, decides (`key_rule.ts`),
 * writes. Logins and logouts, renewal and repair are this one operation, so that whatever raced or
 * was lost is put right by the next pass. One batch at most works on an account at a time.
 */
export class Reconciler {
  readonly #deps: ReconcilerDependencies;
  readonly #requests = new Map<Account, Request>();
  #isDraining = false;

  constructor(deps: ReconcilerDependencies) {
    this.#deps = deps;
  }

  /**
   * Asks for a pass that begins after this call; many requests share one. Resolves when the pass is
   * over, be it that Redis was not there: renewal goes on trying.
   */
  async request(account: Account): Promise<void> {
    await this.#request(account);
  }

  /**
   * Sees to accounts that another datacenter's change has touched; false when Redis was not there
   * for all of it. Never rejects.
   */
  async replicate(accounts: Iterable<Account>): Promise<boolean> {
    const free: Account[] = [];
    const passes: Promise<boolean>[] = [];
    for (const account of accounts) {
      if (account.isBusy) passes.push(this.#request(account));
      else {
        account.isBusy = true;
        free.push(account);
      }
    }
    if (free.length > 0) passes.push(this.#pass(free));
    return (await Promise.all(passes)).every((isDone) => isDone);
  }

  #request(account: Account): Promise<boolean> {
    const waiting = this.#requests.get(account);
    if (waiting !== undefined) return waiting.done;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#requests.set(account, { done: promise, resolve });
    this.#kick();
    return promise;
  }

  /** Renews `accounts`, except those that are being written anyway. Never rejects. */
  async refresh(accounts: Iterable<Account>): Promise<void> {
    let batch: Account[] = [];
    for (const account of accounts) {
      if (account.isBusy || this.#requests.has(account) || account.isEmpty) continue;
      account.isBusy = true;
      batch.push(account);
      if (batch.length < BATCH_ACCOUNTS) continue;
      await this.#pass(batch);
      batch = [];
    }
    if (batch.length > 0) await this.#pass(batch);
  }

  /**
   * Lets go of logouts that could not be written while Redis was away for longer than entries live:
   * what they would remove has expired.
   */
  dropExpired(accounts: Iterable<Account>): void {
    const { clock, options } = this.#deps;
    const beforeMs = clock.monotonicMs() - options.redis.expireAfterMs;
    for (const account of accounts) {
      if (account.isBusy) continue;
      for (let i = account.closed.length - 1; i >= 0; i--) {
        if (account.closed[i]!.closedMs < beforeMs) account.closed.splice(i, 1);
      }
      if (account.isEmpty) this.#deps.emptied(account);
    }
  }

  #kick(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    queueMicrotask(() => void this.#drain()); // never rejects
  }

  async #drain(): Promise<void> {
    for (;;) {
      const batch: Account[] = [];
      const requests: Request[] = [];
      for (const [account, request] of this.#requests) {
        if (account.isBusy) continue; // the pass that holds it kicks us when it is through
        account.isBusy = true;
        this.#requests.delete(account);
        batch.push(account);
        requests.push(request);
        if (batch.length === BATCH_ACCOUNTS) break;
      }
      if (batch.length === 0) break;
      const isDone = await this.#pass(batch);
      for (const request of requests) request.resolve(isDone);
    }
    this.#isDraining = false;
  }

  /** Works on accounts that the caller has marked busy. */
  async #pass(batch: readonly Account[]): Promise<boolean> {
    try {
      await this.#reconcile(batch);
      return true;
    } catch (thrown) {
      this.#deps.failed(describeError(thrown));
      const { epochs } = this.#deps;
      // a login counts from when it happened, not from when Redis came back
      const context = { nextEpoch: (known: number) => epochs.next(known) };
      for (const account of batch) {
        const drawn = drawEpochs(account, [], context);
        if (drawn.length > 0) this.#deps.settled(account, drawn);
      }
      return false;
    } finally {
      for (const account of batch) {
        account.isBusy = false;
        if (account.isEmpty && !this.#requests.has(account)) this.#deps.emptied(account);
      }
      if (this.#requests.size > 0) this.#kick();
    }
  }

  async #reconcile(batch: readonly Account[]): Promise<void> {
    const { redis, metrics } = this.#deps;
    const reads: RedisCommand[] = [];
    const ownIdPrefix = claimIdPrefix(this.#deps.options.incarnation);
    const touched: ReadonlySet<string>[] = [];
    const ranges = batch.map((account) => {
      reads.push(...account.takeIncoming());
      const resources = account.takeTouched();
      touched.push(resources);
      const at = reads.length;
      return { at, count: readAccount(account, resources, reads), ownIdPrefix };
    });
    const replies = await redis.run(reads);
    this.#check(replies);
    const views = ranges.map((range) => viewAccount(reads, replies, range));
    await this.#readLeases(views);

    const context = this.#context();
    const writes: RedisCommand[] = [];
    const after: (() => void)[] = [];
    batch.forEach((account, i) => {
      const view = views[i]!;
      metrics.garbage.inc(view.garbage);
      // taken before the writes leave: a session that comes later is announced by the next pass
      const sessions = account.sessions.filter((session) => hasKey(view, account, session));
      const closed = [...account.closed];
      const isFirst = sessions.some((session) => !session.isAnnounced) ||
        closed.some((session) => !session.isWithdrawn);
      const unsettled = account.sessions.filter((session) => session.epoch === 0);
      const plan = planAccount(account, view, context, writes, touched[i]!);
      if (unsettled.length > 0) this.#deps.settled(account, unsettled);
      for (const [host, count] of plan.excess) this.#deps.overfull?.(host, count);
      metrics.repairs.inc(isFirst || touched[i]!.size > 0 ? 0 : plan.repaired);
      after.push(() => {
        for (const session of sessions) session.isAnnounced = true;
        for (const session of closed) session.isWithdrawn = true;
        for (const key of plan.changedKeys) this.#deps.changed(key);
        for (const resource of touched[i]!) {
          this.#deps.changed(resource === "" ? account.name : fullJidKey(account.name, resource));
        }
        for (const session of plan.displaced) this.#deps.displaced(account, session);
        if (isFirst || plan.isDoubtful) this.#deps.lookAgain(account);
        this.#dropClosed(account, context.nowMs);
      });
    });
    this.#check(await redis.run(writes));
    for (const settle of after) settle();
  }

  /** Closed sessions are looked at until the last reading back is over. */
  #dropClosed(account: Account, nowMs: number): void {
    const keepMs = Math.max(0, ...this.#deps.options.redis.readBackMs);
    for (let i = account.closed.length - 1; i >= 0; i--) {
      const session = account.closed[i]!;
      if (session.isWithdrawn && nowMs - session.closedMs >= keepMs) account.closed.splice(i, 1);
    }
  }

  async #readLeases(views: readonly AccountView[]): Promise<void> {
    const foreign = views.flatMap((view) => view.foreign);
    if (foreign.length > 0) await this.#deps.leases.read(foreign);
  }

  #context(): PlanContext {
    const { options, clock, epochs, leases, rule } = this.#deps;
    return {
      localHost: options.localHost,
      nodeName: options.nodeName,
      expireSeconds: String(Math.ceil(options.redis.expireAfterMs / 1000)),
      expireMs: options.redis.expireAfterMs,
      replicaSeconds: options.replication === "builtin" ? replicaSeconds(options) : undefined,
      maxClaimsPerAccount: options.datacenter.maxClaimsPerAccount,
      nowMs: clock.monotonicMs(),
      nowUs: clock.wallUs(),
      nextEpoch: (known) => epochs.next(known),
      isLive: (claim) => leases.incarnation(claim) === incarnationOf(claim.id),
      rule,
    };
  }

  /** Throws what says that Redis does not work; values of a wrong type are only garbage. */
  #check(replies: readonly RedisReply[]): void {
    for (const reply of replies) {
      if (!(reply instanceof RedisErrorReply)) continue;
      if (reply.kind === "WRONGTYPE") this.#deps.metrics.garbage.inc();
      else throw new Error(reply.message);
    }
  }
}

function hasKey(view: AccountView, account: Account, session: { resourcepart: string }): boolean {
  return session.resourcepart === "" || view.values.has(`${account.name}/${session.resourcepart}`);
}
