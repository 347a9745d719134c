import type { Clock } from "../../../base/mod.ts";
import { describeError } from "../../../base/mod.ts";
import type { TableRecord } from "../../wire/mod.ts";
import type { Account } from "../claims/account.ts";
import { claimId, claimIdPrefix, formatClaim, tryParseArray } from "../claims/claims.ts";
import {
  appliedKey,
  AUTHORS_KEY,
  claimsKey,
  domainsKey,
  endpointsKey,
  HOSTS_KEY,
  leaseKey,
  nodesKey,
  publicDomainsKey,
  replicaKey,
  shardOfKey,
} from "../redis/keys.ts";
import { DOMAIN_SHARD, HeldClaims, shardOf, SHARDS } from "./held_claims.ts";
import type { NodeLeases, NodeRef } from "../claims/node_leases.ts";
import { formatLease, tryParseLease } from "../claims/node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { replicaSeconds } from "../options.ts";
import type { OwnAccounts } from "../claims/own_accounts.ts";
import type { Reconciler } from "../claims/reconciler.ts";
import type { Answers } from "../redis/ask.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";

/** A process of another datacenter that sends us its entries; 0 for one that is dead. */
export interface Author extends NodeRef {
  readonly process: number;
}

/** Accounts that are written in one go: other traffic waits no longer than this takes. */
const BATCH = 128;

/**
 * Milliseconds for which a count of claims in Redis is used: counting takes a command for each set.
 */
const MEASURE_MS = 5_000;

/** The parts that the writer works with. */
export interface ReplicaWriterDeps {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly options: ResolvedTable;
  readonly accounts: OwnAccounts;
  readonly reconciler: Reconciler;
  readonly leases: NodeLeases;
  failed(reason: string): void;
  /** Called when claims were refused because the author's datacenter is at its bound. */
  full(author: Author, kind: "sessions" | "domains", count: number): void;
}

/** Commands on sets, which are answered with a number. */
type SetCommand =
  | readonly ["EXPIRE", key: string, seconds: string]
  | readonly ["SADD" | "SREM", key: string, ...members: string[]];

/** Result of applying records. */
export interface Applied {
  /** Claims for which there was no room. */
  readonly refused: number;
}

/**
 * Writes into this datacenter's Redis the entries that authors in other datacenters send: claims,
 * leases and sets as their own node would write them. It also lists which claims are here
 * (`causeway:replica:`), so that those that are gone can be removed. No method rejects: false or
 * undefined means that Redis was away.
 */
export class ReplicaWriter {
  readonly #deps: ReplicaWriterDeps;
  readonly #life: string;
  readonly held: HeldClaims;

  constructor(deps: ReplicaWriterDeps) {
    this.#deps = deps;
    this.#life = replicaSeconds(deps.options);
    this.held = new HeldClaims(deps.options.datacenter);
  }

  /** Returns the last applied process and number of a node; null when none is known. */
  async applied(node: NodeRef): Promise<{ process: number; number: number } | null | undefined> {
    const answers = await this.#run([["GET", appliedKey(node.host, node.node)]]);
    if (answers === undefined) return undefined;
    const [value] = answers;
    const [process, number] = value === null ? [] : tryParseArray(value) ?? [];
    return isCount(process) && isCount(number) ? { process, number } : null;
  }

