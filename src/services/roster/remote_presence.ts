import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { FullJid, Jid, LocalSession, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { Known } from "./known_presence.ts";
import { KnownPresence } from "./known_presence.ts";
import type { LiveProcesses } from "./live_processes.ts";
import { MISSES, SECOND_ANNOUNCEMENT } from "./live_processes.ts";
import type { ReturnedDatacentersDeps } from "./returned_datacenters.ts";
import { ReturnedDatacenters } from "./returned_datacenters.ts";
import type { WithdrawnPresenceDeps } from "./withdrawn_presence.ts";
import { WithdrawnPresence } from "./withdrawn_presence.ts";

/** The place where a presence entered the mesh. */
export interface PresenceOrigin {
  /** Local host of its datacenter, and incarnation of its process. */
  readonly origin: string;
  readonly process: number;
  /** Local host of the datacenter that has passed it on to this node. @default `origin` */
  readonly cameFrom?: string | undefined;
  /** Wall-clock microseconds when it entered, or when the presence began that it repeats or ends. */
  readonly sentAtUs: number;
}

/** A session of this node, as far as others' presence depends on it. */
export type PresentSession = Pick<LocalSession, "jid" | "priority" | "lastPresence" | "isOpen">;

/** Collaborators of `RemotePresence`. */
export interface RemotePresenceDeps extends WithdrawnPresenceDeps, ReturnedDatacentersDeps {
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
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/**
 * Resources that are looked up, and withdrawn, at once: very many are gone with a datacenter, and all at
 * once would stop the node for seconds.
 */
const WITHDRAWN_AT_ONCE = 100;
/** Milliseconds between two looks at who lives. */
const LOOK_MS = 1_000;
/** Presences of which it is remembered that another process has told of the same resource since. */
const MAX_SUPERSEDED = 10_000;
/** Resources of which it is remembered that two processes disagreed. */
const MAX_CONTESTED = 1_000;

/** The other processes that a recipient may believe about a resource. */
interface Tellers {
  /** Presence that the recipient has from elsewhere. */
  readonly told: Known | undefined;
  /** The session of this node that has the full JID; undefined also for its own presence. */
  readonly own: PresentSession | undefined;
}

/** A review of the resources elsewhere that have gone while this process heard nothing of it. */
interface Review {
  /** Wall-clock microseconds when it heard of everything again. */
  readonly backUs: number;
  looksLeft: number;
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
  readonly #known = new KnownPresence();
  /** Times of presences after which another process was believed, by `partKey`. */
  readonly #superseded = new Map<string, number>();
  /** Full JIDs of which a process was believed although another may have newer presence. */
  readonly #contested = new Set<string>();
  readonly #withdrawn: WithdrawnPresence;
  readonly #misses = new Map<number, number>();
  readonly #returned: ReturnedDatacenters;
  /** Monotonic milliseconds of the last look that found out who lives. */
  #lookedMs: number | undefined;
  /** Reviews that are due soon, by datacenter: one of all of them after this process was away. */
  readonly #reviews = new Map<string | undefined, Review>();
  #cancel: CancelTimer = () => {};
  #isClosed = false;
  readonly #withdrawals;
  readonly #looks;
  readonly #late;

  constructor(deps: RemotePresenceDeps) {
    this.#deps = deps;
    this.#withdrawn = new WithdrawnPresence(deps);
    this.#returned = new ReturnedDatacenters(deps);
    this.#withdrawals = deps.metrics.counter({
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
    }, () => this.#known.pairs);
  }

  /** Begins to look at who lives. */
  start(): void {
    this.#lookLater();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#withdrawn.close();
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
    const told = this.#known.of(from.text).find((each) => each.told.get(account)?.has(to.text));
    const own = origin.process === this.#deps.process ? undefined : this.#ownSession(from);
    if (this.#isOutdated(from, origin, { told, own })) {
      if (type === "available") this.#contest(from.text);
      return this.#drop();
    }
    if (type === "unavailable") {
      if (told?.process === origin.process && this.#isToldSince(stanza, told)) {
        this.#known.untellOne(from.text, told, { account, to: to.text });
        return this.#drop();
      }
      return this.#unavailable(stanza, origin);
    }
    if (told?.process !== origin.process) this.#supersede(stanza, origin, { told, own });
    if (origin.process === this.#deps.process) return true;
    return this.#available(stanza, origin, told?.process === origin.process ? told : undefined);
  }

  /**
   * Notes presence that the privacy lists here keep from its recipient. Nothing is told of its resource any
   * more: the next presence is news, even if it is like the last one told. Nobody is asked for it anew.
   */
  refused({ type, from, to }: Stanza, { process }: PresenceOrigin): void {
    if (from === from.bare || (type !== "available" && type !== "unavailable")) return;
    if (this.#withdrawn.take(process, to.bare.text, from.text)) return;
    this.#untell(from, to);
  }

  /** Returns the full JIDs of the resources elsewhere that a session here, or its account, was told of. */
  toldTo({ bare, text }: FullJid): readonly string[] {
    const account = bare.text;
    const isTold = ({ told }: Known) => {
      const recipients = told.get(account);
      return recipients !== undefined && (recipients.has(account) || recipients.has(text));
    };
    return this.#known.resourcesOf(account).filter((from) => this.#known.of(from).some(isTold));
  }

  /**
   * Notes that an account here asks for the presence of another one, for a session that has not heard of
   * it: presence that says nothing new to the others is news.
   */
  asks(account: string, other: string): void {
    for (const from of this.#known.resourcesOf(account)) {
      if (!isResourceOf(from, other)) continue;
      for (const { told } of this.#known.of(from)) {
        const recipients = told.get(account);
        if (recipients?.has(account) === true) recipients.set(account, Number.NaN); // equals no hash
      }
    }
  }

  /** True when an account here was told of a resource of `other` elsewhere, and not of its end. */
  isTold(account: string, other: string): boolean {
    return this.#known.resourcesOf(account).some((from) => isResourceOf(from, other));
  }

  /** Forgets what a session here, which has ended, was told directly. */
  closed({ bare, text }: FullJid): void {
    for (const from of this.#known.resourcesOf(bare.text)) {
      for (const known of this.#known.of(from)) {
        this.#known.untellOne(from, known, { account: bare.text, to: text });
      }
    }
  }

  /** Forgets what an account knew whose last session here has ended. */
  left(account: string): void {
    for (const from of this.#known.resourcesOf(account)) {
      for (const known of this.#known.of(from)) this.#known.untell(from, known, account);
    }
    this.#withdrawn.left(account);
  }

  /** Looks once at who lives. Never rejects. */
  async look(): Promise<void> {
    const hosts = new Set(await this.#deps.hosts());
    for (const host of this.#known.tellers().keys()) hosts.add(host);
    for (const host of this.#withdrawn.hosts) hosts.add(host);
    const live = await this.#deps.liveProcesses([...hosts]);
    if (live === undefined || this.#isClosed) return;
    this.#looks.inc();
    this.#withdrawn.look(live);
    this.#returned.look(live);
    const gone = this.#goneFrom(live);
    if (gone.size > 0) {
      const count = await this.#withdraw(({ process }) => gone.has(process), live);
      if (count === undefined) return; // the next look finds them gone again
      // If presence of one comes back before its lease is seen again, looks are counted anew.
      for (const process of gone) this.#misses.delete(process);
      this.#deps.log.warn("presence.withdrawn", { processes: gone.size, resources: count });
    }
    for (const [host, review] of [...this.#reviews]) {
      if (review.looksLeft-- <= 0) await this.#review(host, review, live);
    }
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#lookedMs !== undefined) this.#wasAway(nowMs - this.#lookedMs);
    this.#lookedMs = nowMs;
  }

  /**
   * Notes that a datacenter is linked again.
   * @param awayMs milliseconds without a link
   */
  linkedAgain(host: string, awayMs: number): void {
    this.#wasAway(awayMs, host);
  }

  /**
   * Plans a review if this process was away for so long that it may have lost its lease, everywhere or
   * at one datacenter. Others send nothing to a process without a lease, so nobody here has heard who
   * has gone meanwhile.
   */
  #wasAway(forMs: number, host?: string): void {
    // A lease always has more than half of its time left, because it is renewed well before.
    if (forMs < this.#deps.leaseMs / 2) return;
    const backUs = this.#deps.clock.wallUs();
    this.#reviews.set(host, { backUs, looksLeft: SECOND_ANNOUNCEMENT - 1 });
  }

  /** Withdraws presence of people who have no session any more, though their process lives. */
  async #review(host: string | undefined, review: Review, live: LiveProcesses): Promise<void> {
    const { hasSessions, log } = this.#deps;
    // The session table may not know of a login since.
    const isDoubted = (known: Known, from: string) =>
      known.heardUs < review.backUs && (host === undefined || known.host === host) &&
      hasSessions(parseJid(from).domainpart);
    const count = await this.#withdraw(isDoubted, live);
    if (count === undefined) return; // the next look tries again
    if (this.#reviews.get(host) === review) this.#reviews.delete(host);
    log.info("presence.reviewed", { host, resources: count });
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
    const all = this.#known.of(from.text);
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
      this.#known.untellOne(from.text, told, { account: to.bare.text, to: to.text });
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
    { origin, process, cameFrom = origin, sentAtUs }: PresenceOrigin,
    told: Known | undefined,
  ): boolean {
    const { from, to } = stanza;
    const hash = hashOf(stanza.bytes);
    const account = to.bare.text;
    this.#withdrawn.returned(account, from.text);
    if (told !== undefined && to === to.bare && told.told.get(account)?.get(to.text) === hash) {
      return this.#drop();
    }
    // A clock that is ahead must not make the presence of later logins look old.
    const heardUs = Math.min(sentAtUs, this.#deps.clock.wallUs());
    this.#known.tell(from.text, { account, to: to.text, hash }, {
      host: origin,
      process,
      payer: cameFrom,
      sentAtUs,
      heardUs,
    });
    return true;
  }

  #unavailable({ from, to }: Stanza, { process }: PresenceOrigin): boolean {
    // It was told already. A later probe would find nobody.
    if (this.#withdrawn.take(process, to.bare.text, from.text)) return this.#drop();
    if (this.#contested.has(from.text)) this.#deps.probe(to.bare, from.bare);
    this.#untell(from, to);
    return true;
  }

  /** Forgets that a recipient was told of a resource. */
  #untell({ text }: Jid, to: Jid): void {
    const account = to.bare.text;
    for (const each of this.#known.of(text)) {
      if (to === to.bare) this.#known.untell(text, each, account);
      else this.#known.untellOne(text, each, { account, to: to.text });
    }
  }

  #drop(): false {
    this.#late.inc();
    return false;
  }

  /** Returns the processes that have been missing for long enough. */
  #goneFrom(live: LiveProcesses): ReadonlySet<number> {
    const gone = new Set<number>();
    const missing = new Set<number>();
    for (const [host, processes] of this.#known.tellers()) {
      for (const process of processes.keys()) {
        if (missing.has(process) || live.get(host)?.has(process) === true) continue;
        missing.add(process);
        const misses = (this.#misses.get(process) ?? 0) + 1;
        this.#misses.set(process, misses);
        if (misses >= MISSES) gone.add(process);
      }
    }
    for (const process of this.#misses.keys()) {
      if (!missing.has(process)) this.#misses.delete(process);
    }
    return gone;
  }

  /**
   * Withdraws those of the resources that `isDoubted` names which no live process has. Returns how many;
   * undefined, and some stay as they are, while the session table cannot tell.
   */
  async #withdraw(
    isDoubted: (known: Known, from: string) => boolean,
    live: LiveProcesses,
  ): Promise<number | undefined> {
    const hosts = new Map<number, string>();
    for (const [host, processes] of live) for (const each of processes) hosts.set(each, host);
    const lost = await this.#known.matching(this.#deps.paced, isDoubted);
    let count = 0;
    for (let at = 0; at < lost.length; at += WITHDRAWN_AT_ONCE) {
      const some = lost.slice(at, at + WITHDRAWN_AT_ONCE);
      const accounts = new Set(some.map(([from]) => parseJid(from).bare.text));
      // A session may have moved to a node that lives.
      const moved = await this.#deps.processesOf([...accounts]);
      if (moved === undefined || this.#isClosed) return undefined;
      const ended = this.#withdrawSome(some, { isDoubted, moved, hosts });
      this.#withdrawals.inc(ended);
      count += ended;
    }
    return count;
  }

  /** Returns how many of the resources it has withdrawn. */
  #withdrawSome(
    lost: readonly (readonly [from: string, known: Known])[],
    { isDoubted, moved, hosts }: {
      readonly isDoubted: (known: Known, from: string) => boolean;
      /** Processes that have sessions, by full JID. */
      readonly moved: ReadonlyMap<string, readonly number[]>;
      /** Datacenters of live processes. */
      readonly hosts: ReadonlyMap<number, string>;
    },
  ): number {
    let count = 0;
    for (const [from, known] of lost) {
      if (!this.#known.of(from).includes(known)) continue; // news meanwhile
      if (!isDoubted(known, from)) continue;
      const processes = moved.get(from)?.filter((each) => hosts.has(each)) ?? [];
      if (processes.includes(known.process)) continue;
      const [process] = processes;
      if (process !== undefined) {
        this.#known.move(from, known, { process, host: hosts.get(process)! }); // it has one
        continue;
      }
      this.#end(from, known);
      count++;
    }
    return count;
  }

  #end(from: string, known: Known): void {
    const jid = parseJid(from);
    const { told } = known;
    const recipients = new Map([...told].map(([account, each]) => [account, new Set(each.keys())]));
    this.#withdrawn.add(from, known, recipients.keys());
    for (const account of recipients.keys()) this.#known.untell(from, known, account);
    const left = this.#known.of(from);
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
