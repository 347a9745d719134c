import type { Clock } from "../../../base/mod.ts";
import { RateLimit } from "../../../base/mod.ts";
import type { OpenLink } from "../../mod.ts";
import type { ChangesFields, LeaseFields, SnapshotFields } from "../../wire/mod.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import type { NodeLeases, NodeRef } from "../claims/node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { leaseKey } from "../redis/keys.ts";
import type { FrameBudget } from "./author_intake.ts";
import { AuthorIntake } from "./author_intake.ts";
import type { AuthorRules } from "./author_rules.ts";
import type { NodeWatch } from "./node_watch.ts";
import { nodeId } from "./node_watch.ts";
import type { PeerFaults } from "./peer_faults.ts";
import type { Author, ReplicaWriter } from "./replica_writer.ts";
import type { ReplicationMetrics } from "./replication_metrics.ts";
import type { TimeVotes } from "./time_votes.ts";

/**
 * Rate of leases that are read from one datacenter, all its nodes together: each costs a handful of
 * Redis commands. A node sends one each quarter of `refresh_after`, and one when a link opens.
 */
const LEASE_RATE = { perSec: 64, burst: 1_024 };
/** Bytes of one datacenter's frames that may wait to be applied. */
const MAX_WAITING_BYTES = 67_108_864;

/** The parts that `AuthorIntakes` works with. */
export interface AuthorIntakesDeps {
  readonly clock: Clock;
  readonly options: ResolvedTable;
  readonly epochs: HybridClock;
  readonly leases: NodeLeases;
  readonly writer: ReplicaWriter;
  readonly watch: NodeWatch;
  readonly rules: AuthorRules;
  readonly votes: TimeVotes;
  readonly metrics: ReplicationMetrics;
  readonly faults: PeerFaults;
  /** Called when an author's lease has been written. */
  leased(author: Author, lease: LeaseFields): void;
  /** Called when an author has gone down in order, and its entries are removed here. */
  left(author: Author): void;
}

/** Takes the entries that the nodes of other datacenters send, each node within its bounds. */
export class AuthorIntakes {
  readonly #deps: AuthorIntakesDeps;
  /** Intakes by node, as `nodeId` writes it. */
  readonly #intakes = new Map<string, AuthorIntake>();
  /** Frames that wait to be applied, by local host. */
  readonly #waiting = new Map<string, FrameBudget>();
  readonly #leaseRate: RateLimit;

  constructor(deps: AuthorIntakesDeps) {
    this.#deps = deps;
    this.#leaseRate = new RateLimit(LEASE_RATE, deps.clock);
  }

  get size(): number {
    return this.#intakes.size;
  }