  /**
   * Notes that changes up to `number` are applied, by this process. Undefined means not all of them:
   * then the next reader asks for a snapshot.
   * @returns false when another process has noted something since the last call, or the note was
   *   removed: what was written in between may be gone, or what the other process has removed be back
   */
  async setApplied(author: Author, number: number | undefined): Promise<boolean | undefined> {
    const answers = await this.#run([
      ["GET", appliedKey(author.host, author.node)],
      this.#note(author, number),
      ["SADD", AUTHORS_KEY, `${author.host}#${author.node}`],
      ["EXPIRE", AUTHORS_KEY, this.#life],
    ]);
    return answers && this.#isOurs(answers[0]);
  }

  /**
   * Notes that this process goes on behind `number`, or with a snapshot. Another one that has not
   * finished learns so.
   */
  async takeOver(author: Author, number: number | undefined): Promise<boolean> {
    return await this.#run([this.#note(author, number)]) !== undefined;
  }

  /**
   * Notes that this process applies no more of the author, though it may just have written something.
   * If another process has gone on meanwhile, that one asks for a snapshot.
   */
  async yieldTo({ host, node }: NodeRef): Promise<boolean> {
    const answers = await this.#run([["GET", appliedKey(host, node)]]);
    if (answers === undefined) return false;
    return this.#isOurs(answers[0]) || await this.clearApplied({ host, node });
  }

  #note({ host, node, process }: Author, number = -1): RedisCommand {
    const note = JSON.stringify([process, number, this.#deps.options.incarnation]);
    return ["SET", appliedKey(host, node), note, "EX", this.#life];
  }

  #isOurs(note: string | null): boolean {
    return note !== null && tryParseArray(note)?.[2] === this.#deps.options.incarnation;
  }

  /** Forgets the position of the author, which then has to begin with a snapshot. */
  async clearApplied({ host, node }: NodeRef): Promise<boolean> {
    return await this.#run([["DEL", appliedKey(host, node)]]) !== undefined;
  }

  /** Returns nodes of other datacenters whose entries lie here; undefined when Redis is away. */
  async authors(): Promise<readonly NodeRef[] | undefined> {
    const answers = await this.#run([["SMEMBERS", AUTHORS_KEY]]);
    if (answers === undefined) return undefined;
    const [members] = answers;
    return members.filter((member) => member.includes("#")).map((member) => {
      const at = member.indexOf("#");
      return { host: member.slice(0, at), node: member.slice(at + 1) };
    });
  }

  /**
   * Counts the claims of the nodes `told` that lie here. With `isAfresh` it also counts those of
   * nodes that were counted a moment ago, because Redis may have lost them since.
   */
  async measure(told: readonly NodeRef[], isAfresh = false): Promise<boolean> {
    const nowMs = this.#deps.clock.monotonicMs();
    const nodes = told.filter((node) =>
      isAfresh || nowMs - this.held.measuredMs(node) >= MEASURE_MS
    );
    const counts = await this.#run(nodes.flatMap((node) => this.held.measure(node)));
    if (counts === undefined) return false;
    nodes.forEach((node, i) =>
      this.held.measured(node, counts.slice(i * SHARDS, (i + 1) * SHARDS), nowMs)
    );
    return true;
  }

  /**
   * Renews the author's lease, and its endpoints. Changes nothing when a newer process of the author's
   * name holds the lease.
   * @returns whether the author's position is known; undefined when Redis was away
   */
  async lease(
    { host, node, process }: Author,
    lease: {
      readonly startedUs: number;
      readonly lifeMs: number;
      readonly endpoints: readonly string[];
    },
  ): Promise<{ readonly isKnown: boolean } | "superseded" | undefined> {
    const life = String(Math.max(1, Math.ceil(lease.lifeMs / 1000)));
    const key = endpointsKey(host, node);
    const value = formatLease({ incarnation: process, startedUs: lease.startedUs });
    const [found, held] = await this.#run([
      ["SMEMBERS", key],
      ["GET", leaseKey(host, node)],
    ]) ?? [];
    const holder = tryParseLease(held ?? null);
    const isAnothers = holder !== undefined && holder.incarnation !== process;
    if (isAnothers && holder.startedUs > lease.startedUs) return "superseded";
    const extra = found?.filter((each) => !lease.endpoints.includes(each)) ?? [];
    const published: RedisCommand[] = [];
    if (extra.length > 0) published.push(["SREM", key, ...extra]);
    if (lease.endpoints.length > 0) {
      published.push(["SADD", key, ...lease.endpoints], ["EXPIRE", key, life]);
    }
    const answers = await this.#run([
      ["EXPIRE", appliedKey(host, node), this.#life],
      ["SET", leaseKey(host, node), value, "EX", life],
      ["SADD", nodesKey(host), node],
      ["EXPIRE", nodesKey(host), life],
      ["SADD", HOSTS_KEY, host],
      // they live as long as the author's position: nobody sends them again before that is lost
      ["EXPIRE", domainsKey(host, node), this.#life],
      ["EXPIRE", publicDomainsKey(host, node), this.#life],
      ...published,
    ]);
    if (answers === undefined) return undefined;
    this.#deps.leases.note({ host, node }, process);
    return { isKnown: answers[0] === 1 };
  }

  /** Applies records in order, except claims that find no room. */
  async apply(author: Author, told: readonly TableRecord[]): Promise<Applied | undefined> {
    const { host, node, process } = author;
    const records = this.#withRoom(author, told);
    const before: SetCommand[] = [];
    const after: SetCommand[] = [];
    const added = new Map<number, string[]>();
    const removed = new Map<number, string[]>();
    /** The last record of each domain: a component may have gone and come back. */
    const domains = new Map<string, TableRecord>();
    for (const record of records) {
      const { kind, sequence, name, resourcepart } = record;
      const entry = member(claimId(process, sequence), name, resourcepart);
      push(kind === "claim" ? added : removed, shardOf(record), entry);
      if (!name.includes("@")) domains.set(name, record);
    }
    for (const [name, { kind, isHidden }] of domains) {
      const isListed = kind === "claim";
      if (isListed) before.push(["SADD", domainsKey(host, node), name]);
      else after.push(["SREM", domainsKey(host, node), name]);
      if (isListed && !isHidden) before.push(["SADD", publicDomainsKey(host, node), name]);
      else after.push(["SREM", publicDomainsKey(host, node), name]);
    }
    // Claims are listed before they are written and until they are removed.
    for (const [shard, members] of added) {
      before.push(["SADD", replicaKey(host, node, shard), ...members]);
      before.push(["EXPIRE", replicaKey(host, node, shard), this.#life]);
    }
    for (const [shard, members] of removed) {
      after.push(["SREM", replicaKey(host, node, shard), ...members]);
    }
    if (!await this.#runCounted(author, before)) return undefined;
    const accounts = new Set(records.map((record) => this.#bring(author, record)));
    if (!await this.#deps.reconciler.replicate(accounts)) return undefined;
    if (!await this.#runCounted(author, after)) return undefined;
    return { refused: told.length - records.length };
  }

  /** Returns `told` without claims of a kind for which the datacenter is at its bound. */
  #withRoom(author: Author, told: readonly TableRecord[]): readonly TableRecord[] {
    let records = told;
    for (const kind of ["sessions", "domains"] as const) {
      if (!this.held.isFull(author.host, kind)) continue;
      const left = records.filter((record) =>
        record.kind !== "claim" || (record.resourcepart === "") !== (kind === "domains")
      );
      const count = records.length - left.length;
      if (count > 0) this.#deps.full(author, kind, count);
      records = left;
    }
    return records;
  }

  /** Like `#run`, and counts claims added to the sets and removed from them. */
  async #runCounted(author: Author, commands: readonly SetCommand[]): Promise<boolean> {
    const counts = await this.#run(commands);
    if (counts === undefined) return false;
    commands.forEach(([verb, key], i) => {
      const shard = shardOfKey(key);
      if (shard === undefined) return;
      if (verb === "SADD") this.held.changed(author, shard, counts[i]!);
      else if (verb === "SREM") this.held.changed(author, shard, -counts[i]!);
    });
    return true;
  }

  /**
   * Passes a record to its account, whose next pass writes it. Without a pass the account would
   * stay.
   */
  #bring({ host, node, process }: Author, record: TableRecord): Account {
    const { kind, sequence, epoch, name, resourcepart } = record;
    const account = this.#deps.accounts.borrow(name);
    const id = claimId(process, sequence);
    const claims = claimsKey(name);
    account.touch(resourcepart);
    if (kind === "claim") {
      const claim = { id, epoch, host, node, resourcepart, renewal: 1 };
      account.bring(["HSET", claims, id, formatClaim(claim)]);
      account.bring(["EXPIRE", claims, this.#life]);
    } else account.bring(["HDEL", claims, id]);
    return account;
  }

  /**
   * Removes every claim of the node that is not one of `process` and in `keep`, and lists no domains
   * but those of claims that stay.
   */
  async sweep(author: Author, keep: ReadonlySet<number>): Promise<boolean> {
    return await this.#sweepClaims(author, keep) && await this.#sweepDomains(author);
  }

  async #sweepClaims(
    { host, node, process }: Author,
    keep: ReadonlySet<number>,
  ): Promise<boolean> {
    const prefix = claimIdPrefix(process);
    return await this.#eachEntry({ host, node }, async (entries, shard) => {
      const gone = entries.filter(({ id }) =>
        !id.startsWith(prefix) || !keep.has(Number(id.slice(prefix.length)))
      );
      const accounts = new Set<Account>();
      for (const { id, name, resourcepart } of gone) {
        const account = this.#deps.accounts.borrow(name);
        account.bring(["HDEL", claimsKey(name), id]);
        account.touch(resourcepart);
        accounts.add(account);
      }
      if (gone.length === 0) return true;
      if (!await this.#deps.reconciler.replicate(accounts)) return false;
      const members = gone.map(({ id, name, resourcepart }) => member(id, name, resourcepart));
      const author = { host, node, process };
      return await this.#runCounted(author, [["SREM", replicaKey(host, node, shard), ...members]]);
    });
  }

  async #sweepDomains({ host, node }: NodeRef): Promise<boolean> {
    const keys = [domainsKey(host, node), publicDomainsKey(host, node)];
    const answers = await this.#run([
      ["SMEMBERS", replicaKey(host, node, DOMAIN_SHARD)],
      ...keys.map((key) => ["SMEMBERS", key] as const),
    ]);
    if (answers === undefined) return false;
    const [members, ...listed] = answers;
    const claimed = new Set(members.map((text) => parseMember(text).name));
    const removals = keys.flatMap((key, i): RedisCommand[] => {
      const gone = listed[i]!.filter((domain) => !claimed.has(domain));
      return gone.length === 0 ? [] : [["SREM", key, ...gone]];
    });
    return await this.#run(removals) !== undefined;
  }

  /**
   * Removes all entries of a node that has left or is dead for good. If it comes back meanwhile, it
   * sends a snapshot. False, and nothing has happened, when another process has the name of one that
   * has left.
   */
  async forget(author: Author, isLastNode: boolean): Promise<boolean> {
    const { host, node, process } = author;
    const [held] = await this.#run([["GET", leaseKey(host, node)]]) ?? [];
    if (held === undefined) return false;
    const holder = tryParseLease(held)?.incarnation ?? process;
    if (process !== 0 && holder !== process) return false;
    this.#deps.leases.note(author, undefined);
    const commands: RedisCommand[] = [
      ["DEL", leaseKey(host, node)],
      ["DEL", appliedKey(host, node)],
      ["SREM", nodesKey(host), node],
      ["DEL", endpointsKey(host, node)],
      ["DEL", domainsKey(host, node)],
      ["DEL", publicDomainsKey(host, node)],
    ];
    if (isLastNode) commands.push(["SREM", HOSTS_KEY, host]);
    if (await this.#run(commands) === undefined) return false;
    if (!await this.sweep(author, new Set())) return false;
    this.held.forget(author);
    return await this.#run([
      ["DEL", appliedKey(host, node)],
      ["SREM", AUTHORS_KEY, `${host}#${node}`],
    ]) !== undefined;
  }

  /** Checks every account that has a claim of the node, whose lease has ended or come back. */
  async lookAgain(node: NodeRef): Promise<boolean> {
    return await this.#eachEntry(node, async (entries, shard) => {
      const key = replicaKey(node.host, node.node, shard);
      if (await this.#run([["EXPIRE", key, this.#life]]) === undefined) return false;
      const accounts = new Set<Account>();
      for (const { name, resourcepart } of entries) {
        const account = this.#deps.accounts.borrow(name);
        account.bring(["EXPIRE", claimsKey(name), this.#life]);
        account.touch(resourcepart);
        accounts.add(account);
      }
      return await this.#deps.reconciler.replicate(accounts);
    });
  }

  async #eachEntry(
    { host, node }: NodeRef,
    work: (entries: readonly Entry[], shard: number) => Promise<boolean>,
  ): Promise<boolean> {
    for (let shard = 0; shard < SHARDS; shard++) {
      const answers = await this.#run([["SMEMBERS", replicaKey(host, node, shard)]]);
      if (answers === undefined) return false;
      const [members] = answers;
      for (let at = 0; at < members.length; at += BATCH) {
        if (!await work(members.slice(at, at + BATCH).map(parseMember), shard)) return false;
      }
    }
    return true;
  }

  /** Like `ask`; undefined when Redis was away or has refused something. */
  async #run<const Commands extends readonly RedisCommand[]>(
    commands: Commands,
  ): Promise<Answers<Commands> | undefined> {
    try {
      return await ask(this.#deps.redis, commands);
    } catch (thrown) {
      this.#deps.failed(describeError(thrown));
      return undefined;
    }
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

interface Entry {
  readonly id: string;
  readonly name: string;
  readonly resourcepart: string;
}

/** Returns the member for a claim: no id contains a space, and no bare JID or domain a slash. */
function member(id: string, name: string, resourcepart: string): string {
  return resourcepart === "" ? `${id} ${name}` : `${id} ${name}/${resourcepart}`;
}

function parseMember(text: string): Entry {
  const space = text.indexOf(" ");
  const key = text.slice(space + 1);
  const slash = key.indexOf("/");
  return {
    id: text.slice(0, space),
    name: slash === -1 ? key : key.slice(0, slash),
    resourcepart: slash === -1 ? "" : key.slice(slash + 1),
  };
}

function push(into: Map<number, string[]>, shard: number, value: string): void {
  const values = into.get(shard);
  if (values === undefined) into.set(shard, [value]);
  else values.push(value);
}
