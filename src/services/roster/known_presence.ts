import type { PacedWork } from "../../base/mod.ts";

/**
 * Pairs of a resource and a recipient here that are remembered. Beyond, the oldest of the datacenter with
 * most of them are forgotten: one that tells of very many must not crowd out the others.
 */
const MAX_PAIRS = 1_000_000;
/** Resources in one piece of a walk through all of them. */
const WALKED_AT_ONCE = 500;

/** A resource elsewhere that recipients here take for available, as one process has told them. */
export interface Known {
  host: string;
  process: number;
  /** Local host of the datacenter whose share its pairs count for: the one that has first told of it. */
  readonly payer: string;
  /** Time of its last presence, by the clock of that process. */
  sentAtUs: number;
  /** That time by the clock of this process, if the other clock is ahead. */
  heardUs: number;
  /** By account: its recipients, bare or full JIDs, with a hash of what they were told. */
  readonly told: Map<string, Map<string, number>>;
}

/** A recipient here: an account, or one of its sessions. */
export interface Recipient {
  /** Bare JID. */
  readonly account: string;
  /** Bare or full JID. */
  readonly to: string;
}

/** Pairs and resources that one datacenter has told of. */
interface Share {
  pairs: number;
  /** Full JIDs, the oldest first. */
  readonly resources: Map<Known, string>;
}

/** Resources elsewhere that recipients here were told of, by each process that has told them. */
export class KnownPresence {
  /** By full JID: usually one process has told of it. */
  readonly #known = new Map<string, Known[]>();
  /** Resources by the account here that was told of them. */
  readonly #byAccount = new Map<string, Set<string>>();
  /** By datacenter. */
  readonly #shares = new Map<string, Share>();
  /** Numbers of resources by datacenter and process: who lives is looked up again and again. */
  readonly #tellers = new Map<string, Map<number, number>>();
  readonly #maxPairs: number;
  #pairs = 0;

  constructor(maxPairs = MAX_PAIRS) {
    this.#maxPairs = maxPairs;
  }

  /** Pairs of a resource and a recipient. */
  get pairs(): number {
    return this.#pairs;
  }

  /** Returns what each process has told of a resource. */
  of(from: string): readonly Known[] {
    return this.#known.get(from) ?? [];
  }

  /** Returns the processes that have told of resources, by datacenter. */
  tellers(): ReadonlyMap<string, ReadonlyMap<number, unknown>> {
    return this.#tellers;
  }

