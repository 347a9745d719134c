import type {
  Roster,
  RosterContact,
  RosterEntry,
  RosterItem,
  RosterStore,
  RosterWrite,
  Subscription,
  VersionedItem,
} from "../roster_store.ts";
import { storageError } from "../storage_error.ts";
import { byCodePoints } from "./code_points.ts";
import type { SharedContact, SharedRoster } from "./shared_roster.ts";

/**
 * Rosters with the contacts that a directory gives each account. Such a contact has the subscription
 * `both`, keeps the groups of the directory, and cannot be changed or removed here. What people have
 * added themselves is in the store behind this one.
 *
 * The version of a roster does not know of changes in the directory, so that clients of such a host
 * get whole rosters.
 */
export class MergedRosterStore implements RosterStore {
  readonly #own: RosterStore;
  readonly #shared: SharedRoster;
  readonly #hasOwn: boolean;
  readonly #domainpart: string;

  constructor(
    { own, shared, hasOwn, domainpart }: {
      readonly own: RosterStore;
      readonly shared: SharedRoster;
      /** False: there are no other contacts than those of the directory. */
      readonly hasOwn: boolean;
      readonly domainpart: string;
    },
  ) {
    this.#own = own;
    this.#shared = shared;
    this.#hasOwn = hasOwn;
    this.#domainpart = domainpart;
  }

  async read(owner: string): Promise<Roster> {
    const shared = await this.#contactsOf(owner);
    const own = this.#hasOwn ? await this.#own.read(owner) : NOTHING;
    const items = new Map<string, VersionedItem>(own.items.map((each) => [each.jid, each]));
    for (const contact of shared.values()) {
      const before = items.get(contact.jid);
      items.set(contact.jid, { ...mergedItem(contact, before), version: before?.version ?? 0 });
    }
    const sorted = [...items.values()].toSorted((one, other) => byCodePoints(one.jid, other.jid));
    return { ...own, items: sorted };
  }

  async find(owner: string, contact: string): Promise<RosterEntry> {
    const shared = (await this.#contactsOf(owner)).get(contact);
    const own = this.#hasOwn
      ? await this.#own.find(owner, contact)
      : { version: 0, item: undefined, items: 0, requests: 0 };
    return shared === undefined ? own : { ...own, item: mergedItem(shared, own.item) };
  }

  async write(owner: string, write: RosterWrite): Promise<number | undefined> {
    const shared = await this.#contactsOf(owner);
    if (!this.#hasOwn || shared.has(write.contact)) {
      throw storageError("managed-elsewhere", {
        action: "change a contact in",
        place: this.#shared.place,
      });
    }
    return await this.#own.write(owner, write);
  }

  async fill(owner: string, items: readonly RosterItem[]): Promise<ReadonlySet<string>> {
    if (!this.#hasOwn) return new Set(items.map(({ jid }) => jid));
    const shared = await this.#contactsOf(owner);
    const there = await this.#own.fill(owner, items.filter(({ jid }) => !shared.has(jid)));
    return new Set([...there, ...items.map(({ jid }) => jid).filter((jid) => shared.has(jid))]);
  }

  async readItem(owner: string, contact: string): Promise<RosterItem | undefined> {
    const shared = (await this.#contactsOf(owner)).get(contact);
    const own = this.#hasOwn ? await this.#own.readItem(owner, contact) : undefined;
    return shared === undefined ? own : mergedItem(shared, own);
  }

  async subscription(owner: string, contact: string): Promise<Subscription | undefined> {
    if ((await this.#contactsOf(owner)).has(contact)) return "both";
    return this.#hasOwn ? await this.#own.subscription(owner, contact) : undefined;
  }

  async subscriptions(
    owners: readonly string[],
    contact: string,
  ): Promise<ReadonlyMap<string, Subscription>> {
    const own = this.#hasOwn ? await this.#own.subscriptions(owners, contact) : [];
    const found = new Map(own);
    for (const owner of owners) {
      if ((await this.#contactsOf(owner)).has(contact)) found.set(owner, "both");
    }
    return found;
  }

  async contacts(
    owner: string,
    options?: { readonly withRequests?: boolean },
  ): Promise<readonly RosterContact[]> {
    const shared = await this.#contactsOf(owner);
    const own = this.#hasOwn ? await this.#own.contacts(owner, options) : [];
    return [
      ...own.filter(({ jid }) => !shared.has(jid)),
      ...[...shared.keys()].map((jid): RosterContact => ({
        jid,
        subscription: "both",
        isAsking: false,
        request: undefined,
        reverse: "both",
      })),
    ];
  }

  async part(owner: string, contact: string): Promise<void> {
    await this.#own.part(owner, contact);
  }

  async removeAll(owner: string): Promise<void> {
    await this.#own.removeAll(owner);
  }

  async #contactsOf(owner: string): Promise<ReadonlyMap<string, SharedContact>> {
    const at = owner.length - this.#domainpart.length - 1;
    const isHere = at > 0 && owner.slice(at) === `@${this.#domainpart}`;
    return isHere ? await this.#shared.contactsOf(owner.slice(0, at)) : new Map();
  }
}

const NOTHING: Roster = { version: 0, removedVersion: 0, items: [] };

function mergedItem(shared: SharedContact, own: RosterItem | undefined): RosterItem {
  return {
    jid: shared.jid,
    name: own?.name || shared.name,
    groups: [...new Set([...own?.groups ?? [], ...shared.groups])],
    subscription: "both",
    isAsking: false,
    isApproved: false,
    isListed: true,
    request: undefined,
  };
}
