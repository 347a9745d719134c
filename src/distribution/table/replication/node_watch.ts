import type { CancelTimer, Clock } from "../../../base/mod.ts";
import type { PacedLog } from "../../../observe/mod.ts";
import { AUTHORS_KEY, leaseKey, nodesKey } from "../redis/keys.ts";
import type { NodeLeases, NodeRef } from "../claims/node_leases.ts";
import { tryParseLease } from "../claims/node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { LEASES_PER_REFRESH, replicaSeconds } from "../options.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import type { ReplicaWriter } from "./replica_writer.ts";

/** The parts that `NodeWatch` works with. */
export interface NodeWatchDeps {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  /** Log of events that a datacenter can cause as often as it likes, paced for each local host. */
  readonly lives: PacedLog;
  readonly options: ResolvedTable;
  readonly leases: NodeLeases;
  /** Checks a node's entries here, and removes them. */
  readonly writer: Pick<ReplicaWriter, "lookAgain" | "forget">;
  isRedisUp(): boolean;
  /** Called when Redis has lost our lease: it may have lost anything else, too. */
  redisLost(): void;
  /** Called when a node of another datacenter no longer lives. */
  died(node: NodeRef): void;
  /** Called when no entry of a node is left here. */
  buried(node: NodeRef): void;
  failed(reason: string): void;
}

/** Milliseconds between checks of who lives. */
const WATCH_MS = 1_000;
/**
 * Share of a replica's life after which it is checked, and after which a dead author's is removed.
 */
const RENEWALS = 4;

interface Known extends NodeRef {
  /** Undefined until the first check. */
  isLive: boolean | undefined;
  lookedMs: number;
}

/**
 * Checks again and again which nodes hold a lease in this datacenter's Redis. When a node comes or
 * goes, its entries here are checked, as they count only with its lease. A node that has been dead
 * for long loses all its entries.
 */
export class NodeWatch {
  readonly #deps: NodeWatchDeps;
  /** Nodes by host and name, as `nodeId` writes them. */
  readonly #known = new Map<string, Known>();
  readonly #walks = new Map<string, NodeRef>();
  #isWalking = false;
  #isLooking = false;
  #isBurying = false;
  #isClosed = false;
  #hasBeaten = false;
  #cancel: CancelTimer = () => {};

  constructor(deps: NodeWatchDeps) {
    this.#deps = deps;
  }

