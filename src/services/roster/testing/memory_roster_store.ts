import type {
  Roster,
  RosterContact,
  RosterEntry,
  RosterItem,
  RosterStore,
  RosterWrite,
  Subscription,
  VersionedItem,
} from "../../../storage/mod.ts";

/** Rosters in memory, by the rules of `RosterStore`. */
export class MemoryRosterStore implements RosterStore {
  /** Names of the methods that were called, in order. */
  readonly calls: string[] = [];
  /** While set, every method rejects with it. */
  failure: Error | undefined;
  /** While set, every method waits for it. */
  answersAfter: Promise<void> | undefined;
  /** Called before each write is compared: another writer may be faster. */
  beforeWrite: () => void = () => {};
  readonly #rosters = new Map<string, { roster: Roster }>();

  /** Puts an item in, as another node would. */
  put(owner: string, item: RosterItem): void {
    this.#apply(owner, item.jid, item);
  }

  item(owner: string, contact: string): RosterItem | undefined {
    return this.#of(owner).items.find(({ jid }) => jid === contact);
  }

  read(owner: string): Promise<Roster> {
    return this.#called("read", () => this.#of(owner));
  }

  find(owner: string, contact: string): Promise<RosterEntry> {
    return this.#called("find", () => {
      const { version, items } = this.#of(owner);
      return {
        version,
        item: this.item(owner, contact),
        items: items.length,
        requests: items.filter(({ request }) => request !== undefined).length,
      };
    });
  }

  write(owner: string, { expected, contact, item }: RosterWrite): Promise<number | undefined> {
    return this.#called("write", () => {
      this.beforeWrite();
      return this.#of(owner).version === expected ? this.#apply(owner, contact, item) : undefined;
    });
  }

  fill(owner: string, items: readonly RosterItem[]): Promise<ReadonlySet<string>> {
    return this.#called("fill", () => {
      const kept = items.filter(({ jid }) => this.item(owner, jid) !== undefined);
      for (const item of items) if (!kept.includes(item)) this.#apply(owner, item.jid, item);
      return new Set(kept.map(({ jid }) => jid));
    });
  }

  readItem(owner: string, contact: string): Promise<RosterItem | undefined> {
    return this.#called("readItem", () => this.item(owner, contact));
  }

  subscription(owner: string, contact: string): Promise<Subscription | undefined> {
    return this.#called("subscription", () => this.item(owner, contact)?.subscription);
  }

  subscriptions(
    owners: readonly string[],
    contact: string,
  ): Promise<ReadonlyMap<string, Subscription>> {
    return this.#called(
      "subscriptions",
      () =>
        new Map(owners.flatMap((owner) => {
          const item = this.item(owner, contact);
          return item === undefined ? [] : [[owner, item.subscription] as const];
        })),
    );
  }

  contacts(
    owner: string,
    { withRequests = false }: { readonly withRequests?: boolean } = {},
  ): Promise<readonly RosterContact[]> {
    return this.#called(
      withRequests ? "contacts with requests" : "contacts",
      () =>
        this.#of(owner).items
          .filter(({ subscription, isAsking, request }) =>
            subscription !== "none" || isAsking || (withRequests && request !== undefined)
          )
          .map(({ jid, subscription, isAsking, request }) => ({
            jid,
            subscription,
            isAsking,
            request: withRequests ? request : undefined,
            reverse: this.item(jid, owner)?.subscription,
          })),
    );
  }

  part(): Promise<void> {
    throw new TypeError("Cannot part contacts: no roster server does");
  }

  removeAll(owner: string): Promise<void> {
    return this.#called("removeAll", () => void this.#rosters.delete(owner));
  }

  #apply(owner: string, contact: string, item: RosterItem | undefined): number {
    const { version: before, removedVersion, items } = this.#of(owner);
    const version = before + 1;
    const others = items.filter(({ jid }) => jid !== contact);
    const own: VersionedItem[] = item === undefined ? [] : [{ ...item, version }];
    const removed = item === undefined ? version : removedVersion;
    const roster = { version, removedVersion: removed, items: [...others, ...own] };
    this.#rosters.set(owner, { roster });
    return version;
  }

  #of(owner: string): Roster {
    return this.#rosters.get(owner)?.roster ?? { version: 0, removedVersion: 0, items: [] };
  }

  async #called<T>(name: string, work: () => T): Promise<T> {
    this.calls.push(name);
    await this.answersAfter;
    if (this.failure !== undefined) throw this.failure;
    return work();
  }
}
