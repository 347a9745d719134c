import type { Clock } from "../../../base/mod.ts";
import { describeError } from "../../../base/mod.ts";
import type { Account, OwnSession } from "./account.ts";
import type { AccountView, PlanContext } from "./account_plan.ts";
import { drawEpochs, planAccount, readAccount, viewAccount } from "./account_plan.ts";
import { claimIdPrefix } from "./claims.ts";
import type { HybridClock } from "./hybrid_clock.ts";
import type { KeyRule } from "./key_rule.ts";
import { fullJidKey } from "../redis/keys.ts";
import type { NodeLeases } from "./node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { replicaSeconds } from "../options.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";
import type { TableMetrics } from "../table_metrics.ts";

/** Accounts in one pipeline: enough that a round trip costs little, few enough to be no burst. */
export const BATCH_ACCOUNTS = 256;

/** The parts that the reconciler works with. */
export interface ReconcilerDeps {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly epochs: HybridClock;
  readonly leases: NodeLeases;
  readonly metrics: TableMetrics;
  readonly options: ResolvedTable;
  readonly rule: KeyRule;
  /** Called when the account has changed, or is not as it should be: it must be read back. */
  lookAgain(account: Account): void;
  /** Called when the account is empty. */
  emptied(account: Account): void;
  /** Called when the cache may hold an outdated value of a key. */
  changed(key: string): void;
  /** Called when missing epochs were drawn: those claims can be sent to others. */
  settled(account: Account, sessions: readonly OwnSession[]): void;
  /** Called when another node of this datacenter has taken the full JID of a session of ours. */
  displaced(account: Account, session: OwnSession): void;
  /** Called when claims of a datacenter on one account were removed, as it had more than it may. */
  overfull?(host: string, count: number): void;
  /** Called when Redis refused, or could not be asked. */
  failed(reason: string): void;
}

interface Request {
  readonly done: Promise<boolean>;
  resolve(isDone: boolean): void;
}

/**
 * Makes the table correct for accounts: reads claims and keys, decides (`key_rule.ts`), writes.
 * Logins, logouts, renewal and repair are this one operation, so that the next pass repairs lost
 * and racing writes. At most one batch works on an account at a time.
 */
export class Reconciler {
  readonly #deps: ReconcilerDeps;
  readonly #requests = new Map<Account, Request>();
  #isDraining = false;

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps;
  }

  /**
   * Asks for a pass that begins after this call; many requests share one. Resolves when the pass is
   * over, even if Redis was away: renewal tries again.
   */
  async request(account: Account): Promise<void> {
    await this.#request(account);
  }

  /**
   * Checks accounts that another datacenter's change has touched; false when Redis was away for
   * some of it. Never rejects.
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
   * Drops logouts that need not be written any more, as Redis was away for longer than claims live, or
   * the login was not written either.
   */
  dropExpired(accounts: Iterable<Account>): void {
    const { clock } = this.#deps;
    const beforeMs = clock.monotonicMs() - this.#claimMs;
    for (const account of accounts) {
      if (account.isBusy) continue;
      for (let i = account.closed.length - 1; i >= 0; i--) {
        const { closedMs, wasClaimed } = account.closed[i]!;
        if (!wasClaimed || closedMs < beforeMs) account.closed.splice(i, 1);
      }
      if (account.isEmpty) this.#deps.emptied(account);
    }
  }

  /** Milliseconds for which a claim of ours lives in Redis. */
  get #claimMs(): number {
    const { options } = this.#deps;
    return options.replication === "builtin"
      ? Number(replicaSeconds(options)) * 1000
      : options.redis.expireAfterMs;
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
        if (account.isBusy) continue; // the running pass calls `#kick` when it is over
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
      // A login counts from its own time, not from when Redis came back.
      const context = { nextEpoch: (known: number) => epochs.next(known), isLive: () => false };
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
    const noteGarbage = () => metrics.garbage.inc();
    const answers = await ask(redis, reads, noteGarbage);
    const views = ranges.map((range) => viewAccount(reads, answers, range));
    await this.#readLeases(views);

    const context = this.#context();
    const writes: RedisCommand[] = [];
    const after: (() => void)[] = [];
    batch.forEach((account, i) => {
      const view = views[i]!;
      metrics.garbage.inc(view.garbage);
      // Taken before the writes: a session that is added later is announced by the next pass.
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
        for (const session of plan.displaced) {
          // One that has come back since is newer than what was left of it.
          const { resourcepart } = session;
          const newest = account.sessions.findLast((each) => each.resourcepart === resourcepart);
          if (newest === session) this.#deps.displaced(account, session);
        }
        if (isFirst || plan.isDoubtful) this.#deps.lookAgain(account);
        this.#dropClosed(account, context.nowMs);
      });
    });
    await ask(redis, writes, noteGarbage);
    for (const settle of after) settle();
  }

  /** Drops closed sessions once their last read-back is over. */
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
      isLive: (claim) => leases.isLive(claim),
      rule,
    };
  }
}

function hasKey(view: AccountView, account: Account, session: { resourcepart: string }): boolean {
  return session.resourcepart === "" || view.values.has(`${account.name}/${session.resourcepart}`);
}
