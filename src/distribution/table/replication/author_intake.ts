import type { OpenLink } from "../../mod.ts";
import type { ChangesFields, LeaseFields, SnapshotFields, TableRecord } from "../../wire/mod.ts";
import { positionFrame } from "../../wire/mod.ts";
import { MAX_AHEAD, MAX_PIECES_AHEAD } from "./author_feed.ts";
import type { Author, ReplicaWriter } from "./replica_writer.ts";

/** The parts that an intake works with. */
export interface AuthorIntakeDeps {
  readonly writer: ReplicaWriter;
  /** Called when the author's lease has been written. */
  leased(author: Author, lease: LeaseFields): void;
  /** Called when the author has gone down in order, and its entries are removed here. */
  left(author: Author): void;
  /** False for a record that the author may not make; it is counted and logged. */
  mayClaim(author: Author, record: TableRecord): boolean;
  /** Returns the epoch to use for one from the author. */
  boundedEpoch(epoch: number): number;
  isLastNode(author: Author): boolean;
  /** Bytes of the datacenter's frames that wait to be applied. */
  readonly waiting: FrameBudget;
  /** Counts received records. */
  applied(author: Author, count: number): void;
}

/** Bytes of frames from one datacenter that are not applied yet. */
export interface FrameBudget {
  readonly maxBytes: number;
  bytes: number;
}

type Work =
  | { readonly kind: "lease"; readonly lease: LeaseFields }
  | { readonly kind: "locate" }
  | ({ readonly kind: "changes"; readonly changes: ChangesFields } & Waiting)
  | ({ readonly kind: "snapshot"; readonly piece: SnapshotFields } & Waiting)
  | { readonly kind: "leave" };

interface Waiting {
  readonly attempt: number;
  readonly frameBytes: number;
}

/**
 * Applies the entries that one node of another datacenter sends of itself, in order.
 *
 *     unknown --LEASE--> locating --our POSITION--> following <--> snapshot
 *                           ^                           |
 *                           +--another link, Redis lost-+
 *
 * `locating` finds in Redis up to which change this author is applied. Frames of an earlier round
 * are ignored.
 */
export class AuthorIntake {
  readonly host: string;
  readonly node: string;
  readonly #deps: AuthorIntakeDeps;
  #process = 0;
  #startedUs = 0;
  #link: OpenLink | undefined;
  #lease: LeaseFields | undefined;
  #lastNumber = 0;
  #round = 0;
  /** True while the author knows the change to go on from. */
  #isLocated = false;
  /** Grows whenever a running lookup of the position becomes useless. */
  #attempt = 0;
  /** True when Redis has lost its data: then a position found there does not count. */
  #hasLost = false;
  /** Last number received in this round, and last number applied. */
  #received = 0;
  #applied = 0;
  #chunk = 0;
  /** Sessions that the running snapshot has named. */
  #named: Set<number> | undefined;
  /** Last piece received in this round. */
  #lastPiece = 0;
  #work: Work[] = [];
  #isWorking = false;
  /** True when claims found no room, until a snapshot brings them again. */
  #hasRefused = false;
  /** True while Redis has this round's position of the author. */
  #isNoted = false;

  constructor(node: { readonly host: string; readonly node: string }, deps: AuthorIntakeDeps) {
    this.host = node.host;
    this.node = node.node;
    this.#deps = deps;
  }

  /** The author's incarnation; 0 while there is none. */
  get process(): number {
    return this.#process;
  }

  /** True when the author has no link and none of its records wait to be written. */
  get isIdle(): boolean {
    return this.#link === undefined && !this.#isWorking;
  }

  /** True when claims found no room: a snapshot brings them again. */
  get hasRefused(): boolean {
    return this.#hasRefused;
  }

