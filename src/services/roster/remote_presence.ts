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
  /** Wall-clock microseconds when it entered. */
  readonly sentAtUs: number;
}

/** Live processes by local host, as the session table knows them. */
export type LiveProcesses = ReadonlyMap<string, ReadonlySet<number>>;

/** Collaborators of `RemotePresence`. */
export interface RemotePresenceDeps {
  /** Incarnation of this process. Presence that entered here ends with the session. */
  readonly process: number;
  /** Local hosts of all datacenters that can be reached. Never rejects. */
  hosts(): Promise<readonly string[]>;
  /**
   * Returns the processes of these datacenters that hold a lease; undefined while the session table
   * cannot tell. Never rejects.
   */
  liveProcesses(hosts: readonly string[]): Promise<LiveProcesses | undefined>;
  /** Returns, by full JID, the processes that have sessions of these accounts. Never rejects. */
  processesOf(accounts: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Returns the sessions of an account at this node. */
  here(account: string): readonly Pick<LocalSession, "jid" | "priority">[];
  /** Writes to a session of this node. */
  deliver(to: FullJid, stanza: Stanza): boolean;
  /** Asks for the presence of `account` in the name of `asker`, who may no longer be allowed to. */
  probe(asker: Jid, account: Jid): void;
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
/** Looks after which a datacenter that is back is told once more. */
const SECOND_ANNOUNCEMENT = 5;
/** Processes that are gone and may come back; those of nodes that were restarted never do. */
const MAX_LOST = 64;
/** Pairs of a resource and a recipient here that are remembered. */
const MAX_PAIRS = 1_000_000;

/** A resource elsewhere that recipients here take for available. */
interface Known {
  host: string;
  process: number;
  sentAtUs: number;
  /** Recipients, bare or full JIDs, with a hash of what they were told. */
  readonly told: Map<string, number>;
}

/** A process that is gone: the resources whose presence was withdrawn, with their recipients. */
interface Lost {
  readonly host: string;
  readonly withdrawn: Map<string, Set<string>>;
}

/**
 * Presence that recipients at this node have of resources elsewhere. When the process of a resource
 * no longer holds its lease, because its node or datacenter died or is cut off, the presence is
 * withdrawn here, once. When the process is back, the recipients ask for it again.
 *
 * A withdrawal that comes late never ends the presence of a newer login: of two processes, the one
 * with the later stanza counts.
 */
export class RemotePresence {
  readonly #deps: RemotePresenceDeps;
  readonly #known = new Map<string, Known>();
  /** Resources by the account here that was told of them. */
  readonly #byAccount = new Map<string, Set<string>>();
  readonly #lost = new Map<number, Lost>();
  readonly #misses = new Map<number, number>();
  /** Datacenters that had a live process at the last look. */
  #liveHosts: ReadonlySet<string> | undefined;
  /** Datacenters that have come back, with the looks until they are told once more. */
  readonly #returned = new Map<string, number>();
  #pairs = 0;
  #cancel: CancelTimer = () => {};
  #isClosed = false;
  readonly #withdrawn;
  readonly #late;

  constructor(deps: RemotePresenceDeps) {
    this.#deps = deps;
    this.#withdrawn = deps.metrics.counter({
      name: "causeway_presence_withdrawn_total",
      help: "Resources elsewhere whose presence was withdrawn here because their process is gone",
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
    if (this.#deps.here(to.bare.text).length === 0) return true; // nobody is told
    const known = this.#known.get(from.text);
    if (origin.process === this.#deps.process) {
      if (known !== undefined) this.#forget(from.text); // the resource is here now
      return true;
    }
    if (
      known !== undefined && known.process !== origin.process && origin.sentAtUs < known.sentAtUs
    ) {
      return this.#drop();
    }
    return type === "available"
      ? this.#available(stanza, origin, known)
      : this.#unavailable(stanza, origin, known);
  }

  /** Forgets what an account knew whose last session here has ended. */
  left(account: string): void {
    for (const from of this.#byAccount.get(account) ?? []) {
      const known = this.#known.get(from);
      if (known !== undefined) this.#untell(from, known, account);
    }
    this.#byAccount.delete(account);
    for (const { withdrawn } of this.#lost.values()) {
      for (const accounts of withdrawn.values()) accounts.delete(account);
    }
  }

  /** Looks once at who lives. Never rejects. */
  async look(): Promise<void> {
    const hosts = new Set(await this.#deps.hosts());
    for (const { host } of this.#known.values()) hosts.add(host);
    for (const { host } of this.#lost.values()) hosts.add(host);
    const live = await this.#deps.liveProcesses([...hosts]);
    if (live === undefined || this.#isClosed) return;
    this.#lookForReturned(live);
    const gone = this.#goneFrom(live);
    if (gone.size > 0) await this.#withdraw(gone);
  }

  #lookLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#deps.clock.after(LOOK_MS, () => {
      this.look().catch((thrown) => {
        this.#deps.log.error("presence.bug", { error: describeError(thrown) });
      }).finally(() => this.#lookLater());
    });
  }

  #available(
    stanza: Stanza,
    { origin, process, sentAtUs }: PresenceOrigin,
    known?: Known,
  ): boolean {
    const { from, to } = stanza;
    const hash = hashOf(stanza.bytes);
    for (const { withdrawn } of this.#lost.values()) {
      withdrawn.get(from.text)?.delete(to.bare.text);
    }
    let entry = known;
    if (entry === undefined) {
      entry = { host: origin, process, sentAtUs, told: new Map() };
      this.#known.set(from.text, entry);
    } else if (entry.process === process && to === to.bare && entry.told.get(to.text) === hash) {
      return this.#drop();
    } else {
      Object.assign(entry, { host: origin, process, sentAtUs });
    }
    if (!entry.told.has(to.text)) {
      if (this.#pairs >= MAX_PAIRS) {
        if (entry.told.size === 0) this.#known.delete(from.text);
        return true;
      }
      this.#pairs++;
    }
    entry.told.set(to.text, hash);
    const account = this.#byAccount.get(to.bare.text);
    if (account === undefined) this.#byAccount.set(to.bare.text, new Set([from.text]));
    else account.add(from.text);
    return true;
  }

  #unavailable({ from, to }: Stanza, { process }: PresenceOrigin, known?: Known): boolean {
    // It was told already. A later probe would find nobody.
    const withdrawn = this.#lost.get(process)?.withdrawn.get(from.text);
    if (withdrawn?.delete(to.bare.text) === true) return this.#drop();
    if (known === undefined) return true;
    if (to === to.bare) this.#untell(from.text, known, to.text);
    else if (known.told.delete(to.text)) this.#pairs--;
    if (known.told.size === 0) this.#known.delete(from.text);
    return true;
  }

  /** Forgets that an account, or any of its sessions here, was told of a resource. */
  #untell(from: string, known: Known, account: string): void {
    for (const to of [...known.told.keys()]) {
      if (to !== account && !to.startsWith(`${account}/`)) continue;
      known.told.delete(to);
      this.#pairs--;
    }
    if (known.told.size === 0) this.#known.delete(from);
    this.#byAccount.get(account)?.delete(from);
  }

  #forget(from: string): void {
    const known = this.#known.get(from);
    if (known === undefined) return;
    this.#pairs -= known.told.size;
    this.#known.delete(from);
    for (const to of known.told.keys()) {
      this.#byAccount.get(parseJid(to).bare.text)?.delete(from);
    }
  }

  #drop(): false {
    this.#late.inc();
    return false;
  }

