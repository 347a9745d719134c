import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { PacedLog } from "../../observe/mod.ts";
import { AUTHORS_KEY, leaseKey, nodesKey } from "./keys.ts";
import type { NodeLeases, NodeRef } from "./node_leases.ts";
import { tryParseLease } from "./node_leases.ts";
import type { ResolvedTable } from "./options.ts";
import { LEASES_PER_REFRESH, replicaSeconds } from "./options.ts";
import type { RedisCommands } from "./redis_commands.ts";
import type { ReplicaWriter } from "./replica_writer.ts";

/** What it takes to see who lives. */
export interface NodeWatchDependencies {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  /** Takes what a datacenter can cause as often as it likes, by its local host. */
  readonly lives: PacedLog;
  readonly options: ResolvedTable;
  readonly leases: NodeLeases;
  /** Has what lies here of a node looked at, and taken away. */
  readonly writer: Pick<ReplicaWriter, "lookAgain" | "forget">;
  isRedisUp(): boolean;
  /** Redis has forgotten that we live: what else is gone, nobody knows. */
  redisLost(): void;
  /** A node of another datacenter no longer lives. */
  died(node: NodeRef): void;
  /** Nothing is left here of a node. */
  buried(node: NodeRef): void;
  failed(reason: string): void;
}

/** Milliseconds between looks at who lives. */
const WATCH_MS = 1_000;
/** Share of a replica's life after which it is looked at, and after which a dead author's goes. */
const RENEWALS = 4;

interface Known extends NodeRef {
  /** Undefined: not looked at yet. */
  isLive: boolean | undefined;
  lookedMs: number;
}

/**
 * Looks again and again which nodes hold a lease in this datacenter's Redis. When one comes or goes,
 * what lies here of its entries is looked at: with its lease they count or do not; a node that has
 * been dead for long leaves nothing behind.
 */
export class NodeWatch {
  readonly #deps: NodeWatchDependencies;
  /** By host and name, as `nodeId` writes them. */
  readonly #known = new Map<string, Known>();
  readonly #walks = new Map<string, NodeRef>();
  #isWalking = false;
  #isLooking = false;
  #isClosed = false;
  #hasBeaten = false;
  #cancel: CancelTimer = () => {};

  constructor(deps: NodeWatchDependencies) {
    this.#deps = deps;
  }

  /** Begins to look. */
  start(): void {
    this.#lookLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  /** True when a node of `host` lives, as far as this node has looked. */
  isLiveHost(host: string): boolean {
    if (host === this.#deps.options.localHost) return true;
    for (const known of this.#known.values()) {
      if (known.host === host && known.isLive !== false) return true;
    }
    return false;
  }

  /** True when a node of `host` is known, be it alive or dead. */
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

  /** This node has written its lease: from now on Redis remembers us, or has lost its data. */
  leaseWritten(): void {
    this.#hasBeaten = true;
  }

  /** A node is heard of; undefined where nobody has looked whether it lives. */
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
      // keys that named us on its behalf may belong to another datacenter now
      if (!isLive) { for (const known of this.#known.values()) this.#walk(known); }
      return;
    }
    if (!isLive) this.#deps.died(entry);
    if (!isFirstLook) {
      const { lives } = this.#deps;
      if (isLive) lives.info("replication.author-back", host, { host, node });
      else lives.warn("replication.author-lost", host, { host, node });
    }
    // also at the first look: whoever had our name before may have left keys that name us
    this.#walk(entry);
  }

  /** The node has left in order, and what was here of it is gone. */
  forget(node: NodeRef): void {
    this.#known.delete(nodeId(node));
  }

  /** Names of the nodes of `host` that are known, be they alive or dead. */
  namesOf(host: string): readonly string[] {
    return Array.from(this.#known.values())
      .filter((known) => known.host === host).map(({ node }) => node);
  }

  /** True for a node that holds a lease, or at which nobody has looked yet. */
  isLive(node: NodeRef): boolean {
    const known = this.#known.get(nodeId(node));
    return known !== undefined && known.isLive !== false;
  }

  /** Takes away what lies here of the node of `host` that has been dead for longest; false when all live. */
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

  /** Takes away what lies here of the nodes of `host` for which `isGone` says so. */
  async buryAll(host: string, isGone: (node: string) => boolean): Promise<void> {
    for (const known of [...this.#known.values()]) {
      if (known.host === host && isGone(known.node)) await this.#bury(known);
    }
  }

  /** Looks who lives, and whether Redis still knows us. */
  async look(): Promise<void> {
    const { redis, options, leases, clock, isRedisUp } = this.#deps;
    if (this.#isLooking || this.#isClosed || !isRedisUp()) return;
    this.#isLooking = true;
    const known = [...this.#known.values()];
    try {
      const [own, siblings, authors, ...replies] = await redis.run([
        ["GET", leaseKey(options.localHost, options.nodeName)],
        ["SMEMBERS", nodesKey(options.localHost)],
        ["SMEMBERS", AUTHORS_KEY],
        ...known.map(({ host, node }) => ["GET", leaseKey(host, node)] as const),
      ]);
      if (own === null && this.#hasBeaten && !this.#isClosed) {
        this.#hasBeaten = false;
        this.#deps.redisLost();
      }
      for (const node of Array.isArray(siblings) ? siblings as readonly string[] : []) {
        if (node !== options.nodeName) this.note({ host: options.localHost, node }, undefined);
      }
      // Of one that has started since, it may have told another node of ours.
      for (const author of Array.isArray(authors) ? authors as readonly string[] : []) {
        const at = author.indexOf("#");
        const [host, node] = [author.slice(0, at), author.slice(at + 1)];
        if (at > 0 && host !== options.localHost) this.note({ host, node }, undefined);
      }
      const nowMs = clock.monotonicMs();
      const renewMs = Number(replicaSeconds(options)) * 1000 / RENEWALS;
      for (const [i, { host, node }] of known.entries()) {
        const incarnation = tryParseLease(replies[i] ?? null)?.incarnation;
        leases.note({ host, node }, incarnation);
        this.note({ host, node }, incarnation !== undefined);
        const entry = this.#known.get(nodeId({ host, node }));
        if (entry === undefined || nowMs - entry.lookedMs < renewMs) continue;
        entry.lookedMs = nowMs;
        if (entry.isLive) this.#walk(entry);
        else if (host === options.localHost) this.forget(entry);
        else await this.#bury(entry);
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

  /** A node that has been dead for so long leaves nothing behind; should it come back, it tells all. */
  async #bury(node: NodeRef): Promise<void> {
    const author = { host: node.host, node: node.node, process: 0 };
    if (!await this.#deps.writer.forget(author, this.isLastNode(author))) return;
    this.forget(node);
    this.#deps.buried(node);
    this.#deps.lives.info("replication.author-buried", node.host, { ...author });
  }

  /** Has the keys behind a node's claims looked at: with its lease, they count or do not. */
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
      // a walk that Redis broke off is taken up when it is back
      if (!await this.#deps.writer.lookAgain(node)) {
        const entry = this.#known.get(key);
        if (entry !== undefined) entry.lookedMs = -Infinity;
      }
    }
    this.#isWalking = false;
  }
}

/** One text for a node of a datacenter. */
export function nodeId({ host, node }: NodeRef): string {
  return `${host}#${node}`;
}