  /** Begins the checks. */
  start(): void {
    this.#lookLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  /** True when a node of `host` lives, as far as this node has checked. */
  isLiveHost(host: string): boolean {
    if (host === this.#deps.options.localHost) return true;
    for (const known of this.#known.values()) {
      if (known.host === host && known.isLive !== false) return true;
    }
    return false;
  }

  /** True when a node of `host` is known, live or dead. */
  hasNodes(host: string): boolean {
    for (const known of this.#known.values()) if (known.host === host) return true;
    return false;
  }

  /** True when no other node of its datacenter may live. */
  isLastNode({ host, node }: NodeRef): boolean {
    for (const known of this.#known.values()) {
      if (known.host === host && known.node !== node && known.isLive !== false) return false;
    }
    return true;
  }

  /**
   * Notes that this node has written its lease: if Redis has none from now on, it has lost its
   * data.
   */
  leaseWritten(): void {
    this.#hasBeaten = true;
  }

  /** Notes a node; `isLive` is undefined before the first check. */
  note({ host, node }: NodeRef, isLive: boolean | undefined): void {
    const key = nodeId({ host, node });
    const nowMs = this.#deps.clock.monotonicMs();
    const entry = this.#known.get(key);
    if (entry === undefined) {
      this.#known.set(key, { host, node, isLive, lookedMs: nowMs });
      return;
    }
    if (isLive === undefined || entry.isLive === isLive) return;
    const isFirstLook = entry.isLive === undefined;
    entry.isLive = isLive;
    entry.lookedMs = nowMs;
    if (host === this.#deps.options.localHost) {
      // Keys that named our host on its behalf may belong to another datacenter now.
      if (!isLive) { for (const known of this.#known.values()) this.#walk(known); }
      return;
    }
    if (!isLive) this.#deps.died(entry);
    if (!isFirstLook) {
      const { lives } = this.#deps;
      if (isLive) lives.info("replication.author-back", host, { host, node });
      else lives.warn("replication.author-lost", host, { host, node });
    }
    // Also at the first check: a former process of our name may have left keys that name our host.
    this.#walk(entry);
  }

  /** Forgets a node that has left in order and has no entries here. */
  forget(node: NodeRef): void {
    this.#known.delete(nodeId(node));
  }

  /** Names of the known nodes of `host`, live or dead. */
  namesOf(host: string): readonly string[] {
    return Array.from(this.#known.values())
      .filter((known) => known.host === host).map(({ node }) => node);
  }

  /** True for a node that holds a lease, or was not checked yet. */
  isLive(node: NodeRef): boolean {
    const known = this.#known.get(nodeId(node));
    return known !== undefined && known.isLive !== false;
  }

  /**
   * Removes the entries of the node of `host` that has been dead for longest; false when all live.
   */
  buryOldest(host: string): boolean {
    let oldest: Known | undefined;
    for (const known of this.#known.values()) {
      if (known.host !== host || known.isLive !== false) continue;
      if (oldest === undefined || known.lookedMs < oldest.lookedMs) oldest = known;
    }
    if (oldest === undefined) return false;
    this.forget(oldest); // its place is free at once
    void this.#bury(oldest); // never rejects: the writer does not
    return true;
  }

  /** Removes the entries of the nodes of `host` for which `isGone` is true. */
  async buryAll(host: string, isGone: (node: string) => boolean): Promise<void> {
    for (const known of [...this.#known.values()]) {
      if (known.host === host && isGone(known.node)) await this.#bury(known);
    }
  }

  /** Checks which nodes live, and whether Redis still has our lease. */
  async look(): Promise<void> {
    const { redis, options, leases, clock, isRedisUp } = this.#deps;
    if (this.#isLooking || this.#isClosed || !isRedisUp()) return;
    this.#isLooking = true;
    const known = [...this.#known.values()];
    try {
      const [own, siblings, authors, ...values] = await ask(redis, [
        ["GET", leaseKey(options.localHost, options.nodeName)],
        ["SMEMBERS", nodesKey(options.localHost)],
        ["SMEMBERS", AUTHORS_KEY],
        ...known.map(({ host, node }) => ["GET", leaseKey(host, node)] as const),
      ]);
      if (own === null && this.#hasBeaten && !this.#isClosed) {
        this.#hasBeaten = false;
        this.#deps.redisLost();
      }
      for (const node of siblings) {
        if (node !== options.nodeName) this.note({ host: options.localHost, node }, undefined);
      }
      // A new node may have sent its entries to another of our nodes.
      for (const author of authors) {
        const at = author.indexOf("#");
        const [host, node] = [author.slice(0, at), author.slice(at + 1)];
        if (at > 0 && host !== options.localHost) this.note({ host, node }, undefined);
      }
      const nowMs = clock.monotonicMs();
      const renewMs = Number(replicaSeconds(options)) * 1000 / RENEWALS;
      for (const [i, { host, node }] of known.entries()) {
        const incarnation = tryParseLease(values[i]!)?.incarnation;
        leases.note({ host, node }, incarnation);
        this.note({ host, node }, incarnation !== undefined);
        const entry = this.#known.get(nodeId({ host, node }));
        if (entry === undefined || nowMs - entry.lookedMs < renewMs) continue;
        // Leases that were read before a burial would say nothing after it.
        if (!entry.isLive && this.#isBurying) continue;
        entry.lookedMs = nowMs;
        if (entry.isLive) this.#walk(entry);
        else if (host === options.localHost) this.forget(entry);
        else void this.#buryAlone(entry); // never rejects: the writer does not
      }
    } catch (thrown) {
      this.#deps.failed(String(thrown));
    }
    this.#isLooking = false;
  }

  #lookLater(): void {
    const { clock, options } = this.#deps;
    const everyMs = Math.min(WATCH_MS, options.redis.refreshAfterMs / LEASES_PER_REFRESH);
    this.#cancel = clock.after(everyMs, () => {
      this.#lookLater();
      void this.look(); // never rejects
    });
  }

  /** Buries a node while others are checked, and no other one: each may have very many entries. */
  async #buryAlone(node: NodeRef): Promise<void> {
    this.#isBurying = true;
    await this.#bury(node);
    this.#isBurying = false;
  }

  /**
   * Removes the entries of a node that was dead for long. If it comes back, it sends all of them
   * again.
   */
  async #bury(node: NodeRef): Promise<void> {
    const author = { host: node.host, node: node.node, process: 0 };
    if (!await this.#deps.writer.forget(author, this.isLastNode(author))) return;
    this.forget(node);
    this.#deps.buried(node);
    this.#deps.lives.info("replication.author-buried", node.host, { ...author });
  }

  /** Checks the keys of a node's claims: they count only with its lease. */
  #walk({ host, node }: NodeRef): void {
    if (host === this.#deps.options.localHost) return;
    this.#walks.set(nodeId({ host, node }), { host, node });
    if (this.#isWalking) return;
    this.#isWalking = true;
    void this.#walkAll(); // never rejects: the writer does not
  }

  async #walkAll(): Promise<void> {
    for (const [key, node] of this.#walks) {
      this.#walks.delete(key);
      if (this.#isClosed) break;
      // A walk that Redis interrupts is made again when Redis is back.
      if (!await this.#deps.writer.lookAgain(node)) {
        const entry = this.#known.get(key);
        if (entry !== undefined) entry.lookedMs = -Infinity;
      }
    }
    this.#isWalking = false;
  }
}

/** Returns one text for a node of a datacenter. */
export function nodeId({ host, node }: NodeRef): string {
  return `${host}#${node}`;
}
