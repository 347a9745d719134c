import type { Clock } from "../../../base/mod.ts";
import { RateLimit } from "../../../base/mod.ts";
import type { PacedLog } from "../../../observe/mod.ts";
import type { OpenLink } from "../../mod.ts";
import type { PositionFields, TableRecord } from "../../wire/mod.ts";
import { isRecordWritable, leaseFrame } from "../../wire/mod.ts";
import type { Account, OwnSession } from "../claims/account.ts";
import type { OwnAccounts } from "../claims/own_accounts.ts";
import type { Publication } from "../mesh/publication.ts";
import type { ResolvedTable } from "../options.ts";
import { AuthorFeed } from "./author_feed.ts";
import { ChangeLog } from "./change_log.ts";
import type { ReplicationMetrics } from "./replication_metrics.ts";

/**
 * Records that one datacenter may have sent again: a datacenter whose Redis loses its data asks with
 * each of its nodes, and again at the next loss. One that asks for more waits for a beat.
 */
const REPEATED_RECORDS_RATE = { perSec: 5_000, burst: 1_000_000 };
/** Least that a restart counts for, in records: a request for nothing is not free. */
const MIN_RESTART_RECORDS = 500;
/** Most that it counts for, so that a burst has 16 restarts, however many sessions we have. */
const MAX_RESTART_RECORDS = REPEATED_RECORDS_RATE.burst / 16;

/** The parts that `OwnFeeds` works with. */
export interface OwnFeedsDeps {
  readonly clock: Clock;
  readonly options: ResolvedTable;
  readonly accounts: OwnAccounts;
  readonly publication: Publication;
  readonly metrics: ReplicationMetrics;
  readonly log: PacedLog;
}

/** Sends this node's own entries to the other datacenters, each by a feed of its own. */
export class OwnFeeds {
  readonly #deps: OwnFeedsDeps;
  readonly #changes = new ChangeLog();
  readonly #feeds = new Map<string, AuthorFeed>();
  readonly #repeats: RateLimit;
  /** The last POSITION of each datacenter that has to wait for its turn. */
  readonly #restartsDue = new Map<string, { link: OpenLink; position: PositionFields }>();
  #startedUs = 0;
  #isFlushing = false;

  constructor(deps: OwnFeedsDeps) {
    this.#deps = deps;
    this.#repeats = new RateLimit(REPEATED_RECORDS_RATE, deps.clock);
  }

  /** Begins; `startedUs` stands in leases until Redis was reached. */
  start(startedUs: number): void {
    this.#startedUs = startedUs;
  }

  /** Number of the last change that this node has made. */
  get lastNumber(): number {
    return this.#changes.lastNumber;
  }

  get snapshot() {
    return Array.from(this.#feeds.values(), (feed) => feed.snapshot);
  }

  /** Sends claims of sessions whose epochs were drawn. */
  claimed(account: Account, sessions: readonly OwnSession[]): void {
    if (!this.#isForOthers(account.name)) return;
    for (const session of sessions) this.#append(this.#record("claim", account.name, session));
  }

  /** Sends the withdrawal of a claimed session that has closed. */
  withdrawn(name: string, session: OwnSession): void {
    if (this.#isForOthers(name)) this.#append(this.#record("withdraw", name, session));
  }

  /** Sends our lease to all datacenters. */
  beat(): void {
    for (const feed of this.#feeds.values()) feed.beat();
  }

  /** Feeds the datacenter of `link` over it, unless another link does. */
  opened(link: OpenLink): void {
    this.#feed(link.host).opened(link);
  }

  ended(link: OpenLink): void {
    this.#feeds.get(link.host)?.ended(link);
  }

  /** Ends the feed to a datacenter that was removed. */
  drop(host: string): void {
    this.#feeds.delete(host);
    this.#deps.metrics.unbindOut(host);
  }

  /** Takes the position of the datacenter of `link` in our entries. */
  position(link: OpenLink, position: PositionFields): void {
    const { host } = link;
    const feed = this.#feeds.get(host);
    if (feed === undefined) return;
    const records = feed.repeatedBy(position, this.#deps.accounts.entries);
    if (records > 0 && !this.#repeats.take(host, restartTokens(records))) {
      this.#restartsDue.set(host, { link, position });
      return;
    }
    if (position.isRestart) this.#restartsDue.delete(host);
    feed.position(link, position);
  }

  /** Answers datacenters that had to wait for their turn. */
  restartLate(): void {
    const restarts = [...this.#restartsDue.values()];
    this.#restartsDue.clear();
    for (const { link, position } of restarts) this.position(link, position);
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

  /** False for users of other hosts than the global one, who belong to this datacenter alone. */
  #isForOthers(name: string): boolean {
    const at = name.indexOf("@");
    return at === -1 || name.slice(at + 1) === this.#deps.options.globalHost;
  }

  /** False for an entry that no reader would take: it would end every link that it is sent over. */
  #isWritable(record: TableRecord): boolean {
    if (isRecordWritable(record)) return true;
    this.#deps.metrics.unwritable.inc();
    this.#deps.log.warn("replication.unwritable", record.name, { epoch: record.epoch });
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
      // A copy, as a logout between two pieces of a snapshot moves the sessions behind it.
      for (const session of [...account.sessions]) {
        if (session.epoch === 0 || !account.sessions.includes(session)) continue;
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
      this.#deps.metrics.bindOut(host, () => this.#feeds.get(host)?.snapshot ?? snapshot);
    }
    return feed;
  }
}

function restartTokens(records: number): number {
  return Math.min(Math.max(records, MIN_RESTART_RECORDS), MAX_RESTART_RECORDS);
}
