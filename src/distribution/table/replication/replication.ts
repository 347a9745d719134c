import type { CancelTimer, Clock } from "../../../base/mod.ts";
import { RateLimit } from "../../../base/mod.ts";
import type { Logger, Metrics } from "../../../observe/mod.ts";
import { LIFE_LINES, PacedLog } from "../../../observe/mod.ts";
import { tryParseJid } from "../../../xmpp/mod.ts";
import type { LinkTraffic, OpenLink } from "../../mod.ts";
import type { LeaseFields, PositionFields, TableRecord } from "../../wire/mod.ts";
import {
  decodeChanges,
  decodeLease,
  decodeMesh,
  decodePosition,
  decodeSnapshot,
  FRAME_TYPE,
  isRecordWritable,
  leaseFrame,
  meshFrame,
} from "../../wire/mod.ts";
import type { Account, OwnSession } from "../claims/account.ts";
import { AuthorFeed } from "./author_feed.ts";
import type { FrameBudget } from "./author_intake.ts";
import { AuthorIntake } from "./author_intake.ts";
import { ChangeLog } from "./change_log.ts";
import { isHost, isNodeName } from "../claims/claims.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import { MeshTime } from "./mesh_time.ts";
import { formatEndpoint, tryParseEndpoint } from "../mesh/directory.ts";
import { fullJidKey, isReservedDomain, leaseKey } from "../redis/keys.ts";
import type { NodeLeases, NodeRef } from "../claims/node_leases.ts";
import { nodeId, NodeWatch } from "./node_watch.ts";
import type { ResolvedTable } from "../options.ts";
import { LEASES_PER_REFRESH } from "../options.ts";
import type { OwnAccounts } from "../claims/own_accounts.ts";
import { PeerBook } from "../mesh/peer_book.ts";
import type { Publication } from "../mesh/publication.ts";
import type { Author } from "./replica_writer.ts";
import { ReplicaWriter } from "./replica_writer.ts";
import type { Reconciler } from "../claims/reconciler.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { ReplicationMetrics } from "./replication_metrics.ts";

/**
 * Rate of leases that are read from one datacenter, all its nodes together: each costs a handful of
 * Redis commands. A node sends one each quarter of `refresh_after`, and one when a link opens.
 */
const LEASE_RATE = { perSec: 64, burst: 1_024 };
/**
 * Rate of news about one datacenter's endpoints to others; further news waits for the next beat.
 */
const NEWS_RATE = { perSec: 0.2, burst: 16 };
/**
 * Rate at which one datacenter may have all our claims sent again: the cost grows with our sessions.
 * A datacenter that asks sooner waits for a beat.
 */
const RESTART_RATE = { perSec: 1 / 60, burst: 16 };
/** Bytes of one datacenter's frames that may wait to be applied. */
const MAX_WAITING_BYTES = 67_108_864;

/** The parts that replication works with. */
export interface ReplicationDependencies {
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
 * datacenters, and writes their entries into this datacenter's Redis.
 */
export class Replication implements LinkTraffic {
  readonly #deps: ReplicationDependencies;
  readonly #changes = new ChangeLog();
  readonly #writer: ReplicaWriter;
  readonly #metrics: ReplicationMetrics;
  readonly #feeds = new Map<string, AuthorFeed>();
  readonly #intakes = new Map<string, AuthorIntake>();
  readonly #watch: NodeWatch;
  /** Accepted links by peer; the first link of each has been sent our MESH frame. */
  readonly #accepted = new Map<string, Set<OpenLink>>();
  /** Number of open links by local host and node name: a linked node is alive. */
  readonly #linked = new Map<string, Map<string, number>>();
  /** Frames that wait to be applied, by local host. */
  readonly #waiting = new Map<string, FrameBudget>();
  readonly #leaseRate: RateLimit;
  readonly #newsRate: RateLimit;
  readonly #newsDue = new Set<string>();
  readonly #restartRate: RateLimit;
  /** The last POSITION of each datacenter that has to wait for its turn. */
  readonly #restartsDue = new Map<string, { link: OpenLink; position: PositionFields }>();
  readonly #log: PacedLog;
  /** Paces log lines about events that datacenters may cause as often as they like. */
  readonly #lives: PacedLog;
  readonly #time = new MeshTime();
  readonly peers: PeerBook;
  #startedUs = 0;
  #isFlushing = false;
  #cancelBeat: CancelTimer = () => {};

