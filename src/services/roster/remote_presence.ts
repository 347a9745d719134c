import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { FullJid, Jid, LocalSession, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";

/** The place where a presence entered the mesh. */
export interface PresenceOrigin {
  /** Local host of its datacenter, and incarnation of its process. */
  readonly origin: string;
  readonly process: number;
  /** Wall-clock microseconds when it entered, or when the presence began that it repeats or ends. */
  readonly sentAtUs: number;
}

/** Live processes by local host, as the session table knows them. */
export type LiveProcesses = ReadonlyMap<string, ReadonlySet<number>>;

/** A session of this node, as far as others' presence depends on it. */
export type PresentSession = Pick<LocalSession, "jid" | "priority" | "lastPresence" | "isOpen">;

/** Collaborators of `RemotePresence`. */
export interface RemotePresenceDeps {
  /** Incarnation of this process. Presence that entered here ends with the session. */
  readonly process: number;
  /** Milliseconds that a lease lives without its process. */
  readonly leaseMs: number;
  /** True for a domain whose people have their sessions in the session table. */
  hasSessions(domain: string): boolean;
  /** Local hosts of all datacenters that can be reached. Never rejects. */
  hosts(): Promise<readonly string[]>;
  /**
   * Returns the processes of these datacenters that hold a lease; undefined while the session table
   * cannot tell. Never rejects.
   */
  liveProcesses(hosts: readonly string[]): Promise<LiveProcesses | undefined>;
  /**
   * Returns, by full JID, the processes that have sessions of these accounts: two while a login at
   * one replaces a session at the other. Undefined while the session table cannot tell. Never rejects.
   */
  processesOf(
    accounts: readonly string[],
  ): Promise<ReadonlyMap<string, readonly number[]> | undefined>;
  /** Returns the sessions of an account at this node. */
  here(account: string): readonly PresentSession[];
  /** Writes to a session of this node. */
  deliver(to: FullJid, stanza: Stanza): boolean;
  /** Asks for the presence of `account` in the name of `asker`, who may no longer be allowed to. */
  probe(asker: Jid, account: Jid): void;
  /** Asks a resource elsewhere for the directed presence that it has sent to an account here. */
  askForDirected(account: Jid, resource: Jid): void;
  /** Tells the contacts at a datacenter of all sessions here: neither knew of the other's logins. */
  announce(host: string): void;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Milliseconds between two looks at who lives. */
const LOOK_MS = 1_000;
/** Looks in a row at which a process must be missing: Redis may have lost its lease for a moment. */
const MISSES = 2;
/**
 * Looks after which a datacenter that is back is told once more, and a node that is back asks who has gone
 * meanwhile.
 */
const SECOND_ANNOUNCEMENT = 5;
/** Pairs of an account and a resource whose directed presence is asked for at one look. */
const ASKED_AT_ONCE = 1_000;
/** Processes that are gone and may come back; those of nodes that were restarted never do. */
const MAX_LOST = 64;
/**
 * Pairs of a resource and a recipient here that are remembered, and as many withdrawn pairs of a
 * resource and an account.
 */
const MAX_PAIRS = 1_000_000;
/** Presences of which it is remembered that another process has told of the same resource since. */
const MAX_SUPERSEDED = 10_000;
/** Resources of which it is remembered that two processes disagreed. */
const MAX_CONTESTED = 1_000;

/** A resource elsewhere that recipients here take for available, as one process has told them. */
interface Known {
  host: string;
  process: number;
  /** Time of its last presence, by the clock of that process. */
  sentAtUs: number;
  /** The same by the clock of this process, if that one's is ahead. */
  heardUs: number;
  /** By account: its recipients, bare or full JIDs, with a hash of what they were told. */
  readonly told: Map<string, Map<string, number>>;
}

/** The other processes that a recipient may believe about a resource. */
interface Tellers {
  /** Presence that the recipient has from elsewhere. */
  readonly told: Known | undefined;
  /** The session of this node that has the full JID; undefined also for its own presence. */
  readonly own: PresentSession | undefined;
}

/** A process that is gone: the resources whose presence was withdrawn, by the accounts told. */
interface Lost {
  readonly host: string;
  readonly withdrawn: Map<string, Set<string>>;
  /** Looks until directed presence is asked for; undefined while the process is away. */
  looksLeft: number | undefined;
}

/**
 * Presence that recipients at this node have of resources elsewhere. When the process of a resource
 * no longer holds its lease, because its node or datacenter died or is cut off, the presence is
 * withdrawn here, once. When the process is back, the recipients ask for it again: first for that of
 * contacts. A moment later they ask the resources that have not come back for directed presence.
 *
 * Two processes speak of one full JID when a login at one of them replaces a session at the other.
 * A recipient believes the one with the later presence. The end of a presence carries the time at
 * which that presence began, so it never removes what a newer login has told, whatever the clocks of
 * the two processes show. If the older one was believed nevertheless, its end makes the recipient ask
 * for the account's presence anew.
 */
export class RemotePresence {
  readonly #deps: RemotePresenceDeps;
  /** By full JID: usually one process has told of it. */
  readonly #known = new Map<string, Known[]>();
  /** Times of presences after which another process was believed, by `partKey`. */
  readonly #superseded = new Map<string, number>();
  /** Full JIDs of which a process was believed although another may have newer presence. */
  readonly #contested = new Set<string>();
  /** Resources by the account here that was told of them. */
  readonly #byAccount = new Map<string, Set<string>>();
  readonly #lost = new Map<number, Lost>();
  readonly #misses = new Map<number, number>();
  /** Datacenters that had a live process at the last look. */
  #liveHosts: ReadonlySet<string> | undefined;
  /** Processes that have held a lease, with the looks in a row at which they have not. */
  readonly #absences = new Map<number, number>();
  /** Datacenters that have come back, with the looks until they are told once more. */
  readonly #returned = new Map<string, number>();
  /** Monotonic milliseconds of the last look that found out who lives. */
  #lookedMs: number | undefined;
  /** Looks until those who have gone are asked for; undefined unless this process was away. */
  #looksToReview: number | undefined;
  /** Wall-clock microseconds when it was back last. */
  #backUs = 0;
  #pairs = 0;
  #withdrawnPairs = 0;
  #cancel: CancelTimer = () => {};
  #isClosed = false;
  readonly #withdrawn;
  readonly #looks;
  readonly #late;

  constructor(deps: RemotePresenceDeps) {
    this.#deps = deps;
    this.#withdrawn = deps.metrics.counter({
      name: "causeway_presence_withdrawn_total",
      help: "Resources elsewhere whose presence was withdrawn here because their process is gone",
    });
    this.#looks = deps.metrics.counter({
      name: "causeway_presence_looks_total",
      help:
        "Looks that found out which processes live: two without a process withdraw its presence",
    });
    this.#late = deps.metrics.counter({
      name: "causeway_presence_outdated_total",
      help: "Presences that were dropped because the recipient knows something newer, or the same",
    });
    deps.metrics.gauge({
      name: "causeway_presence_known_pairs",
      help: "Pairs of a resource elsewhere and a recipient here who takes it for available",
    }, () => this.#pairs);
  }

  /** Begins to look at who lives. */
  start(): void {
    this.#lookLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  /**
   * Notes presence for an account here, before it is delivered.
   * @returns false when it says nothing new, or is older than what is known: it is dropped
   */
  saw(stanza: Stanza, origin: PresenceOrigin): boolean {
    const { type, from, to } = stanza;
    if (from === from.bare || (type !== "available" && type !== "unavailable")) return true;
    const here = this.#deps.here(to.bare.text);
    // Nobody is told, of whatever resources the sender may think.
    if (to === to.bare ? here.length === 0 : here.every(({ jid }) => jid.text !== to.text)) {
      return true;
    }
    const account = to.bare.text;
    const told = this.#known.get(from.text)?.find((each) => each.told.get(account)?.has(to.text));
    const own = origin.process === this.#deps.process ? undefined : this.#ownSession(from);
    if (this.#isOutdated(from, origin, { told, own })) {
      if (type === "available") this.#contest(from.text);
      return this.#drop();
    }
    if (type === "unavailable") {
      if (told?.process === origin.process && this.#isToldSince(stanza, told)) {
        this.#untellOne(from.text, told, { account, to: to.text });
        return this.#drop();
      }
      return this.#unavailable(stanza, origin, told);
    }
    if (told?.process !== origin.process) this.#supersede(stanza, origin, { told, own });
    if (origin.process === this.#deps.process) return true;
    return this.#available(stanza, origin, told?.process === origin.process ? told : undefined);
  }

  /** Returns the full JIDs of the resources elsewhere that a session here, or its account, was told of. */
  toldTo({ bare, text }: FullJid): readonly string[] {
    const account = bare.text;
    const isTold = ({ told }: Known) => {
      const recipients = told.get(account);
      return recipients !== undefined && (recipients.has(account) || recipients.has(text));
    };
    const resources = [...this.#byAccount.get(account) ?? []];
    return resources.filter((from) => this.#known.get(from)?.some(isTold) === true);
  }

  /**
   * Notes that an account here asks for the presence of another one, for a session that has not heard of
   * it: presence that says nothing new to the others is news.
   */
  asks(account: string, other: string): void {
    for (const from of this.#byAccount.get(account) ?? []) {
      if (!isResourceOf(from, other)) continue;
      for (const { told } of this.#known.get(from) ?? []) {
        const recipients = told.get(account);
        if (recipients?.has(account) === true) recipients.set(account, Number.NaN); // equals no hash
      }
    }
  }

  /** True when an account here was told of a resource of `other` elsewhere, and not of its end. */
  isTold(account: string, other: string): boolean {
    return [...this.#byAccount.get(account) ?? []].some((from) => isResourceOf(from, other));
  }

  /** Forgets what a session here, which has ended, was told directly. */
  closed({ bare, text }: FullJid): void {
    for (const from of [...this.#byAccount.get(bare.text) ?? []]) {
      for (const known of [...this.#known.get(from) ?? []]) {
        this.#untellOne(from, known, { account: bare.text, to: text });
      }
    }
  }

  /** Forgets what an account knew whose last session here has ended. */
  left(account: string): void {
    for (const from of [...this.#byAccount.get(account) ?? []]) {
      for (const known of [...this.#known.get(from) ?? []]) this.#untell(from, known, account);
    }
    for (const { withdrawn } of this.#lost.values()) {
      this.#withdrawnPairs -= withdrawn.get(account)?.size ?? 0;
      withdrawn.delete(account);
    }
  }

  /** Looks once at who lives. Never rejects. */
  async look(): Promise<void> {
    const hosts = new Set(await this.#deps.hosts());
    for (const all of this.#known.values()) for (const { host } of all) hosts.add(host);
    for (const { host } of this.#lost.values()) hosts.add(host);
    const live = await this.#deps.liveProcesses([...hosts]);
    if (live === undefined || this.#isClosed) return;
    this.#looks.inc();
    this.#lookForReturned(live);
    const gone = this.#goneFrom(live);
    if (gone.size > 0) {
      const count = await this.#withdraw(({ process }) => gone.has(process), live);
      if (count === undefined) return; // the next look finds them gone again
      // If presence of one comes back before its lease is seen again, looks are counted anew.
      for (const process of gone) this.#misses.delete(process);
      this.#deps.log.warn("presence.withdrawn", { processes: gone.size, resources: count });
    }
    if (this.#isReviewDue()) await this.#review(live);
  }

  /**
   * True a moment after this process was away for so long that it may have lost its lease. Others send
   * nothing to a process without a lease, so nobody here has heard who has gone meanwhile.
   */
  #isReviewDue(): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    // What is left of a lease is more than half of it, as it is renewed well before.
    const isBack = this.#lookedMs !== undefined &&
      nowMs - this.#lookedMs >= this.#deps.leaseMs / 2;
    this.#lookedMs = nowMs;
    if (isBack) {
      this.#looksToReview = SECOND_ANNOUNCEMENT;
      this.#backUs = this.#deps.clock.wallUs();
    } else if (this.#looksToReview !== undefined) this.#looksToReview--;
    return this.#looksToReview === 0;
  }

  /** Withdraws presence of people who have no session any more, though their process lives. */
  async #review(live: LiveProcesses): Promise<void> {
    const { hasSessions, log } = this.#deps;
    // The session table may not know of a login since.
    const isDoubted = ({ heardUs }: Known, from: string) =>
      heardUs < this.#backUs && hasSessions(parseJid(from).domainpart);
    const count = await this.#withdraw(isDoubted, live);
    this.#looksToReview = count === undefined ? 1 : undefined;
    if (count !== undefined) log.info("presence.reviewed", { resources: count });
  }

  #lookLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#deps.clock.after(LOOK_MS, () => {
      this.look().catch((thrown) => {
        this.#deps.log.error("presence.bug", { error: describeError(thrown) });
      }).finally(() => this.#lookLater());
    });
  }

  /** Returns the available session of this node that has the full JID. */
  #ownSession(from: Jid): PresentSession | undefined {
    return this.#deps.here(from.bare.text).find(({ jid, isOpen, lastPresence }) =>
      isOpen && lastPresence !== undefined && jid.text === from.text
    );
  }

  /** True when the recipient has newer presence of the same resource from another process. */
  #isOutdated(from: Jid, { process, sentAtUs }: PresenceOrigin, { told, own }: Tellers): boolean {
    if (told?.process === process || (told === undefined && own === undefined)) return false;
    const superseded = this.#superseded.get(partKey(from.text, process));
    if (superseded !== undefined && sentAtUs <= superseded) return true;
    return sentAtUs < (told?.heardUs ?? own?.lastPresence?.sinceUs ?? 0);
  }

  /** True when the end of presence for one session comes after newer presence for its account. */
  #isToldSince({ from, to }: Stanza, told: Known): boolean {
    const { text } = to.bare;
    const all = this.#known.get(from.text) ?? [];
    const isNewer = (each: Known) => each !== told && each.heardUs > told.heardUs;
    return to !== to.bare && all.some((each) => isNewer(each) && each.told.get(text)?.has(text)) &&
      this.#deps.here(text).some(({ jid, priority }) =>
        jid.text === to.text && priority !== undefined
      );
  }

  /** Notes that the recipient believes another process than before. */
  #supersede({ from, to }: Stanza, { process }: PresenceOrigin, { told, own }: Tellers): void {
    // It was believed before, then not, and is now again: the other one may have more to say.
    if (this.#superseded.size > 0 && this.#superseded.delete(partKey(from.text, process))) {
      this.#contest(from.text);
    }
    if (told !== undefined) {
      this.#believedUntil(partKey(from.text, told.process), told.sentAtUs);
      this.#untellOne(from.text, told, { account: to.bare.text, to: to.text });
    } else if (own !== undefined) {
      const { sinceUs = 0 } = own.lastPresence!; // available
      this.#believedUntil(partKey(from.text, this.#deps.process), sinceUs);
    }
  }

  #contest(from: string): void {
    this.#contested.add(from);
    if (this.#contested.size <= MAX_CONTESTED) return;
    const [oldest] = this.#contested;
    this.#contested.delete(oldest!); // there are several
  }

  /** Notes until when a process was believed about a resource. */
  #believedUntil(key: string, sentAtUs: number): void {
    const before = this.#superseded.get(key) ?? 0;
    this.#superseded.delete(key); // the newest come last
    this.#superseded.set(key, Math.max(before, sentAtUs));
    if (this.#superseded.size <= MAX_SUPERSEDED) return;
    const [oldest] = this.#superseded.keys();
    this.#superseded.delete(oldest!); // there are several
  }

  /** @param told what the same process has told the recipient before */
  #available(
    stanza: Stanza,
    { origin, process, sentAtUs }: PresenceOrigin,
    told: Known | undefined,
  ): boolean {
    const { from, to } = stanza;
    const hash = hashOf(stanza.bytes);
    const account = to.bare.text;
    for (const lost of this.#lost.values()) this.#takeWithdrawn(lost, account, from.text);
    if (told !== undefined && to === to.bare && told.told.get(account)?.get(to.text) === hash) {
      return this.#drop();
    }
    // A clock that is ahead must not make the presence of later logins look old.
    const heardUs = Math.min(sentAtUs, this.#deps.clock.wallUs());
    const all = this.#known.get(from.text);
    let entry = told ?? all?.find((each) => each.process === process);
    const recipients = entry?.told.get(account) ?? new Map<string, number>();
    if (!recipients.has(to.text)) {
      if (this.#pairs >= MAX_PAIRS) return true;
      this.#pairs++;
    }
    recipients.set(to.text, hash);
    if (entry === undefined) {
      entry = { host: origin, process, sentAtUs, heardUs, told: new Map() };
      if (all === undefined) this.#known.set(from.text, [entry]);
      else all.push(entry);
    }
    if (sentAtUs > entry.sentAtUs) Object.assign(entry, { sentAtUs, heardUs });
    entry.told.set(account, recipients);
    const resources = this.#byAccount.get(account);
    if (resources === undefined) this.#byAccount.set(account, new Set([from.text]));
    else resources.add(from.text);
    return true;
  }

  #unavailable({ from, to }: Stanza, { process }: PresenceOrigin, told?: Known): boolean {
    // It was told already. A later probe would find nobody.
    const lost = this.#lost.get(process);
    const account = to.bare.text;
    if (lost !== undefined && this.#takeWithdrawn(lost, account, from.text)) return this.#drop();
    if (this.#contested.has(from.text)) this.#deps.probe(to.bare, from.bare);
    if (to === to.bare) {
      for (const each of [...this.#known.get(from.text) ?? []]) {
        this.#untell(from.text, each, account);
      }
    } else if (told !== undefined) this.#untellOne(from.text, told, { account, to: to.text });
    return true;
  }

  /** Forgets that an account, or any of its sessions here, was told of a resource. */
  #untell(from: string, known: Known, account: string): void {
    const recipients = known.told.get(account);
    if (recipients === undefined) return;
    this.#pairs -= recipients.size;
    known.told.delete(account);
    if (known.told.size === 0) this.#remove(from, known);
    const all = this.#known.get(from);
    if (all?.some(({ told }) => told.has(account)) === true) return;
    const resources = this.#byAccount.get(account);
    resources?.delete(from);
    if (resources?.size === 0) this.#byAccount.delete(account);
  }

  /** Forgets that one recipient of an account was told of a resource. */
  #untellOne(
    from: string,
    known: Known,
    { account, to }: { readonly account: string; readonly to: string },
  ): void {
    const recipients = known.told.get(account);
    if (recipients?.delete(to) !== true) return;
    this.#pairs--;
    if (recipients.size === 0) this.#untell(from, known, account);
  }

  #remove(from: string, known: Known): void {
    const left = (this.#known.get(from) ?? []).filter((each) => each !== known);
    if (left.length === 0) this.#known.delete(from);
    else this.#known.set(from, left);
  }

  /** Forgets that the presence of a resource was withdrawn; false when it was not. */
  #takeWithdrawn({ withdrawn }: Lost, account: string, from: string): boolean {
    const resources = withdrawn.get(account);
    if (resources?.delete(from) !== true) return false;
    this.#withdrawnPairs--;
    if (resources.size === 0) withdrawn.delete(account);
    return true;
  }

  #drop(): false {
    this.#late.inc();
    return false;
  }

  #lookForReturned(live: LiveProcesses): void {
    for (const [process, lost] of [...this.#lost]) {
      if (live.get(lost.host)?.has(process) !== true) lost.looksLeft = undefined;
      else if (lost.looksLeft === undefined) {
        lost.looksLeft = SECOND_ANNOUNCEMENT;
        this.#askAgain(lost.withdrawn);
      } else if (lost.looksLeft > 1) lost.looksLeft--;
      else this.#askForDirected(process, lost);
    }
    this.#lookForDatacenters(live);
  }

  /**
   * Tells datacenters that come back of the sessions here, at once and again a moment later: by
   * then replication has brought what was missed of theirs. Also those of which one node is back.
   */
  #lookForDatacenters(live: LiveProcesses): void {
    const withNodeBack = this.#lookForNodes(live);
    const liveHosts = new Set<string>();
    for (const [host, processes] of live) if (processes.size > 0) liveHosts.add(host);
    for (const [host, looks] of [...this.#returned]) {
      if (looks > 1) this.#returned.set(host, looks - 1);
      else {
        this.#returned.delete(host);
        if (liveHosts.has(host)) this.#deps.announce(host);
      }
    }
    for (const host of liveHosts) {
      // The first look finds those that this node came to.
      const isBack = this.#liveHosts !== undefined && !this.#liveHosts.has(host);
      if (!isBack && !withNodeBack.has(host)) continue;
      this.#deps.log.info("presence.datacenter-back", { host });
      this.#deps.announce(host);
      this.#returned.set(host, SECOND_ANNOUNCEMENT);
    }
    this.#liveHosts = liveHosts;
  }

  /**
   * Returns the datacenters of processes that have their lease back. Others send nothing to a process
   * without one. A process that has only started was told what its clients ask for.
   */
  #lookForNodes(live: LiveProcesses): ReadonlySet<string> {
    const withNodeBack = new Set<string>();
    const present = new Set<number>();
    for (const [host, processes] of live) {
      for (const process of processes) {
        if ((this.#absences.get(process) ?? 0) >= MISSES) withNodeBack.add(host);
        this.#absences.delete(process); // those that are away longest come first
        this.#absences.set(process, 0);
        present.add(process);
      }
    }
    for (const [process, looks] of this.#absences) {
      if (present.has(process)) continue;
      if (this.#absences.size > present.size + MAX_LOST) this.#absences.delete(process);
      else this.#absences.set(process, looks + 1);
    }
    return withNodeBack;
  }

  #askAgain(withdrawn: Lost["withdrawn"]): void {
    for (const [account, resources] of withdrawn) {
      const contacts = new Set([...resources].map((from) => parseJid(from).bare.text));
      for (const contact of contacts) this.#deps.probe(parseJid(account), parseJid(contact));
    }
  }

  /** Asks for some of the resources that have not come back as contacts, and forgets them. */
  #askForDirected(process: number, lost: Lost): void {
    let left = ASKED_AT_ONCE;
    // Entries that are removed meanwhile do not disturb the loops.
    for (const [account, resources] of lost.withdrawn) {
      for (const from of resources) {
        if (left-- === 0) return; // the rest at the next look
        this.#takeWithdrawn(lost, account, from);
        this.#deps.askForDirected(parseJid(account), parseJid(from));
      }
    }
    this.#lost.delete(process);
  }

  /** Forgets a process that is gone. */
  #loseSight(process: number): void {
    for (const resources of this.#lost.get(process)?.withdrawn.values() ?? []) {
      this.#withdrawnPairs -= resources.size;
    }
    this.#lost.delete(process);
  }

  /** Returns the processes that have been missing for long enough. */
  #goneFrom(live: LiveProcesses): ReadonlySet<number> {
    const gone = new Set<number>();
    const missing = new Set<number>();
    for (const { host, process } of [...this.#known.values()].flat()) {
      if (missing.has(process) || live.get(host)?.has(process) === true) continue;
      missing.add(process);
      const misses = (this.#misses.get(process) ?? 0) + 1;
      this.#misses.set(process, misses);
      if (misses >= MISSES) gone.add(process);
    }
    for (const process of this.#misses.keys()) {
      if (!missing.has(process)) this.#misses.delete(process);
    }
    return gone;
  }

  /**
   * Withdraws those of the resources that `isDoubted` names which no live process has. Returns how many;
   * undefined, and nothing has happened, while the session table cannot tell.
   */
  async #withdraw(
    isDoubted: (known: Known, from: string) => boolean,
    live: LiveProcesses,
  ): Promise<number | undefined> {
    const hosts = new Map<number, string>();
    for (const [host, processes] of live) for (const each of processes) hosts.set(each, host);
    const lost = [...this.#known].flatMap(([from, all]) =>
      all.filter((known) => isDoubted(known, from)).map((known) => [from, known] as const)
    );
    const accounts = new Set(lost.map(([from]) => parseJid(from).bare.text));
    // A session may have moved to a node that lives.
    const moved = await this.#deps.processesOf([...accounts]);
    if (moved === undefined || this.#isClosed) return undefined;
    let count = 0;
    for (const [from, known] of lost) {
      if (this.#known.get(from)?.includes(known) !== true) continue; // news meanwhile
      if (!isDoubted(known, from)) continue;
      const processes = moved.get(from)?.filter((each) => hosts.has(each)) ?? [];
      if (processes.includes(known.process)) continue;
      const [process] = processes;
      if (process !== undefined) {
        this.#moved(from, known, { process, host: hosts.get(process)! }); // it has one
        continue;
      }
      this.#end(from, known);
      count++;
    }
    this.#withdrawn.inc(count);
    return count;
  }

  /** Notes that `process` has the session of which another one has told. */
  #moved(
    from: string,
    known: Known,
    { process, host }: { readonly process: number; readonly host: string },
  ): void {
    const successor = this.#known.get(from)?.find((each) =>
      each !== known && each.process === process
    );
    if (successor === undefined) {
      Object.assign(known, { process, host });
      return;
    }
    for (const [account, recipients] of known.told) {
      const told = successor.told.get(account);
      if (told === undefined) successor.told.set(account, recipients);
      else {
        for (const [to, hash] of recipients) {
          if (told.has(to)) this.#pairs--;
          else told.set(to, hash);
        }
      }
    }
    known.told.clear();
    this.#remove(from, known);
  }

  #end(from: string, known: Known): void {
    const jid = parseJid(from);
    let lost = this.#lost.get(known.process);
    if (lost === undefined) {
      lost = { host: known.host, withdrawn: new Map(), looksLeft: undefined };
      this.#lost.set(known.process, lost);
    }
    const { told } = known;
    const recipients = new Map([...told].map(([account, each]) => [account, new Set(each.keys())]));
    for (const account of told.keys()) {
      const resources = lost.withdrawn.get(account) ?? new Set<string>();
      lost.withdrawn.set(account, resources);
      if (!resources.has(from)) this.#withdrawnPairs++;
      resources.add(from);
    }
    for (const account of recipients.keys()) this.#untell(from, known, account);
    while (this.#lost.size > MAX_LOST || this.#withdrawnPairs > MAX_PAIRS) {
      const [oldest] = this.#lost.keys();
      this.#loseSight(oldest!); // there is one: the pairs are its
    }
    const left = this.#known.get(from) ?? [];
    for (const [account, direct] of recipients) {
      const others = left.flatMap((each) => each.told.get(account) ?? []);
      for (const { jid: to, priority } of this.#deps.here(account)) {
        const isTold = direct.has(to.text) || (direct.has(account) && priority !== undefined);
        const isToldBy = (each: ReadonlyMap<string, number>) =>
          each.has(to.text) || (each.has(account) && priority !== undefined);
        // Another process has told of the same resource since.
        if (!isTold || others.some(isToldBy)) continue;
        const unavailable = element("presence", { type: "unavailable" });
        this.#deps.deliver(to, buildStanza(unavailable, { from: jid, to }));
      }
    }
  }
}

function isResourceOf(fullJid: string, account: string): boolean {
  return fullJid.startsWith(account) && fullJid[account.length] === "/";
}

function partKey(from: string, process: number): string {
  return `${process} ${from}`;
}

/** Returns a hash of bytes (FNV-1a, 32 bits). */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
