/** Directions in which the two sides of a roster item see presence (RFC 6121 §2.1.2.5). */
export type Subscription = "none" | "to" | "from" | "both";

/** A contact of an account, as the account's roster has it (RFC 6121 §2.1.2). */
export interface RosterItem {
  /** Bare JID of the contact. */
  readonly jid: string;
  /** Empty: none. */
  readonly name: string;
  readonly groups: readonly string[];
  readonly subscription: Subscription;
  /** True while the account waits for an answer to its request: "pending out". */
  readonly isAsking: boolean;
  /** True when a request of the contact is approved in advance (RFC 6121 §3.4). */
  readonly isApproved: boolean;
  /** False for a contact that has only sent a request: clients do not see the item. */
  readonly isListed: boolean;
  /** Presence stanza by which the contact asks for a subscription: "pending in". */
  readonly request: Uint8Array | undefined;
}

/** A roster item, and the version of the roster that its last change has made. */
export interface VersionedItem extends RosterItem {
  readonly version: number;
}

/** A whole roster, with items that clients do not see. */
export interface Roster {
  /** Grows with each change; 0 for a roster that nobody has changed yet. */
  readonly version: number;
  /**
   * Version at which an item was removed last. What has changed since an earlier version is not
   * known.
   */
  readonly removedVersion: number;
  readonly items: readonly VersionedItem[];
}

/** One item of a roster, with the facts that a change of it depends on. */
export interface RosterEntry {
  readonly version: number;
  /** Undefined: the contact is not in the roster. */
  readonly item: RosterItem | undefined;
  /** All items, with those that clients do not see. */
  readonly items: number;
  /** Items that hold a request. */
  readonly requests: number;
}

/** One change of a roster. */
export interface RosterWrite {
  /** Version that the change was made for, as `find` returned it. */
  readonly expected: number;
  /** Bare JID of the contact. */
  readonly contact: string;
  /** Undefined: the item is removed. */
  readonly item: RosterItem | undefined;
}

/** A contact with a subscription or an open request. */
export interface RosterContact
  extends Pick<RosterItem, "jid" | "subscription" | "isAsking" | "request"> {
  /** The subscription that the contact's own roster has; undefined when it has none in this store. */
  readonly reverse: Subscription | undefined;
}

/**
 * The rosters of accounts, by the accounts' bare JIDs. All JIDs are normalised.
 *
 * A roster has one version. `write` makes a change only if that version is still the expected one.
 * Several nodes can thus change one roster at the same moment, and none loses the change of
 * another: it reads again, and applies its own change to what it finds (`changeRoster`).
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. What was reported as done is on the disk.
 */
export interface RosterStore {
  /** Returns the roster, its items in the order of their JIDs. */
  read(owner: string): Promise<Roster>;
  /** Returns one item, and what a change of it depends on. */
  find(owner: string, contact: string): Promise<RosterEntry>;
  /**
   * Makes one change.
   * @returns the new version; undefined when the roster has another version than the expected one
   */
  write(owner: string, write: RosterWrite): Promise<number | undefined>;
  /**
   * Adds the items whose contacts the roster does not have, all of them at once, and changes no other
   * item. Safe to repeat. For data from elsewhere: nobody is told of it.
   * @param items at most 20000, each contact once
   * @returns the contacts that were in the roster already
   */
  fill(owner: string, items: readonly RosterItem[]): Promise<ReadonlySet<string>>;
  /**
   * Returns one item. It takes the same query whether or not the owner has a roster, so that its time
   * does not tell a stranger who exists.
   */
  readItem(owner: string, contact: string): Promise<RosterItem | undefined>;
  /** Returns the subscription of one item; undefined when there is no such item. */
  subscription(owner: string, contact: string): Promise<Subscription | undefined>;
  /**
   * Returns the subscriptions of the items that these owners have for one contact, by owner.
   * @param owners at most 500
   */
  subscriptions(
    owners: readonly string[],
    contact: string,
  ): Promise<ReadonlyMap<string, Subscription>>;
  /**
   * Returns the contacts with a subscription or a request of the owner's, in one query.
   * @param options `withRequests`: also the requests that wait for the owner. They may be long
   */
  contacts(
    owner: string,
    options?: { readonly withRequests?: boolean },
  ): Promise<readonly RosterContact[]>;
  /**
   * Ends all subscriptions and requests that `owner` has with `contact`, as if the contact were gone.
   * An item that the owner has listed stays in the roster. Nobody is told of it.
   */
  part(owner: string, contact: string): Promise<void>;
  /**
   * Removes the roster, with all requests to the account, and ends what its contacts in this store
   * share with it: another person may get the name later. Safe to repeat.
   */
  removeAll(owner: string): Promise<void>;
}

/** True when the contact sees the owner's presence. */
export function seesPresence(subscription: Subscription | undefined): boolean {
  return subscription === "from" || subscription === "both";
}

/** True when the owner sees the contact's presence. */
export function isSeen(subscription: Subscription | undefined): boolean {
  return subscription === "to" || subscription === "both";
}

/** Returns the subscription of these two directions. */
export function subscriptionOf(
  { hasTo, hasFrom }: { readonly hasTo: boolean; readonly hasFrom: boolean },
): Subscription {
  if (hasTo) return hasFrom ? "both" : "to";
  return hasFrom ? "from" : "none";
}