  constructor(deps: ReplicationDependencies) {
    this.#deps = deps;
    const { clock, logger, metrics, options } = deps;
    this.#log = new PacedLog(logger, clock);
    this.#lives = new PacedLog(logger, clock, LIFE_LINES);
    this.#leaseRate = new RateLimit(LEASE_RATE, clock);
    this.#newsRate = new RateLimit(NEWS_RATE, clock);
    this.#restartRate = new RateLimit(RESTART_RATE, clock);
    this.peers = new PeerBook(options.datacenter.maxEndpoints);
    this.#metrics = new ReplicationMetrics(metrics);
    this.#writer = new ReplicaWriter({
      ...deps,
      full: ({ host }, kind, count) => {
        const limit = kind === "sessions" ? "claims" : "domains";
        this.#limitHit(host, limit, this.#writer.held.limit(kind), count);
      },
    });
    this.#watch = new NodeWatch({
      ...deps,
      lives: this.#lives,
      writer: this.#writer,
      died: (node) => {
        this.#forgetTime(node);
        this.#letGo(node);
      },
      buried: (node) => this.#letGo(node),
    });
  }

  /** Begins to send leases and to check who lives. */
  start(): void {
    this.#startedUs = this.#deps.epochs.next();
    this.#beatLater();
    this.#watch.start();
  }

  close(): void {
    this.#cancelBeat();
    this.#watch.close();
  }

  get snapshot() {
    return {
      lastNumber: this.#changes.lastNumber,
      out: Array.from(this.#feeds.values(), (feed) => feed.snapshot),
      in: Array.from(this.#intakes.values(), (intake) => intake.snapshot),
      peers: [...this.peers.entries()],
    };
  }

  // ---- our own entries ------------------------------------------------------------------------

  /** Sends claims of sessions whose epochs were drawn. */
  claimed(account: Account, sessions: readonly OwnSession[]): void {
    if (!this.#isForOthers(account.name)) return;
    for (const session of sessions) this.#append(this.#record("claim", account.name, session));
  }

  /** Sends the withdrawal of a claimed session that has closed. */
  withdrawn(name: string, session: OwnSession): void {
    if (this.#isForOthers(name)) this.#append(this.#record("withdraw", name, session));
  }

  /** Sends our lease to all datacenters at once, as our endpoints have changed. */
  leaseChanged(): void {
    for (const feed of this.#feeds.values()) feed.beat();
  }

  #append(record: TableRecord): void {
    if (!this.#isWritable(record)) return;
    this.#changes.append(record);
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      for (const feed of this.#feeds.values()) feed.pump();
    });
  }

  /** Users of other hosts than the global one belong to this datacenter alone. */
  #isForOthers(name: string): boolean {
    const at = name.indexOf("@");
    return at === -1 || name.slice(at + 1) === this.#deps.options.globalHost;
  }

  /** False for an entry that no reader would take: it would end every link that it is sent over. */
  #isWritable(record: TableRecord): boolean {
    if (isRecordWritable(record)) return true;
    this.#metrics.unwritable.inc();
    this.#log.warn("replication.unwritable", record.name, { epoch: record.epoch });
    return false;
  }

  #record(kind: TableRecord["kind"], name: string, session: OwnSession): TableRecord {
    const { number: sequence, epoch, resourcepart } = session;
    const isHidden = resourcepart === "" && this.#deps.publication.isHidden(name);
    return { kind, isHidden, sequence, epoch, name, resourcepart };
  }

  *#claims(): IterableIterator<TableRecord> {
    for (const account of this.#deps.accounts.all()) {
      if (!this.#isForOthers(account.name)) continue;
      for (const session of account.sessions) {
        if (session.epoch === 0) continue;
        const record = this.#record("claim", account.name, session);
        if (this.#isWritable(record)) yield record;
      }
    }
  }

  #leaseFrame(): Uint8Array {
    const { options, clock, publication } = this.#deps;
    return leaseFrame({
      process: options.incarnation,
      startedUs: publication.startedUs || this.#startedUs,
      nowUs: clock.wallUs(),
      lastNumber: this.#changes.lastNumber,
      lifeMs: Math.min(options.redis.expireAfterMs, 0xffffffff),
      localHost: options.localHost,
      nodeName: options.nodeName,
      endpoints: publication.endpoints,
    });
  }

  /** Claims of the datacenter `host` on one account were taken away: it has more than it may. */
  overfull(host: string, count: number): void {
    const { maxClaimsPerAccount } = this.#deps.options.datacenter;
    this.#limitHit(host, "claims-per-account", maxClaimsPerAccount, count);
  }

  // ---- links -------------------------------------------------------------------------------

  accepted(link: OpenLink): void {
    this.#countLink(link, 1);
    let links = this.#accepted.get(peerOf(link));
    if (links === undefined) this.#accepted.set(peerOf(link), links = new Set());
    links.add(link);
    if (links.size === 1) link.send(this.#meshFrame());
  }

  dialled(link: OpenLink): void {
    this.#countLink(link, 1);
    this.#feed(link.host).opened(link);
  }

  /** Returns the feed to the datacenter `host`. */
  #feed(host: string): AuthorFeed {
    let feed = this.#feeds.get(host);
    if (feed === undefined) {
      feed = new AuthorFeed(host, {
        process: this.#deps.options.incarnation,
        log: this.#changes,
        claims: () => this.#claims(),
        leaseFrame: () => this.#leaseFrame(),
      });
      this.#feeds.set(host, feed);
      const { snapshot } = feed;
      this.#metrics.bindOut(host, () => this.#feeds.get(host)?.snapshot ?? snapshot);
    }
    return feed;
  }

  #position(link: OpenLink, position: PositionFields): void {
    const { host } = link;
    const feed = this.#feeds.get(host);
    if (feed === undefined) return;
    if (feed.isCostly(position) && !this.#restartRate.take(host)) {
      this.#restartsDue.set(host, { link, position });
      return;
    }
    if (position.isRestart) this.#restartsDue.delete(host);
    feed.position(link, position);
  }

  /** Nobody can dial a datacenter that accepts links nowhere: it is told over those that it makes. */
  #answerOver(link: OpenLink, { endpoints }: LeaseFields): void {
    if (endpoints.length > 0 || this.peers.has(link.host)) return;
    if (this.#accepted.get(peerOf(link))?.has(link)) this.#feed(link.host).opened(link);
  }

  frame(link: OpenLink, type: number, buffer: Uint8Array, start: number, end: number): void {
    switch (type) {
      case FRAME_TYPE.lease: {
        const told = decodeLease(buffer, start, end);
        if (!this.#isOwn(link, told) || !this.#leaseRate.take(link.host)) return;
        if (this.#isAnothers(link)) return;
        const lease = this.#bounded(told);
        const intake = this.#intake(lease, link);
        if (intake === undefined) return;
        intake.lease(link, lease);
        this.#answerOver(link, lease);
        const offsetUs = lease.nowUs - this.#deps.clock.wallUs();
        if (this.#time.note({ host: lease.localHost, node: lease.nodeName }, offsetUs)) {
          this.#followTime();
        }
        return;
      }
      case FRAME_TYPE.changes: {
        const changes = decodeChanges(buffer, start, end);
        if (this.#isOwn(link, changes)) this.#intakeOf(link)?.changes(link, changes, end - start);
        return;
      }
      case FRAME_TYPE.snapshot: {
        const piece = decodeSnapshot(buffer, start, end);
        if (this.#isOwn(link, piece)) this.#intakeOf(link)?.piece(link, piece, end - start);
        return;
      }
      case FRAME_TYPE.position:
        this.#position(link, decodePosition(buffer, start, end));
        return;
      case FRAME_TYPE.mesh:
        for (const { host, endpoints } of decodeMesh(buffer, start, end)) {
          this.#hint(link, host, endpoints);
        }
        return;
      default:
        link.refuse(`frame of type ${type} is not one of replication`);
    }
  }

  ended(link: OpenLink, hasLeft: boolean): void {
    const links = this.#accepted.get(peerOf(link));
    if (links?.delete(link) && links.size === 0) this.#accepted.delete(peerOf(link));
    this.#feeds.get(link.host)?.ended(link);
    this.#countLink(link, -1);
    this.#intakeOf(link)?.ended(link, hasLeft);
    this.#letGo({ host: link.host, node: link.nodeName });
  }

  #countLink({ host, nodeName }: OpenLink, by: 1 | -1): void {
    let nodes = this.#linked.get(host);
    if (nodes === undefined) this.#linked.set(host, nodes = new Map());
    const links = (nodes.get(nodeName) ?? 0) + by;
    if (links > 0) nodes.set(nodeName, links);
    else nodes.delete(nodeName);
    if (nodes.size === 0) this.#linked.delete(host);
  }

  /**
   * Returns the lease within our bounds: no longer life than allowed, and only endpoints that
   * readers take.
   */
  #bounded(lease: LeaseFields): LeaseFields {
    const { maxLeaseMs, maxEndpointsPerNode } = this.#deps.options.datacenter;
    const endpoints = lease.endpoints.flatMap((text) => tryParseEndpoint(text) ?? [])
      .map(formatEndpoint);
    if (endpoints.length > maxEndpointsPerNode) {
      const tooMany = endpoints.length - maxEndpointsPerNode;
      this.#limitHit(lease.localHost, "endpoints-per-node", maxEndpointsPerNode, tooMany);
    }
    return {
      ...lease,
      startedUs: this.#deps.epochs.bounded(lease.startedUs),
      lifeMs: Math.min(lease.lifeMs, maxLeaseMs),
      endpoints: endpoints.slice(0, maxEndpointsPerNode),
    };
  }

  #limitHit(host: string, limit: string, bound: number, count: number): void {
    this.#metrics.limitHit(limit).inc(count);
    this.#log.warn("datacenter.limit", `${host} ${limit}`, { host, limit, bound });
  }

  /** Checks that an author speaks only for itself, on its own links. */
  #isOwn(
    link: OpenLink,
    fields: { readonly process: number; readonly localHost?: string; readonly nodeName?: string },
  ): boolean {
    const { process, localHost = link.host, nodeName = link.nodeName } = fields;
    const isItself = process === link.process && localHost === link.host &&
      nodeName === link.nodeName;
    if (isItself && isHost(localHost) && isNodeName(nodeName)) return true;
    const what = isItself ? "it has a name that cannot be" : "it tells of another node";
    this.#refuse(link.host, `${what}: ${nodeName.slice(0, 100)} at ${localHost}`, link.nodeName);
    return false;
  }

  /**
   * True for a process that another node is, or was when last heard of. Claims are named after
   * processes: a node with another's number could write and remove that one's claims.
   */
  #isAnothers(link: OpenLink): boolean {
    const { host, nodeName: node, process } = link;
    const { options, leases } = this.#deps;
    const holder = leases.holderOf(process) ?? leaseKey(host, node);
    let isAnothers = process === options.incarnation || holder !== leaseKey(host, node);
    for (const intake of this.#intakes.values()) {
      isAnothers ||= intake.process === process && (intake.host !== host || intake.node !== node);
    }
    if (isAnothers) this.#refuse(host, "it says that it is another node's process", node);
    return isAnothers;
  }

  #refuse(host: string, detail: string, node: string): void {
    this.#metrics.refused.inc();
    this.#log.warn("replication.refused", nodeId({ host, node }), { host, detail });
  }

  /** Returns the intake; undefined when its datacenter has as many nodes as it may. */
  #intake({ localHost: host, nodeName: node }: LeaseFields, link: OpenLink):
    | AuthorIntake
    | undefined {
    const key = nodeId({ host, node });
    let intake = this.#intakes.get(key);
    if (intake === undefined) {
      if (!this.#hasRoomFor(link)) return undefined;
      let waiting = this.#waiting.get(host);
      if (waiting === undefined) {
        this.#waiting.set(host, waiting = { bytes: 0, maxBytes: MAX_WAITING_BYTES });
      }
      intake = new AuthorIntake({ host, node }, {
        writer: this.#writer,
        waiting,
        leased: (author, lease) => this.#leased(author, lease),
        left: (author) => this.#left(author),
        mayClaim: (author, record) => this.#mayClaim(author, record),
        boundedEpoch: (epoch) => this.#deps.epochs.bounded(epoch),
        isLastNode: (author) => this.#watch.isLastNode(author),
        applied: (_, count) => this.#metrics.applied.inc(count),
      });
      this.#intakes.set(key, intake);
      const own = intake;
      this.#metrics.bindIn(host, node, () => own.snapshot);
    }
    return intake;
  }

  /** True when one more node of the peer's datacenter may send entries. */
  #hasRoomFor({ host, nodeName }: OpenLink): boolean {
    const { maxNodes } = this.#deps.options.datacenter;
    const names = new Set(this.#watch.namesOf(host));
    for (const intake of this.#intakes.values()) if (intake.host === host) names.add(intake.node);
    if (names.has(nodeName) || names.size < maxNodes) return true;
    // A node that has been dead for long makes room, as nodes may have a new name with every start.
    if (this.#watch.buryOldest(host)) return true;
    this.#limitHit(host, "nodes", maxNodes, 1);
    return false;
  }

  /** Forgets a node that is neither linked nor alive; its metrics go with its lease. */
  #letGo(node: NodeRef): void {
    const key = nodeId(node);
    const intake = this.#intakes.get(key);
    if (!intake?.isIdle || this.#watch.isLive(node)) return;
    this.#intakes.delete(key);
    this.#forgetTime(node); // also of one that nobody has seen die: it was removed, or never written
    this.#metrics.unbindIn(node.host, node.node);
    for (const { host } of this.#intakes.values()) if (host === node.host) return;
    this.#waiting.delete(node.host);
  }

  #intakeOf({ host, nodeName }: OpenLink): AuthorIntake | undefined {
    return this.#intakes.get(nodeId({ host, node: nodeName }));
  }

  /**
   * True for a user of the global host, or a component that is no host of ours and no local host.
   */
  #mayClaim({ host, node }: Author, { name, resourcepart }: TableRecord): boolean {
    const { globalHost, localHost, hosts } = this.#deps.options;
    // A host that several datacenters list is served in each: ignoring another's claim is no
    // refusal.
    if (hosts.includes(name) && name !== globalHost && name !== localHost) return false;
    const jid = tryParseJid(resourcepart === "" ? name : fullJidKey(name, resourcepart));
    const isWellFormed = jid !== undefined && jid.bare.text === name &&
      jid.text === (resourcepart === "" ? name : fullJidKey(name, resourcepart));
    const isAllowed = isWellFormed &&
      (jid.localpart === ""
        ? resourcepart === "" && !hosts.includes(name) && !this.#isLocalHost(name) &&
          !isReservedDomain(name)
        : jid.domainpart === globalHost && resourcepart !== "");
    if (!isAllowed) this.#refuse(host, "it claims what is not its own to claim", node);
    return isAllowed;
  }

  /** True for the local host of another datacenter that has sent its own endpoints. */
  #isLocalHost(domain: string): boolean {
    return this.peers.has(domain) || this.#watch.hasNodes(domain);
  }

  // ---- the mesh ----------------------------------------------------------------------------

  /** True when a node of `host` lives, as far as this node has checked. */
  isLiveHost(host: string): boolean {
    return this.#watch.isLiveHost(host);
  }

  #leased(author: Author, lease: LeaseFields): void {
    const { host, node } = author;
    this.#watch.note({ host, node }, true);
    this.#noteEndpoints(author, lease.endpoints);
  }

  #noteEndpoints({ host, node }: NodeRef, texts: readonly string[]): void {
    const endpoints = texts.flatMap((text) => tryParseEndpoint(text) ?? []);
    if (endpoints.length > 0 && this.peers.note(host, node, endpoints)) this.#meshNews(host);
  }

  #left(author: Author): void {
    const { host, node } = author;
    this.#lives.info("replication.author-left", host, { host, node });
    const isLast = this.#watch.isLastNode(author);
    this.#watch.forget(author);
    this.#forgetTime(author);
    this.#letGo(author);
    if (isLast) this.peers.forget(host);
    else this.peers.noteLeft(host, node);
  }

  /** Dials a datacenter that another one names; its certificate must prove its name. */
  #hint(link: OpenLink, host: string, texts: readonly string[]): void {
    const { options, clock, logger } = this.#deps;
    if (!isHost(host) || options.hosts.includes(host)) return;
    if (this.peers.has(host)) return; // what we were told by itself counts more
    if (host === link.host) { // has proven it, to have this link
      const { maxEndpointsPerNode } = options.datacenter;
      this.#noteEndpoints({ host, node: link.nodeName }, texts.slice(0, maxEndpointsPerNode));
      return;
    }
    const endpoints = texts.flatMap((text) => tryParseEndpoint(text) ?? []);
    const { host: teller } = link;
    const nowMs = clock.monotonicMs();
    if (endpoints.length === 0 || !this.peers.noteHearsay(host, endpoints, { teller, nowMs })) {
      return;
    }
    logger.info("replication.hearsay", { host, teller, endpoints: endpoints.map(formatEndpoint) });
    this.#deps.meshHinted(host);
  }

  /** Sends news of a datacenter's endpoints; if they change often, not before the next beat. */
  #meshNews(host: string): void {
    if (this.#newsRate.take(host)) this.#tellMesh(host);
    else this.#newsDue.add(host);
  }

  #tellMesh(host: string): void {
    const endpoints = this.peers.endpoints(host).map(formatEndpoint);
    this.#lives.info("replication.peer", host, { host, endpoints });
    const frame = this.#meshFrame();
    for (const links of this.#accepted.values()) {
      for (const link of links) {
        link.send(frame);
        break; // one link of each process
      }
    }
    this.#deps.meshChanged(host);
  }

  #meshFrame(): Uint8Array {
    const { localHost } = this.#deps.options;
    const { endpoints } = this.#deps.publication;
    return meshFrame([{ host: localHost, endpoints }, ...this.peers.entries()]);
  }

  // ---- time --------------------------------------------------------------------------------

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
    for (const host of this.#newsDue) if (this.peers.has(host)) this.#tellMesh(host);
    this.#newsDue.clear();
    const restarts = [...this.#restartsDue.values()];
    this.#restartsDue.clear();
    for (const { link, position } of restarts) this.#position(link, position);
    for (const host of this.peers.forgetHearsay(this.#deps.clock.monotonicMs())) {
      if (!this.#isLocalHost(host)) this.#removed(host);
    }
    for (const intake of [...this.#intakes.values()]) {
      if (intake.hasRefused && this.#writer.held.hasRoom(intake.host)) intake.restart(true);
      else this.#letGo(intake);
    }
    void this.#measureOthers(); // never rejects: the writer does not
  }

  /** Counts the claims that other nodes of ours have written, and those that were here before. */
  async #measureOthers(): Promise<void> {
    for (const host of new Set([...this.#intakes.values()].map(({ host }) => host))) {
      const others = this.#watch.namesOf(host).filter((node) =>
        this.#intakes.get(nodeId({ host, node }))?.isIdle ?? true
      );
      if (others.length > 0) await this.#writer.measure(others.map((node) => ({ host, node })));
    }
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
    for (const intake of this.#intakes.values()) intake.restart(hasLost);
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
    for (const host of before) if (!after.has(host)) this.#removed(host);
  }

  /**
   * Removes a datacenter that will not come back from all that is known. Only a node linked with
   * this one counts as alive, as a lease is only a peer's claim. If it is linked with others of our
   * nodes, its next lease brings it back.
   * @returns `live` when one of its nodes is linked: only the others were removed; `unknown` when
   *   it is not known
   */
  async removeHost(host: string): Promise<"removed" | "live" | "unknown"> {
    const linked = this.#linked.get(host);
    if (linked === undefined && !this.#isLocalHost(host) && !this.peers.isHearsay(host)) {
      return "unknown";
    }
    await this.#watch.buryAll(host, (node) => !linked?.has(node));
    if (linked !== undefined && linked.size > 0) return "live";
    this.peers.dismiss(host);
    this.#removed(host);
    await this.#syncPeers();
    return "removed";
  }

  #removed(host: string): void {
    if (!this.#linked.has(host)) {
      this.#feeds.delete(host);
      this.#metrics.unbindOut(host);
    }
    this.#deps.logger.info("replication.peer-removed", { host });
    this.#deps.hostRemoved(host);
  }

  /** Drops a node that is gone from the time votes. */
  #forgetTime(node: NodeRef): void {
    if (this.#time.forget(node)) this.#followTime();
  }

  #followTime(): void {
    const { correctionUs } = this.#time;
    this.#deps.epochs.correct(correctionUs);
    const aheadMs = Math.round(-correctionUs / 1000);
    if (correctionUs === 0) this.#log.info("clock.agrees", "", {});
    else this.#log.warn("clock.off", "", { aheadMs });
  }
}

/** Returns the key of a peer: a process is only a claim, and counts for its own host alone. */
function peerOf({ host, process }: OpenLink): string {
  return `${host}#${process}`;
}
