/** A node of an account's personal eventing service (XEP-0163). */
export interface PepNode {
  readonly name: string;
  /** Configuration as the service wrote it. The store only compares it. */
  readonly config: string;
}

/** One item of a node. */
export interface PepItem {
  readonly id: string;
  /** The payload as XML that can be read by itself. */
  readonly xml: string;
}

/** The newest item of one node, for those who hear of it late. */
export interface LastPepItem {
  readonly localpart: string;
  readonly node: PepNode;
  readonly id: string;
  /** Undefined for a payload that is larger than was asked for. */
  readonly xml: string | undefined;
}

/** One publication. */
export interface PepPublication {
  readonly node: string;
  /** Configuration that the node must have; undefined: there must be no such node. */
  readonly expected: string | undefined;
  /** Configuration of the node if it is made. */
  readonly config: string;
  /** Undefined: only the node is made. */
  readonly item: PepItem | undefined;
  /** Items that the node keeps, the newest; at least 1. */
  readonly maxItems: number;
}

/** Limits on the nodes of one account. */
export interface PepBounds {
  /** At least 1. */
  readonly maxNodes: number;
  /** Bytes of all items with their ids; at least 1. */
  readonly maxBytes: number;
}

/** Selection of last items. */
export interface LastItemsQuery {
  /** At most 500. */
  readonly localparts: readonly string[];
  /** Names of nodes; at most 500. */
  readonly nodes: readonly string[];
  /** Bytes of a payload that is returned. */
  readonly maxPayloadBytes: number;
  /** Wall-clock milliseconds: only items published since then. */
  readonly sinceMs?: number;
}

/**
 * The nodes and items of personal eventing of the accounts of one domain (XEP-0163). Localparts are
 * normalised (RFC 7622 §3.3). The store does not know which accounts exist: reading takes the same
 * steps for all names.
 *
 * Publications in one node at the same moment take effect one after another, whichever nodes and
 * datacenters make them. None is lost, as long as the node keeps that many items.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface PepStore {
  /** Returns the nodes of an account, by name. */
  nodes(localpart: string): Promise<readonly PepNode[]>;
  /** Returns one node; undefined when there is none. */
  node(localpart: string, name: string): Promise<PepNode | undefined>;
  /**
   * Puts an item into a node, which is made if there must be none. An item with the same id is
   * replaced, and items beyond `maxItems` are removed, the oldest first.
   *
   * @returns `changed` when the node is not as expected, `full` when the account has no room.
   * Publications at the same moment may together exceed the bounds by what they write
   */
  publish(
    localpart: string,
    publication: PepPublication,
    bounds: PepBounds,
  ): Promise<"published" | "changed" | "full">;
  /**
   * Replaces the configuration of a node, and removes items beyond `maxItems`, which may be 0. False
   * when the node has another configuration than `expected`.
   */
  configure(
    localpart: string,
    change: {
      readonly node: string;
      readonly expected: string;
      readonly config: string;
      readonly maxItems: number;
    },
  ): Promise<boolean>;
  /**
   * Removes items of a node, all without `ids`. Returns how many there were; undefined when the node has
   * another configuration than `expected`.
   */
  retract(
    localpart: string,
    change: {
      readonly node: string;
      readonly expected: string;
      readonly ids?: readonly string[];
    },
  ): Promise<number | undefined>;
  /** Removes a node with its items. False when it has another configuration than `expected`. */
  remove(
    localpart: string,
    change: { readonly node: string; readonly expected: string },
  ): Promise<boolean>;
  /** Returns the newest `max` items of a node, the oldest of them first. */
  newest(localpart: string, node: string, max: number): Promise<readonly PepItem[]>;
  /** Returns the items with these ids, at most 500, that the node has. */
  items(localpart: string, node: string, ids: readonly string[]): Promise<readonly PepItem[]>;
  /** Returns the newest item of each of these nodes of each of these accounts. */
  lastItems(query: LastItemsQuery): Promise<readonly LastPepItem[]>;
  /** Removes all nodes of an account. */
  removeAll(localpart: string): Promise<void>;
}
