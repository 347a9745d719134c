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
import type { DocumentEntry, DocumentState } from "./document_state.ts";
import { emptying, reviving, shownVersion } from "./numbered_documents.ts";
import { placeOfJid } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** First character of the entries of items. */
const ITEM = "i";
/** Entry that each removal of an item changes: its version is that of the last one. */
const REMOVAL = "removal";

/** An item as it is stored; the request in Base64. */
interface StoredItem extends Omit<RosterItem, "jid" | "request"> {
  readonly request?: string;
}

/**
 * Rosters in Riak: a numbered document each, with an entry for each contact. Clusters that replicate
 * merge rosters contact by contact: of two changes of one contact one wins whole.
 */
export class RiakRosterStore implements RosterStore {
  readonly #deps: RiakDeps;

  constructor(deps: RiakDeps) {
    this.#deps = deps;
  }

  async read(owner: string): Promise<Roster> {
    const state = await this.#read(owner);
    const version = shownVersion(state);
    const removedVersion = version === 0 ? 0 : state.entries.get(REMOVAL)?.version ?? 0;
    return { version, removedVersion, items: itemsIn(state) };
  }

  async find(owner: string, contact: string): Promise<RosterEntry> {
    const state = await this.#read(owner);
    const items = itemsIn(state);
    return {
      version: shownVersion(state),
      item: withoutVersion(items.find(({ jid }) => jid === contact)),
      items: items.length,
      requests: items.filter(({ request }) => request !== undefined).length,
    };
  }

  async write(
    owner: string,
    { expected, contact, item }: RosterWrite,
  ): Promise<number | undefined> {
    return await this.#change(owner, (state) => {
      if (shownVersion(state) !== expected) return undefined;
      const change = [[`${ITEM}${contact}`, item === undefined ? null : stored(item)]] as const;
      // Changes from before a roster was made are as unknown as removed contacts.
      return item === undefined || expected === 0 ? [...change, [REMOVAL, ""]] : change;
    });
  }

  async fill(owner: string, items: readonly RosterItem[]): Promise<ReadonlySet<string>> {
    let kept = new Set<string>();
    await this.#change(owner, (state) => {
      const isThere = ({ jid }: RosterItem) => state.entries.has(`${ITEM}${jid}`);
      kept = new Set(items.filter(isThere).map(({ jid }) => jid));
      const added = items.filter((item) => !isThere(item));
      if (added.length === 0) return undefined;
      const change = added.map((item) => [`${ITEM}${item.jid}`, stored(item)] as const);
      return shownVersion(state) === 0 ? [...change, [REMOVAL, ""]] : change;
    });
    return kept;
  }

  async readItem(owner: string, contact: string): Promise<RosterItem | undefined> {
    const { entries } = await this.#read(owner);
    const entry = entries.get(`${ITEM}${contact}`);
    return entry && withoutVersion(itemIn(contact, entry));
  }

  async subscription(owner: string, contact: string): Promise<Subscription | undefined> {
    return (await this.readItem(owner, contact))?.subscription;
  }

  /** Reads the rosters of a bounded number of owners at once. */
  async subscriptions(
    owners: readonly string[],
    contact: string,
  ): Promise<ReadonlyMap<string, Subscription>> {
    const found = await this.#deps.client.forEach(
      owners,
      async (owner) => [owner, await this.subscription(owner, contact)] as const,
    );
    return new Map(found.filter((each): each is [string, Subscription] => each[1] !== undefined));
  }

  /** Reads the rosters of the contacts too, a bounded number at once: Riak joins nothing. */
  async contacts(
    owner: string,
    { withRequests = false }: { readonly withRequests?: boolean } = {},
  ): Promise<readonly RosterContact[]> {
    const related = itemsIn(await this.#read(owner)).filter(
      ({ subscription, isAsking, request }) =>
        subscription !== "none" || isAsking || (withRequests && request !== undefined),
    );
    return await this.#deps.client.forEach(related, async (item) => ({
      jid: item.jid,
      subscription: item.subscription,
      isAsking: item.isAsking,
      request: withRequests ? item.request : undefined,
      reverse: await this.subscription(item.jid, owner),
    }));
  }

  async part(owner: string, contact: string): Promise<void> {
    await this.#change(owner, (state) => {
      const entry = state.entries.get(`${ITEM}${contact}`);
      if (entry === undefined) return undefined;
      const item = itemIn(contact, entry);
      if (!item.isListed) return [[`${ITEM}${contact}`, null], [REMOVAL, ""]];
      const parted = stored({
        ...item,
        subscription: "none",
        isAsking: false,
        isApproved: false,
        request: undefined,
      });
      return parted === entry.value ? undefined : [[`${ITEM}${contact}`, parted]];
    });
  }

  async removeAll(owner: string): Promise<void> {
    for (const { jid } of await this.contacts(owner, { withRequests: true })) {
      await this.part(jid, owner);
    }
    await this.#deps.documents.change(placeOfOwner(owner), "remove a roster from", emptying);
  }

  async #read(owner: string): Promise<DocumentState> {
    return await this.#deps.documents.read(placeOfOwner(owner), "read a roster from");
  }

  async #change(
    owner: string,
    decide: (
      state: DocumentState,
    ) => readonly (readonly [name: string, value: string | null])[] | undefined,
  ): Promise<number | undefined> {
    const action = "change a roster in";
    return await this.#deps.documents.change(placeOfOwner(owner), action, (state) => {
      const change = decide(state);
      return change && reviving(state, change);
    });
  }
}

function placeOfOwner(owner: string): RiakPlace {
  return placeOfJid("rosters", owner);
}

function itemsIn({ entries }: DocumentState): readonly VersionedItem[] {
  const items = [...entries].filter(([name]) => name.startsWith(ITEM))
    .map(([name, entry]) => itemIn(name.slice(ITEM.length), entry));
  return items.sort((one, other) => one.jid < other.jid ? -1 : 1);
}

function itemIn(jid: string, { version, value }: DocumentEntry): VersionedItem {
  const { request, ...item } = JSON.parse(value) as StoredItem; // this program wrote it
  return {
    jid,
    ...item,
    request: request === undefined ? undefined : Uint8Array.fromBase64(request),
    version,
  };
}

function stored(item: RosterItem): string {
  const { name, groups, subscription, isAsking, isApproved, isListed, request } = item;
  const rest: StoredItem = { name, groups, subscription, isAsking, isApproved, isListed };
  return JSON.stringify(request === undefined ? rest : { ...rest, request: request.toBase64() });
}

function withoutVersion(versioned: VersionedItem | undefined): RosterItem | undefined {
  if (versioned === undefined) return undefined;
  const { version: _, ...item } = versioned;
  return item;
}
