import type { OpenLink } from "../mod.ts";
import type { ChangesFields, LeaseFields, SnapshotFields, TableRecord } from "../wire/mod.ts";
import { positionFrame } from "../wire/mod.ts";
import { MAX_AHEAD, MAX_PIECES_AHEAD } from "./author_feed.ts";
import type { Author, ReplicaWriter } from "./replica_writer.ts";

/** What an intake needs. */
export interface IntakeDependencies {
  readonly writer: ReplicaWriter;
  /** The author's lease has been written. */
  leased(author: Author, lease: LeaseFields): void;
  /** The author has gone down in order, and nothing of it is here any more. */
  left(author: Author): void;
  /** False for a record that the author must not make; such are counted and logged. */
  mayClaim(author: Author, record: TableRecord): boolean;
  /** The epoch that stands for one that the author tells. */
  boundedEpoch(epoch: number): number;
  isLastNode(author: Author): boolean;
  /** Bytes of the datacenter's frames that wait to be applied. */
  readonly waiting: FrameBudget;
  /** Records that came, for the metrics. */
  applied(author: Author, count: number): void;
}

/** Bytes of frames that a datacenter has sent and that are not applied yet. */
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
 * What one node of another datacenter tells of its own entries, applied here in order.
 *
 *     unknown --LEASE--> locating --our POSITION--> following <--> snapshot
 *                           ^                           |
 *                           +--another link, Redis lost-+
 *
 * `locating` finds out in Redis how far this author is applied; everything of an earlier round is
 * read over.
 */
export class AuthorIntake {
  readonly host: string;
  readonly node: string;
  readonly #deps: IntakeDependencies;
  #process = 0;
  #startedUs = 0;
  #link: OpenLink | undefined;
  #lease: LeaseFields | undefined;
  #lastNumber = 0;
  #round = 0;
  /** True while the author knows from where to go on. */
  #isLocated = false;
  /** Grows whenever a position that is being looked up is not wanted any more. */
  #attempt = 0;
  /** True when Redis has lost what it had: what it says of the author came after that. */
  #hasLost = false;
  /** Last number that came in this round, and that is applied. */
  #received = 0;
  #applied = 0;
  #chunk = 0;
  /** Sessions that the running snapshot has named. */
  #named: Set<number> | undefined;
  /** Last piece that came in this round. */
  #lastPiece = 0;
  #work: Work[] = [];
  #isWorking = false;
  /** True when claims found no room, until a snapshot brings them again. */
  #hasRefused = false;
  /** True while Redis has been told in this round how far the author is applied. */
  #isNoted = false;

  constructor(node: { readonly host: string; readonly node: string }, deps: IntakeDependencies) {
    this.host = node.host;
    this.node = node.node;
    this.#deps = deps;
  }

  /** The author's incarnation; 0 while there is none. */
  get process(): number {
    return this.#process;
  }

  /** True when nothing links to the author and nothing of it waits to be written. */
  get isIdle(): boolean {
    return this.#link === undefined && !this.#isWorking;
  }

  /** True when claims found no room: a snapshot brings them again. */
  get hasRefused(): boolean {
    return this.#hasRefused;
  }

  /** Where it stands, for people to look at. */
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

  /** Takes the author's lease: over another link, or of another process, everything begins anew. */
  lease(link: OpenLink, lease: LeaseFields): void {
    if (lease.process !== this.#process) {
      if (this.#process !== 0 && lease.startedUs < this.#startedUs) return; // it is superseded
      this.#process = lease.process;
      this.#loseWay();
    }
    this.#startedUs = lease.startedUs;
    this.#lastNumber = lease.lastNumber;
    if (this.#link !== link) this.#loseWay();
    this.#link = link;
    this.#lease = lease;
    // one that waits still is as good as never sent
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

  /** The link has ended; `hasLeft` when the author's process goes down. */
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

  /** Looks again how far the author is applied: Redis has come back, or (`hasLost`) lost its data. */
  restart(hasLost: boolean): void {
    this.#hasLost ||= hasLost;
    this.#loseWay();
    if (this.#link === undefined || this.#lease === undefined) return;
    // its link lives, and the next lease may be long in coming
    this.#do({ kind: "lease", lease: this.#lease });
    this.#locate();
  }

  /** What the author sends from here on does not count until it has been told where to begin. */
  #loseWay(): void {
    this.#isLocated = false;
    this.#isNoted = false;
    this.#attempt++;
  }

  /**
   * Has what came applied. Where too much of its datacenter waits already, this author's is dropped, and
   * it is asked to go on from what is applied.
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

  /** Takes what is `unwanted` out of what waits. */
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
      // Redis is not there: what follows cannot be applied, and is asked for again later
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
        this.#deps.leased(author, work.lease);
        // Somebody has taken away what was here of it, and it lives.
        if (this.#isNoted && !written.isKnown && !this.#hasRefused) this.restart(true);
        return true;
      }
      case "locate":
        return await this.#findPosition(author);
      case "changes": {
        if (work.attempt !== this.#attempt) return true;
        const { records, first } = work.changes;
        if (!await this.#apply(author, records)) return false;
        if (work.attempt !== this.#attempt) return true; // told to nobody, it is asked for again
        for (const { kind, sequence } of records) if (kind === "claim") this.#named?.add(sequence);
        this.#applied = first + records.length - 1;
        // while a snapshot runs, only its end makes what is here a state of the author
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
    if (attempt !== this.#attempt) return true;
    this.#chunk = piece.chunk;
    if (piece.isLast) {
      if (!await writer.sweep(author, named)) return false;
      if (attempt !== this.#attempt) return true;
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

  /** What was refused may find room later: then all has to be told again. */
  async #noteApplied(author: Author): Promise<boolean> {
    const { writer } = this.#deps;
    const attempt = this.#attempt;
    const number = this.#hasRefused ? undefined : this.#applied;
    if (!await writer.setApplied(author, number)) return false;
    this.#isNoted = attempt === this.#attempt;
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