  /** State of the intake, for an operator to read. */
  get snapshot() {
    return {
      host: this.host,
      node: this.node,
      state: this.#link === undefined
        ? "silent" as const
        : !this.#isLocated
        ? "locating" as const
        : this.#named === undefined
        ? "following" as const
        : "snapshot" as const,
      applied: this.#applied,
      lag: Math.max(0, this.#lastNumber - this.#applied),
      snapshotRecords: this.#named?.size ?? 0,
    };
  }

  /** Takes the author's lease. On another link, or from another process, everything begins anew. */
  lease(link: OpenLink, lease: LeaseFields): void {
    if (lease.process !== this.#process) {
      if (this.#process !== 0 && lease.startedUs < this.#startedUs) return; // superseded
      this.#process = lease.process;
      this.#loseWay();
    }
    this.#startedUs = lease.startedUs;
    this.#lastNumber = lease.lastNumber;
    if (this.#link !== link) this.#loseWay();
    this.#link = link;
    this.#lease = lease;
    // An older lease that still waits is not needed any more.
    this.#drop(({ kind }) => kind === "lease");
    this.#do({ kind: "lease", lease });
    if (!this.#isLocated) this.#locate();
  }

  changes(link: OpenLink, changes: ChangesFields, frameBytes: number): void {
    if (!this.#isCurrent(link, changes)) return;
    const { first, records } = changes;
    if (first !== this.#received + 1) {
      link.refuse(`change ${first} follows ${this.#received}`);
      return;
    }
    if (this.#received - this.#applied >= MAX_AHEAD) {
      link.refuse(`more than ${MAX_AHEAD} changes that are not applied`);
      return;
    }
    this.#received += records.length;
    this.#lastNumber = Math.max(this.#lastNumber, this.#received);
    this.#wait({ kind: "changes", attempt: this.#attempt, changes, frameBytes });
  }

  piece(link: OpenLink, piece: SnapshotFields, frameBytes: number): void {
    if (!this.#isCurrent(link, piece)) return;
    if (piece.chunk !== this.#lastPiece + 1 || piece.chunk - this.#chunk > MAX_PIECES_AHEAD) {
      link.refuse(
        `piece ${piece.chunk} follows ${this.#lastPiece}, of which ${this.#chunk} are applied`,
      );
      return;
    }
    this.#lastPiece = piece.chunk;
    if (piece.isFirst) this.#received = piece.number;
    this.#wait({ kind: "snapshot", attempt: this.#attempt, piece, frameBytes });
  }

  /** Notes that the link has ended; `hasLeft` when the author's process goes down. */
  ended(link: OpenLink, hasLeft: boolean): void {
    if (link.process !== this.#process) return;
    if (hasLeft) {
      this.#process = 0;
      this.#link = undefined;
      this.#do({ kind: "leave" }, link.process);
    } else if (link === this.#link) {
      this.#link = undefined;
      this.#loseWay();
    }
  }

  /**
   * Looks the author's position up again after Redis has come back, or (`hasLost`) lost its data.
   */
  restart(hasLost: boolean): void {
    this.#hasLost ||= hasLost;
    this.#loseWay();
    if (this.#link === undefined || this.#lease === undefined) return;
    // The link lives, and the next lease may be far off.
    this.#do({ kind: "lease", lease: this.#lease });
    this.#locate();
  }

  /** Ignores further records until the author has been sent a position. */
  #loseWay(): void {
    this.#isLocated = false;
    this.#isNoted = false;
    this.#attempt++;
  }

  /**
   * Queues `work` to be applied. If too much of its datacenter waits already, drops this author's
   * records and asks it to go on from its last applied change.
   */
  #wait(work: Work & Waiting): void {
    const { waiting } = this.#deps;
    waiting.bytes += work.frameBytes;
    this.#do(work);
    if (waiting.bytes <= waiting.maxBytes) return;
    this.#loseWay();
    this.#drop(({ kind }) => kind === "changes" || kind === "snapshot");
    this.#locate();
  }

  /** Drops all `unwanted` work from the queue. */
  #drop(unwanted: (work: Work) => boolean): void {
    this.#work = this.#work.filter((work) => {
      if (!unwanted(work)) return true;
      this.#release(work);
      return false;
    });
  }

  #release(work: Work): void {
    if ("frameBytes" in work) this.#deps.waiting.bytes -= work.frameBytes;
  }

  #locate(): void {
    if (!this.#work.some(({ kind }) => kind === "locate")) this.#do({ kind: "locate" });
  }

  #isCurrent(link: OpenLink, { process, round }: { process: number; round: number }): boolean {
    return link === this.#link && process === this.#process && this.#isLocated &&
      round === this.#round;
  }

  #do(work: Work, process = this.#process): void {
    this.#work.push(work);
    if (this.#isWorking) return;
    this.#isWorking = true;
    void this.#workOff(process); // never rejects: the writer does not
  }

  async #workOff(process: number): Promise<void> {
    let author: Author = { host: this.host, node: this.node, process };
    for (let work = this.#work.shift(); work !== undefined; work = this.#work.shift()) {
      if (this.#process !== 0) author = { ...author, process: this.#process };
      const isDone = await this.#one(author, work);
      this.#release(work);
      if (isDone) continue;
      // Redis is away: later records cannot be applied, and are asked for again.
      this.#loseWay();
      this.#drop(({ kind }) => kind !== "leave");
    }
    this.#isWorking = false;
  }

  async #one(author: Author, work: Work): Promise<boolean> {
    const { writer } = this.#deps;
    switch (work.kind) {
      case "lease": {
        if (work.lease.process !== author.process) return true;
        const written = await writer.lease(author, work.lease);
        if (written === undefined) return false;
        if (written === "superseded") {
          // The new one's entries are not its own to write, nor to remove.
          this.#loseWay();
          this.#drop(({ kind }) => kind !== "leave");
          return true;
        }
        this.#deps.leased(author, work.lease);
        // The author lives, but its records were deleted here.
        if (this.#isNoted && !written.isKnown && !this.#hasRefused) this.restart(true);
        return true;
      }
      case "locate":
        return await this.#findPosition(author);
      case "changes": {
        if (work.attempt !== this.#attempt) return true;
        const { records, first } = work.changes;
        if (!await this.#apply(author, records)) return false;
        // They are not acknowledged, and are asked for again: perhaps by another node already.
        if (work.attempt !== this.#attempt) return await writer.yieldTo(author);
        for (const { kind, sequence } of records) if (kind === "claim") this.#named?.add(sequence);
        this.#applied = first + records.length - 1;
        // During a snapshot only its end makes the author's entries here complete.
        if (this.#named === undefined && !await this.#noteApplied(author)) return false;
        if (work.attempt === this.#attempt) this.#tell(author);
        return true;
      }
      case "snapshot":
        return work.attempt !== this.#attempt || await this.#take(author, work.piece);
      case "leave":
        if (await writer.forget(author, this.#deps.isLastNode(author))) this.#deps.left(author);
        return true;
      default:
        return work satisfies never;
    }
  }

  async #findPosition(author: Author): Promise<boolean> {
    if (this.#isLocated) return true;
    const attempt = this.#attempt;
    const { writer } = this.#deps;
    const hasLost = this.#hasLost;
    if (hasLost && !await writer.clearApplied(author)) return false;
    this.#hasLost = false;
    const known = await writer.applied(author);
    if (known === undefined || !await writer.measure([author], hasLost)) return false;
    if (attempt !== this.#attempt) return true; // another lookup is in line behind this one
    const isKnown = known?.process === author.process && known.number <= this.#lastNumber;
    if (!await writer.takeOver(author, isKnown ? known!.number : undefined)) return false;
    if (attempt !== this.#attempt) return true;
    this.#round++;
    this.#received = this.#applied = isKnown ? known!.number : 0;
    this.#chunk = this.#lastPiece = 0;
    this.#named = undefined;
    this.#isLocated = true;
    this.#link?.send(positionFrame({
      process: author.process,
      round: this.#round,
      applied: this.#applied,
      chunk: 0,
      isRestart: true,
      wantsSnapshot: !isKnown,
    }));
    return true;
  }

  async #take(author: Author, piece: SnapshotFields): Promise<boolean> {
    const { writer } = this.#deps;
    const attempt = this.#attempt;
    if (piece.isFirst) {
      this.#named = new Set();
      this.#applied = piece.number;
      this.#hasRefused = false;
    }
    const named = this.#named;
    if (named === undefined) {
      this.#link?.refuse("a snapshot that has not begun goes on");
      return true;
    }
    for (const { sequence } of piece.records) named.add(sequence);
    if (!await this.#apply(author, piece.records)) return false;
    if (attempt !== this.#attempt) return await writer.yieldTo(author);
    this.#chunk = piece.chunk;
    if (piece.isLast) {
      if (!await writer.sweep(author, named)) return false;
      if (attempt !== this.#attempt) return await writer.yieldTo(author);
      this.#named = undefined;
      if (!await this.#noteApplied(author)) return false;
    }
    if (attempt === this.#attempt) this.#tell(author);
    return true;
  }

  async #apply(author: Author, records: readonly TableRecord[]): Promise<boolean> {
    const allowed = records.filter((record) => this.#deps.mayClaim(author, record))
      .map((record) => ({ ...record, epoch: this.#deps.boundedEpoch(record.epoch) }));
    this.#deps.applied(author, allowed.length);
    const applied = await this.#deps.writer.apply(author, allowed);
    if (applied === undefined) return false;
    this.#hasRefused ||= applied.refused > 0;
    return true;
  }

  /**
   * Stores the position. None is stored after refused claims, so that a snapshot brings all again.
   */
  async #noteApplied(author: Author): Promise<boolean> {
    const { writer } = this.#deps;
    const attempt = this.#attempt;
    const number = this.#hasRefused ? undefined : this.#applied;
    const isOurs = await writer.setApplied(author, number);
    if (isOurs === undefined) return false;
    if (isOurs) this.#isNoted = attempt === this.#attempt;
    else this.restart(true); // another node has applied something in between
    return true;
  }

  #tell({ process }: Author): void {
    this.#link?.send(positionFrame({
      process,
      round: this.#round,
      applied: this.#applied,
      chunk: this.#chunk,
      isRestart: false,
      wantsSnapshot: false,
    }));
  }
}