  /**
   * Returns those of the resources that match, each as often as processes have told of it. There may be
   * very many, so it walks through them in pieces: what matched may have changed meanwhile.
   */
  async matching(
    paced: Pick<PacedWork, "run">,
    isMatch: (known: Known, from: string) => boolean,
  ): Promise<readonly (readonly [from: string, known: Known])[]> {
    const found: (readonly [string, Known])[] = [];
    const rest = this.#known.entries();
    const walk = () => {
      // The iterator of a map goes on where `take` has left it.
      for (const [from, all] of rest.take(WALKED_AT_ONCE)) {
        for (const known of all) if (isMatch(known, from)) found.push([from, known]);
      }
    };
    // Presence that comes during the walk is new, and comes behind.
    for (let left = this.#known.size; left > 0; left -= WALKED_AT_ONCE) await paced.run(walk);
    return found;
  }

  /** Returns the resources that an account, or a session of it, was told of. */
  resourcesOf(account: string): readonly string[] {
    return [...this.#byAccount.get(account) ?? []];
  }

  /**
   * Notes that a process tells a recipient of a resource. Past the bound, nothing new is noted for the
   * datacenter with most pairs.
   */
  tell(
    from: string,
    { account, to, hash }: Recipient & { readonly hash: number },
    { host, process, payer, sentAtUs, heardUs }: Omit<Known, "told">,
  ): void {
    let entry = this.of(from).find((each) => each.process === process);
    const recipients = entry?.told.get(account) ?? new Map<string, number>();
    const isNew = !recipients.has(to);
    if (isNew && !this.#makeRoom(entry?.payer ?? payer)) return;
    recipients.set(to, hash);
    if (entry === undefined) {
      entry = { host, process, payer, sentAtUs, heardUs, told: new Map() };
      this.#add(from, entry);
    }
    if (isNew) this.#count(entry, 1);
    if (sentAtUs > entry.sentAtUs) Object.assign(entry, { sentAtUs, heardUs });
    entry.told.set(account, recipients);
    const resources = this.#byAccount.get(account);
    if (resources === undefined) this.#byAccount.set(account, new Set([from]));
    else resources.add(from);
  }

  /** Forgets that an account, or any of its sessions here, was told of a resource. */
  untell(from: string, known: Known, account: string): void {
    const recipients = known.told.get(account);
    if (recipients === undefined) return;
    this.#count(known, -recipients.size);
    known.told.delete(account);
    if (known.told.size === 0) this.#remove(from, known);
    if (this.of(from).some(({ told }) => told.has(account))) return;
    const resources = this.#byAccount.get(account);
    resources?.delete(from);
    if (resources?.size === 0) this.#byAccount.delete(account);
  }

  /** Forgets that one recipient of an account was told of a resource. */
  untellOne(from: string, known: Known, { account, to }: Recipient): void {
    const recipients = known.told.get(account);
    if (recipients?.delete(to) !== true) return;
    this.#count(known, -1);
    if (recipients.size === 0) this.untell(from, known, account);
  }

  /** Notes that `process` has the session of which another one has told. */
  move(
    from: string,
    known: Known,
    { process, host }: { readonly process: number; readonly host: string },
  ): void {
    const successor = this.of(from).find((each) => each !== known && each.process === process);
    if (successor === undefined) {
      this.#countTeller(known, -1);
      Object.assign(known, { process, host });
      this.#countTeller(known, 1);
      return;
    }
    for (const [account, recipients] of known.told) {
      const told = successor.told.get(account) ?? new Map<string, number>();
      successor.told.set(account, told);
      this.#count(known, -recipients.size);
      for (const [to, hash] of recipients) {
        if (told.has(to)) continue;
        told.set(to, hash);
        this.#count(successor, 1);
      }
    }
    known.told.clear();
    this.#remove(from, known);
  }

  /** False when there is no room, and nobody else has more pairs than that datacenter. */
  #makeRoom(payer: string): boolean {
    while (this.#pairs >= this.#maxPairs) {
      const own = this.#shares.get(payer)?.pairs ?? 0;
      const [most] = [...this.#shares.values()].sort((one, other) => other.pairs - one.pairs);
      if (most === undefined || most.pairs <= own) return false;
      const [known, from] = most.resources.entries().next().value!; // it has most of the pairs
      const [account] = known.told.keys();
      this.untell(from, known, account!); // it is known as somebody was told
    }
    return true;
  }

  #count({ payer }: Known, pairs: number): void {
    this.#shares.get(payer)!.pairs += pairs; // it has the resource
    this.#pairs += pairs;
  }

  #countTeller({ host, process }: Known, resources: number): void {
    const processes = this.#tellers.get(host) ?? new Map<number, number>();
    const count = (processes.get(process) ?? 0) + resources;
    if (count > 0) processes.set(process, count);
    else processes.delete(process);
    if (processes.size > 0) this.#tellers.set(host, processes);
    else this.#tellers.delete(host);
  }

  #add(from: string, known: Known): void {
    this.#countTeller(known, 1);
    const all = this.#known.get(from);
    if (all === undefined) this.#known.set(from, [known]);
    else all.push(known);
    const share = this.#shares.get(known.payer);
    if (share === undefined) {
      this.#shares.set(known.payer, { pairs: 0, resources: new Map([[known, from]]) });
    } else share.resources.set(known, from);
  }

  #remove(from: string, known: Known): void {
    this.#countTeller(known, -1);
    const { resources } = this.#shares.get(known.payer)!; // it has the resource
    resources.delete(known);
    if (resources.size === 0) this.#shares.delete(known.payer);
    const left = this.of(from).filter((each) => each !== known);
    if (left.length === 0) this.#known.delete(from);
    else this.#known.set(from, left);
  }
}
