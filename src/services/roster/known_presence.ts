/** Pairs of a resource and a recipient here that are remembered. */
const MAX_PAIRS = 1_000_000;

/** A resource elsewhere that recipients here take for available, as one process has told them. */
export interface Known {
  host: string;
  process: number;
  /** Time of its last presence, by the clock of that process. */
  sentAtUs: number;
  /** The same by the clock of this process, if that one's is ahead. */
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

/** Resources elsewhere that recipients here were told of, by each process that has told them. */
export class KnownPresence {
  /** By full JID: usually one process has told of it. */
  readonly #known = new Map<string, Known[]>();
  /** Resources by the account here that was told of them. */
  readonly #byAccount = new Map<string, Set<string>>();
  #pairs = 0;

  /** Pairs of a resource and a recipient. */
  get pairs(): number {
    return this.#pairs;
  }

  /** Returns what each process has told of a resource. */
  of(from: string): readonly Known[] {
    return this.#known.get(from) ?? [];
  }

  /** Returns all resources, each as often as processes have told of it. */
  all(): readonly (readonly [from: string, known: Known])[] {
    return [...this.#known].flatMap(([from, all]) => all.map((known) => [from, known] as const));
  }

  /** Returns the resources that an account, or a session of it, was told of. */
  resourcesOf(account: string): readonly string[] {
    return [...this.#byAccount.get(account) ?? []];
  }

  /** Notes that a process tells a recipient of a resource. Past the bound nothing is noted. */
  tell(
    from: string,
    { account, to, hash }: Recipient & { readonly hash: number },
    { host, process, sentAtUs, heardUs }: Omit<Known, "told">,
  ): void {
    const all = this.#known.get(from);
    let entry = all?.find((each) => each.process === process);
    const recipients = entry?.told.get(account) ?? new Map<string, number>();
    if (!recipients.has(to)) {
      if (this.#pairs >= MAX_PAIRS) return;
      this.#pairs++;
    }
    recipients.set(to, hash);
    if (entry === undefined) {
      entry = { host, process, sentAtUs, heardUs, told: new Map() };
      if (all === undefined) this.#known.set(from, [entry]);
      else all.push(entry);
    }
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
    this.#pairs -= recipients.size;
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
    this.#pairs--;
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

  #remove(from: string, known: Known): void {
    const left = this.of(from).filter((each) => each !== known);
    if (left.length === 0) this.#known.delete(from);
    else this.#known.set(from, left);
  }
}