  get snapshot() {
    return Array.from(this.#intakes.values(), (intake) => intake.snapshot);
  }

  /** Takes a lease; returns it as it counts here, or undefined when it was refused. */
  lease(link: OpenLink, told: LeaseFields): LeaseFields | undefined {
    const { rules } = this.#deps;
    if (!rules.isItself(link, told) || !this.#leaseRate.take(link.host)) return undefined;
    if (this.#isAnothers(link)) return undefined;
    const lease = rules.bounded(told);
    const intake = this.#intake(lease, link);
    intake?.lease(link, lease);
    return intake === undefined ? undefined : lease;
  }

  changes(link: OpenLink, changes: ChangesFields, frameBytes: number): void {
    if (!this.#deps.rules.isItself(link, changes)) return;
    this.#intakeOf(link)?.changes(link, changes, frameBytes);
  }

  piece(link: OpenLink, piece: SnapshotFields, frameBytes: number): void {
    if (!this.#deps.rules.isItself(link, piece)) return;
    this.#intakeOf(link)?.piece(link, piece, frameBytes);
  }

  /** Notes that a link has ended; `hasLeft` when the author's process goes down. */
  ended(link: OpenLink, hasLeft: boolean): void {
    this.#intakeOf(link)?.ended(link, hasLeft);
    this.letGo({ host: link.host, node: link.nodeName });
  }

  /** Looks up all positions again after Redis has come back, or (`hasLost`) lost its data. */
  restart(hasLost: boolean): void {
    for (const intake of this.#intakes.values()) intake.restart(hasLost);
  }

  /** Asks again for claims that had no room and have it now, and forgets nodes that are gone. */
  look(): void {
    for (const intake of [...this.#intakes.values()]) {
      if (intake.hasRefused && this.#deps.writer.held.hasRoom(intake.host)) intake.restart(true);
      else this.letGo(intake);
    }
    void this.#measureOthers(); // never rejects: the writer does not
  }

  /** Forgets a node that is neither linked nor alive; its metrics go with its lease. */
  letGo(node: NodeRef): void {
    const { watch, votes, metrics } = this.#deps;
    const key = nodeId(node);
    const intake = this.#intakes.get(key);
    if (!intake?.isIdle || watch.isLive(node)) return;
    this.#intakes.delete(key);
    votes.forget(node); // also of one that nobody has seen die: it was removed, or never written
    metrics.unbindIn(node.host, node.node);
    for (const { host } of this.#intakes.values()) if (host === node.host) return;
    this.#waiting.delete(node.host);
  }

  /** Counts the claims that other nodes of ours have written, and those that were here before. */
  async #measureOthers(): Promise<void> {
    const { watch, writer } = this.#deps;
    for (const host of new Set([...this.#intakes.values()].map(({ host }) => host))) {
      const others = watch.namesOf(host).filter((node) =>
        this.#intakes.get(nodeId({ host, node }))?.isIdle ?? true
      );
      if (others.length > 0) await writer.measure(others.map((node) => ({ host, node })));
    }
  }

  /**
   * True when another node has the process's number, or had it when last heard of. Claims are named
   * after processes: a node with another's number could write and remove the other's claims.
   */
  #isAnothers(link: OpenLink): boolean {
    const { host, nodeName: node, process } = link;
    const { options, leases, faults } = this.#deps;
    const holder = leases.holderOf(process) ?? leaseKey(host, node);
    let isAnothers = process === options.incarnation || holder !== leaseKey(host, node);
    for (const intake of this.#intakes.values()) {
      isAnothers ||= intake.process === process && (intake.host !== host || intake.node !== node);
    }
    if (isAnothers) faults.refused({ host, node }, "it says that it is another node's process");
    return isAnothers;
  }

  /** Returns the intake; undefined when its datacenter has as many nodes as it may. */
  #intake({ localHost: host, nodeName: node }: LeaseFields, link: OpenLink):
    | AuthorIntake
    | undefined {
    const { writer, watch, rules, epochs, metrics } = this.#deps;
    const key = nodeId({ host, node });
    let intake = this.#intakes.get(key);
    if (intake === undefined) {
      if (!this.#hasRoomFor(link)) return undefined;
      intake = new AuthorIntake({ host, node }, {
        writer,
        waiting: this.#budget(host),
        leased: (author, lease) => this.#deps.leased(author, lease),
        left: (author) => this.#deps.left(author),
        mayClaim: (author, record) => rules.mayClaim(author, record),
        boundedEpoch: (epoch) => epochs.bounded(epoch),
        isLastNode: (author) => watch.isLastNode(author),
        applied: (_, count) => metrics.applied.inc(count),
      });
      this.#intakes.set(key, intake);
      const own = intake;
      metrics.bindIn(host, node, () => own.snapshot);
    }
    return intake;
  }

  #budget(host: string): FrameBudget {
    let waiting = this.#waiting.get(host);
    if (waiting === undefined) {
      this.#waiting.set(host, waiting = { bytes: 0, maxBytes: MAX_WAITING_BYTES });
    }
    return waiting;
  }

  /** True when one more node of the peer's datacenter may send entries. */
  #hasRoomFor({ host, nodeName }: OpenLink): boolean {
    const { options, watch, faults } = this.#deps;
    const { maxNodes } = options.datacenter;
    const names = new Set(watch.namesOf(host));
    for (const intake of this.#intakes.values()) if (intake.host === host) names.add(intake.node);
    if (names.has(nodeName) || names.size < maxNodes) return true;
    // A node that has been dead for long makes room, as nodes may have a new name with every start.
    if (watch.buryOldest(host)) return true;
    faults.limitHit(host, "nodes", maxNodes, 1);
    return false;
  }

  #intakeOf({ host, nodeName }: OpenLink): AuthorIntake | undefined {
    return this.#intakes.get(nodeId({ host, node: nodeName }));
  }
}