  #lookForReturned(live: LiveProcesses): void {
    for (const [process, { host, withdrawn }] of [...this.#lost]) {
      if (live.get(host)?.has(process) !== true) continue;
      this.#lost.delete(process);
      this.#askAgain(withdrawn);
    }
    this.#lookForDatacenters(live);
  }

  /**
   * Tells datacenters that come back of the sessions here, at once and again a moment later: by
   * then replication has brought what was missed of theirs.
   */
  #lookForDatacenters(live: LiveProcesses): void {
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
      if (this.#liveHosts === undefined || this.#liveHosts.has(host)) continue;
      this.#deps.log.info("presence.datacenter-back", { host });
      this.#deps.announce(host);
      this.#returned.set(host, SECOND_ANNOUNCEMENT);
    }
    this.#liveHosts = liveHosts;
  }

  #askAgain(withdrawn: Lost["withdrawn"]): void {
    const asked = new Set<string>();
    for (const [from, accounts] of withdrawn) {
      const contact = parseJid(from).bare;
      for (const account of accounts) {
        const pair = `${account} ${contact.text}`; // no bare JID has a space in it
        if (asked.has(pair)) continue;
        asked.add(pair);
        this.#deps.probe(parseJid(account), contact);
      }
    }
  }

  /** Returns the processes that have been missing for long enough. */
  #goneFrom(live: LiveProcesses): ReadonlySet<number> {
    const gone = new Set<number>();
    const missing = new Set<number>();
    for (const { host, process } of this.#known.values()) {
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

  async #withdraw(gone: ReadonlySet<number>): Promise<void> {
    const lost = [...this.#known].filter(([, { process }]) => gone.has(process));
    const accounts = new Set(lost.map(([from]) => parseJid(from).bare.text));
    // A session may have moved to a node that lives.
    const moved = await this.#deps.processesOf([...accounts]);
    if (this.#isClosed) return;
    let count = 0;
    for (const [from, known] of lost) {
      if (this.#known.get(from) !== known || !gone.has(known.process)) continue; // news meanwhile
      const process = moved.get(from);
      if (process !== undefined && !gone.has(process)) {
        known.process = process;
        continue;
      }
      this.#end(from, known);
      count++;
    }
    this.#withdrawn.inc(count);
    this.#deps.log.warn("presence.withdrawn", { processes: gone.size, resources: count });
  }

  #end(from: string, known: Known): void {
    const jid = parseJid(from);
    let lost = this.#lost.get(known.process);
    if (lost === undefined) {
      this.#lost.set(known.process, lost = { host: known.host, withdrawn: new Map() });
      const [oldest] = this.#lost.keys();
      if (this.#lost.size > MAX_LOST) this.#lost.delete(oldest!); // there is one more
    }
    const accounts = new Set<string>();
    const told = new Set(known.told.keys());
    for (const to of told) accounts.add(parseJid(to).bare.text);
    lost.withdrawn.set(from, accounts);
    this.#forget(from);
    for (const account of accounts) {
      for (const { jid: to, priority } of this.#deps.here(account)) {
        if (priority === undefined && !told.has(to.text)) continue;
        const unavailable = element("presence", { type: "unavailable" });
        this.#deps.deliver(to, buildStanza(unavailable, { from: jid, to }));
      }
    }
  }
}

/** Returns a hash of bytes (FNV-1a, 32 bits). */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}
