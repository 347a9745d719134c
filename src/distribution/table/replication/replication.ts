import type { CancelTimer, Clock } from "../../../base/mod.ts";
import type { Logger, Metrics } from "../../../observe/mod.ts";
import { LIFE_LINES, PacedLog } from "../../../observe/mod.ts";
import type { LinkTraffic, OpenLink } from "../../mod.ts";
import type { LeaseFields } from "../../wire/mod.ts";
import {
  decodeChanges,
  decodeLease,
  decodeMesh,
  decodePosition,
  decodeSnapshot,
  FRAME_TYPE,
} from "../../wire/mod.ts";
import type { Account, OwnSession } from "../claims/account.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import type { OwnAccounts } from "../claims/own_accounts.ts";
import type { Reconciler } from "../claims/reconciler.ts";
import { PeerBook } from "../mesh/peer_book.ts";
import type { Publication } from "../mesh/publication.ts";
import type { ResolvedTable } from "../options.ts";
import { LEASES_PER_REFRESH } from "../options.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { AuthorIntakes } from "./author_intakes.ts";
import { AuthorRules } from "./author_rules.ts";
import { LinkedNodes } from "./linked_nodes.ts";
import { MeshNews } from "./mesh_news.ts";
import { NodeWatch } from "./node_watch.ts";
import { OwnFeeds } from "./own_feeds.ts";
import { PeerFaults } from "./peer_faults.ts";
import type { Author } from "./replica_writer.ts";
import { ReplicaWriter } from "./replica_writer.ts";
import { ReplicationMetrics } from "./replication_metrics.ts";
import { TimeVotes } from "./time_votes.ts";

/** The parts that replication works with. */
export interface ReplicationDeps {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly options: ResolvedTable;
  readonly accounts: OwnAccounts;
  readonly reconciler: Reconciler;
  readonly leases: NodeLeases;
  readonly publication: Publication;
  /** Draws epochs, corrected to the time of most of the mesh. */
  readonly epochs: HybridClock;
  isRedisUp(): boolean;
  /** Called when Redis has lost our lease: it may have lost anything else, too. */
  redisLost(): void;
  /** Called when a datacenter, or one of its endpoints, was not known before. */
  meshChanged(host: string): void;
  /**
   * Called when others name a datacenter: it is dialled, and counts once it has proven its name.
   */
  meshHinted(host: string): void;
  /**
   * Called when an operator has removed a datacenter, or one known from hearsay has not answered.
   */
  hostRemoved(host: string): void;
  failed(reason: string): void;
}

/**
 * Replication by the nodes themselves (docs/redis.md). It sends this node's own entries to other
 * datacenters (`OwnFeeds`), and writes their entries into this datacenter's Redis (`AuthorIntakes`).
 */
export class Replication implements LinkTraffic {
  readonly peers: PeerBook;
  readonly #deps: ReplicationDeps;
  readonly #writer: ReplicaWriter;
  readonly #feeds: OwnFeeds;
  readonly #intakes: AuthorIntakes;
  readonly #watch: NodeWatch;
  readonly #news: MeshNews;
  readonly #votes: TimeVotes;
  readonly #faults: PeerFaults;
  readonly #linked = new LinkedNodes();
  readonly #log: PacedLog;
  /** Paces log lines about events that datacenters may cause as often as they like. */
  readonly #lives: PacedLog;
  #cancelBeat: CancelTimer = () => {};

