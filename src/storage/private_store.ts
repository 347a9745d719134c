/** Name of an element in private storage. An account has at most one element of each name. */
export interface PrivateName {
  readonly namespace: string;
  readonly name: string;
}

/** One change of the private storage of an account. */
export interface PrivateChange extends PrivateName {
  /** The new element as XML that can be read by itself. Undefined removes the element. */
  readonly xml: string | undefined;
  /**
   * The element that is there before all changes, as `read` has returned it; null: there is none.
   * @default whichever is there
   */
  readonly expected?: string | null;
}

/** Limits on the private storage of one account. */
export interface PrivateBounds {
  /** Elements; at least 1. */
  readonly maxElements: number;
  /** Bytes of all elements together; at least 1. */
  readonly maxBytes: number;
}

/**
 * The private XML storage of the accounts of one domain (XEP-0049). Localparts are normalised (RFC
 * 7622 §3.3). The store does not know which accounts exist.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface PrivateStore {
  /** Returns the element of that name as XML; undefined when there is none. */
  read(localpart: string, name: PrivateName): Promise<string | undefined>;
  /**
   * Makes all of `changes`, in their order, or none. Changes that several nodes make at the same moment
   * may together exceed the bounds by what they write.
   *
   * @returns `changed` when an element is not the expected one, `full` when the account has no room
   */
  change(
    localpart: string,
    changes: readonly PrivateChange[],
    bounds: PrivateBounds,
  ): Promise<"done" | "changed" | "full">;
  /** Returns all elements of an account as XML. */
  all(localpart: string): Promise<readonly string[]>;
  /** Removes all elements of an account. */
  removeAll(localpart: string): Promise<void>;
}

/** Elements of an account and their bytes, for the bounds. */
export interface PrivateTotal {
  readonly elements: number;
  readonly bytes: number;
}

/** True also for changes that free room in an account above its bounds, which may be new. */
export function keepsBounds(
  { maxElements, maxBytes }: PrivateBounds,
  before: PrivateTotal,
  after: PrivateTotal,
): boolean {
  return after.elements <= Math.max(maxElements, before.elements) &&
    after.bytes <= Math.max(maxBytes, before.bytes);
}
