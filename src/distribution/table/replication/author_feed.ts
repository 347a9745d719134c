import type { OpenLink } from "../../mod.ts";
import type { PositionFields, TableRecord } from "../../wire/mod.ts";
import { changesFrame, MAX_TABLE_RECORDS, snapshotFrame } from "../../wire/mod.ts";
import type { ChangeLog } from "./change_log.ts";

/** Changes that may be sent ahead of what the other side has applied. Part of the protocol. */
export const MAX_AHEAD = 4_096;
/** Pieces of a snapshot that may be sent ahead: stanzas get through between them. */
export const MAX_PIECES_AHEAD = 2;
/** Records in one piece: other frames wait no longer than a piece takes. */
const CHUNK_RECORDS = 32;
/** Bytes of one piece, counted generously, above which no further record is added. */
const CHUNK_BYTES = 24_000;

/** Changes that may be sent again without counting for the rate. */
const CHEAP_CHANGES = 64;

/** The entries of this node, which a feed sends. */
export interface AuthorFeedDeps {
  readonly process: number;
  readonly log: ChangeLog;
  /**
   * All claims of this node, in any order. Claims added or removed meanwhile may be included or
   * not.
   */
  claims(): Iterator<TableRecord>;
  /** Returns a LEASE frame to be sent now. */
  leaseFrame(): Uint8Array;
}

/**
 * Sends this node's own entries to another datacenter, over one of our links to it.
 *
 *     silent --a link opens, LEASE--> asked --POSITION--> following --link ends--> silent | asked
 *
 * While `following`, missed changes come from the log or as a snapshot, then changes as they
 * happen.
 */
export class AuthorFeed {
  readonly host: string;
  readonly #deps: AuthorFeedDeps;
  readonly #links = new Set<OpenLink>();
  #carrier: OpenLink | undefined;
  /** Round of the POSITION that began it; undefined until one came over the carrier. */
  #round: number | undefined;
  #sent = 0;
  #applied = 0;
  #snapshot: Snapshot | undefined;
  #chunk = 0;
  #chunkApplied = 0;

  constructor(host: string, deps: AuthorFeedDeps) {
    this.host = host;
    this.#deps = deps;
  }

  /** State of the feed, for an operator to read. */
  get snapshot() {
    return {
      host: this.host,
      state: this.#carrier === undefined
        ? "silent" as const
        : this.#round === undefined
        ? "asked" as const
        : this.#snapshot === undefined
        ? "following" as const
        : "snapshot" as const,
      via: this.#carrier?.nodeName,
      applied: this.#applied,
      lag: this.#deps.log.lastNumber - this.#applied,
      snapshotRecords: this.#snapshot?.records ?? 0,
    };
  }

  /** Notes an open link to the datacenter. */
  opened(link: OpenLink): void {
    this.#links.add(link);
    if (this.#carrier === undefined) this.#carry(link);
  }

  /** Notes that a link has ended; another takes over. */
  ended(link: OpenLink): void {
    this.#links.delete(link);
    if (this.#carrier !== link) return;
    this.#carrier = undefined;
    this.#round = undefined;
    this.#snapshot = undefined;
    const [next] = this.#links;
    if (next !== undefined) this.#carry(next);
  }

  /** Renews this node's lease there. */
  beat(): void {
    this.#carrier?.send(this.#deps.leaseFrame());
  }

  /**
   * Returns how many records a POSITION makes this node send again: 0 when they are too few to
   * count.
   * @param entries of this node
   */
  repeatedBy({ isRestart, wantsSnapshot, applied }: PositionFields, entries: number): number {
    if (!isRestart) return 0;
    if (wantsSnapshot) return Math.max(1, entries);
    const changes = this.#deps.log.lastNumber - applied;
    return changes > CHEAP_CHANGES ? changes : 0;
  }

  /** Takes the other side's position: sends what it lacks, or notes what it has applied. */
  position(link: OpenLink, position: PositionFields): void {
    if (link !== this.#carrier || position.process !== this.#deps.process) return;
    const { log } = this.#deps;
    if (position.applied > log.lastNumber) {
      link.refuse(`change ${position.applied} was never made`);
      return;
    }
    if (position.isRestart) {
      this.#round = position.round;
      this.#chunk = this.#chunkApplied = 0;
      this.#snapshot = undefined;
      this.#sent = this.#applied = position.applied;
      if (position.wantsSnapshot) this.#beginSnapshot();
    } else if (position.round === this.#round) {
      // A position beyond what was sent would make room for everything at once.
      if (position.applied > this.#sent || position.chunk > this.#chunk) {
        link.refuse(`change ${position.applied} and piece ${position.chunk} were not sent yet`);
        return;
      }
      this.#applied = Math.max(this.#applied, position.applied);
      this.#chunkApplied = Math.max(this.#chunkApplied, position.chunk);
    } else return;
    this.pump();
  }

  /** Sends changes and pieces as far as the other side may be ahead. */
  pump(): void {
    const { log, process } = this.#deps;
    const [link, round] = [this.#carrier, this.#round];
    if (link === undefined || round === undefined) return;
    if (!log.reaches(this.#sent)) this.#beginSnapshot();
    while (this.#sent < log.lastNumber && this.#sent - this.#applied < MAX_AHEAD) {
      const room = MAX_AHEAD - (this.#sent - this.#applied);
      const records = log.behind(this.#sent, Math.min(MAX_TABLE_RECORDS, room));
      const { frame, count } = changesFrame({ process, round, first: this.#sent + 1 }, records);
      link.send(frame);
      this.#sent += count;
    }
    while (this.#snapshot !== undefined && this.#chunk - this.#chunkApplied < MAX_PIECES_AHEAD) {
      const snapshot = this.#snapshot;
      const { number } = snapshot;
      const isFirst = snapshot.records === 0 && !snapshot.hasBegun;
      const { records, isLast } = snapshot.take();
      const chunk = ++this.#chunk;
      link.send(snapshotFrame({ process, round, number, chunk, isFirst, isLast, records }));
      if (isLast) this.#snapshot = undefined;
    }
  }

  #carry(link: OpenLink): void {
    this.#carrier = link;
    this.beat();
  }

  /** Begins a snapshot; later changes are sent between its pieces. */
  #beginSnapshot(): void {
    this.#sent = this.#deps.log.lastNumber;
    this.#snapshot = new Snapshot(this.#sent, this.#deps.claims());
  }
}

/** A snapshot that is being sent. */
class Snapshot {
  readonly number: number;
  readonly #claims: Iterator<TableRecord>;
  /** Records sent so far. */
  records = 0;
  hasBegun = false;

  constructor(number: number, claims: Iterator<TableRecord>) {
    this.number = number;
    this.#claims = claims;
  }

  take(): { readonly records: readonly TableRecord[]; readonly isLast: boolean } {
    this.hasBegun = true;
    const records: TableRecord[] = [];
    let bytes = 0;
    while (records.length < CHUNK_RECORDS && bytes < CHUNK_BYTES) {
      const next = this.#claims.next();
      if (next.done) return { records, isLast: true };
      records.push(next.value);
      bytes += 24 + 3 * (next.value.name.length + next.value.resourcepart.length);
      this.records++;
    }
    return { records, isLast: false };
  }
}