  constructor(deps: ReplicationDeps) {
    this.#deps = deps;
    const { clock, logger, options, epochs } = deps;
    this.#log = new PacedLog(logger, clock);
    this.#lives = new PacedLog(logger, clock, LIFE_LINES);
    const metrics = new ReplicationMetrics(deps.metrics);
    this.peers = new PeerBook(options.datacenter.maxEndpoints);
    this.#faults = new PeerFaults(metrics, this.#log);
    this.#votes = new TimeVotes(epochs, this.#log);
    this.#feeds = new OwnFeeds({ ...deps, metrics, log: this.#log });
    this.#news = new MeshNews({ ...deps, lives: this.#lives, peers: this.peers });
    this.#writer = new ReplicaWriter({
      ...deps,
      full: ({ host }, kind, count) => {
        const limit = kind === "sessions" ? "claims" : "domains";
        this.#faults.limitHit(host, limit, this.#writer.held.limit(kind), count);
      },
    });
    this.#watch = new NodeWatch({
      ...deps,
      lives: this.#lives,
      writer: this.#writer,
      died: (node) => {
        // A lease that vanished from Redis says nothing about the clock of a node that is linked.
        if (!this.#linked.has(node)) this.#votes.forget(node);
        this.#intakes.letGo(node);
      },
      buried: (node) => this.#intakes.letGo(node),
    });
    const rules = new AuthorRules({
      options,
      epochs,
      faults: this.#faults,
      isLocalHost: (domain) => this.#isLocalHost(domain),
    });
    this.#intakes = new AuthorIntakes({
      ...deps,
      metrics,
      rules,
      writer: this.#writer,
      watch: this.#watch,
      votes: this.#votes,
      faults: this.#faults,
      leased: (author, lease) => this.#leased(author, lease),
      left: (author) => this.#left(author),
    });
  }

  /** Begins to send leases and to check who lives. */
  start(): void {
    this.#feeds.start(this.#deps.epochs.next());
    this.#beatLater();
    this.#watch.start();
  }

  close(): void {
    this.#cancelBeat();
    this.#watch.close();
  }

  get snapshot() {
    return {
      lastNumber: this.#feeds.lastNumber,
      out: this.#feeds.snapshot,
      in: this.#intakes.snapshot,
      peers: [...this.peers.entries()],
    };
  }

  // ---- our own entries ------------------------------------------------------------------------

  /** Sends claims of sessions whose epochs were drawn. */
  claimed(account: Account, sessions: readonly OwnSession[]): void {
    this.#feeds.claimed(account, sessions);
  }

  /** Sends the withdrawal of a claimed session that has closed. */
  withdrawn(name: string, session: OwnSession): void {
    this.#feeds.withdrawn(name, session);
  }

  /** Sends our lease to all datacenters at once, as our endpoints have changed. */
  leaseChanged(): void {
    this.#feeds.beat();
  }

  // ---- links -------------------------------------------------------------------------------

  accepted(link: OpenLink): void {
    this.#linked.opened(link);
    this.#news.accepted(link);
  }

  dialled(link: OpenLink): void {
    this.#linked.opened(link);
    this.#feeds.opened(link);
  }

  frame(link: OpenLink, type: number, buffer: Uint8Array, start: number, end: number): void {
    switch (type) {
      case FRAME_TYPE.lease: {
        const lease = this.#intakes.lease(link, decodeLease(buffer, start, end));
        if (lease === undefined) return;
        this.#answerOver(link, lease);
        const offsetUs = lease.nowUs - this.#deps.clock.wallUs();
        this.#votes.note({ host: lease.localHost, node: lease.nodeName }, offsetUs);
        return;
      }
      case FRAME_TYPE.changes:
        this.#intakes.changes(link, decodeChanges(buffer, start, end), end - start);
        return;
      case FRAME_TYPE.snapshot:
        this.#intakes.piece(link, decodeSnapshot(buffer, start, end), end - start);
        return;
      case FRAME_TYPE.position:
        this.#feeds.position(link, decodePosition(buffer, start, end));
        return;
      case FRAME_TYPE.mesh:
        for (const { host, endpoints } of decodeMesh(buffer, start, end)) {
          this.#news.hint(link, host, endpoints);
        }
        return;
      default:
        link.refuse(`frame of type ${type} is not one of replication`);
    }
  }

  ended(link: OpenLink, hasLeft: boolean): void {
    this.#news.ended(link);
    this.#feeds.ended(link);
    this.#linked.ended(link);
    this.#intakes.ended(link, hasLeft);
  }

  /** Answers over `link` when its datacenter accepts links nowhere: nobody can dial it. */
  #answerOver(link: OpenLink, { endpoints }: LeaseFields): void {
    if (endpoints.length > 0 || this.peers.has(link.host)) return;
    if (this.#news.hasAccepted(link)) this.#feeds.opened(link);
  }

  // ---- other datacenters -------------------------------------------------------------------

  /** True when a node of `host` lives, as far as this node has checked. */
  isLiveHost(host: string): boolean {
    return this.#watch.isLiveHost(host);
  }

  /**
   * Notes that claims of the datacenter `host` on one account were removed, as it had more than it
   * may.
   */
  overfull(host: string, count: number): void {
    const { maxClaimsPerAccount } = this.#deps.options.datacenter;
    this.#faults.limitHit(host, "claims-per-account", maxClaimsPerAccount, count);
  }

  #leased(author: Author, lease: LeaseFields): void {
    const { host, node } = author;
    this.#watch.note({ host, node }, true);
    this.#news.noteEndpoints(author, lease.endpoints);
  }

  #left(author: Author): void {
    const { host, node } = author;
    this.#lives.info("replication.author-left", host, { host, node });
    const isLast = this.#watch.isLastNode(author);
    this.#watch.forget(author);
    this.#votes.forget(author);
    this.#intakes.letGo(author);
    if (isLast) this.peers.forget(host);
    else this.peers.noteLeft(host, node);
  }

  /** True for the local host of another datacenter that has sent its own endpoints. */
  #isLocalHost(domain: string): boolean {
    return this.peers.has(domain) || this.#watch.hasNodes(domain);
  }

  /**
   * Removes a datacenter that will not come back from all that is known. Only a node linked with
   * this one counts as alive, as a lease is only a peer's claim. If it is linked with others of our
   * nodes, its next lease brings it back.
   * @returns `live` when one of its nodes is linked: only the others were removed; `unknown` when
   *   it is not known
   */
  async removeHost(host: string): Promise<"removed" | "live" | "unknown"> {
    const isKnown = this.#linked.hasHost(host) || this.#isLocalHost(host) ||
      this.peers.isHearsay(host);
    if (!isKnown) return "unknown";
    await this.#watch.buryAll(host, (node) => !this.#linked.has({ host, node }));
    if (this.#linked.hasHost(host)) return "live";
    this.peers.dismiss(host);
    this.#removed(host);
    await this.#syncPeers();
    return "removed";
  }

  #removed(host: string): void {
    if (!this.#linked.hasHost(host)) this.#feeds.drop(host);
    this.#deps.logger.info("replication.peer-removed", { host });
    this.#deps.hostRemoved(host);
  }

  // ---- time and Redis ----------------------------------------------------------------------

  #beatLater(): void {
    const everyMs = this.#deps.options.redis.refreshAfterMs / LEASES_PER_REFRESH;
    this.#cancelBeat = this.#deps.clock.after(everyMs, () => {
      this.#beatLater();
      this.#look();
      if (!this.#deps.publication.isSuperseded) this.leaseChanged();
    });
  }

  /** Does work that was put off, and removes state that has expired. */
  #look(): void {
    this.#log.flush();
    this.#lives.flush();
    this.#news.tellLate();
    this.#feeds.restartLate();
    for (const host of this.peers.forgetHearsay(this.#deps.clock.monotonicMs())) {
      if (!this.#isLocalHost(host)) this.#removed(host);
    }
    this.#intakes.look();
  }

  /** Notes that this node has written its lease: if Redis has none later, it has lost its data. */
  async redisReached(): Promise<void> {
    this.#watch.leaseWritten();
    await this.#syncPeers();
  }

  /** Restarts replication after Redis takes writes again, or (`hasLost`) has lost its data. */
  async redisRestored(hasLost: boolean): Promise<void> {
    if (hasLost) {
      this.peers.redisLost();
      this.#deps.logger.warn("replication.refill", { authors: this.#intakes.size });
    }
    this.#intakes.restart(hasLost);
    const authors = await this.#writer.authors() ?? [];
    for (const { host, node } of authors) {
      if (host !== this.#deps.options.localHost) this.#watch.note({ host, node }, undefined);
    }
    await this.#syncPeers();
    await this.#watch.look();
  }

  async #syncPeers(): Promise<void> {
    const before = new Set(this.peers.hosts());
    try {
      await this.peers.sync(this.#deps.redis);
    } catch (thrown) {
      this.#deps.failed(String(thrown));
    }
    const after = new Set(this.peers.hosts());
    for (const host of after) if (!before.has(host)) this.#deps.meshChanged(host);
    for (const host of before) {
      // One that has left in order meanwhile is missing too, and nobody has removed it.
      if (!after.has(host) && this.peers.isDismissed(host)) this.#removed(host);
    }
  }
}
