/** A request for a subscription that its contact has not answered (RFC 6121 §3.1.3). */
export interface SubscriptionRequest {
  /** Bare JID of the account that asks. */
  readonly requester: string;
  /** Bare JID of the account that is asked. */
  readonly contact: string;
  /**
   * Sender in whose share of the room the request counts: the requester, or a component's whole
   * domain.
   */
  readonly sender: string;
  /** The presence stanza as it goes to the contact. */
  readonly stanza: Uint8Array;
  /** Place where the request entered the mesh: local host, incarnation and number there. */
  readonly origin: string;
  readonly process: number;
  readonly sequence: number;
}

/** Which requests are meant: at most one is kept for each pair. */
export type RequestPair = Pick<SubscriptionRequest, "requester" | "contact">;

/** One change of the kept requests. */
export type RequestChange =
  | { readonly kind: "keep"; readonly request: SubscriptionRequest }
  /** Forgets the request of the pair, if there is one. */
  | { readonly kind: "remove"; readonly pair: RequestPair }
  /** Forgets exactly this request. A newer request of the pair, with another stanza, stays. */
  | { readonly kind: "remove-same"; readonly request: SubscriptionRequest }
  /** Forgets all requests of an account, and all for it. */
  | { readonly kind: "remove-account"; readonly account: string };

/** Limits on the kept requests. */
export interface RequestBounds {
  /** Requests of one sender; at least 1. @default 100 */
  readonly maxPerSender?: number;
  /** Requests for one contact; at least 1. @default 100 */
  readonly maxPerContact?: number;
  /** All requests; at least 1. @default 10000 */
  readonly maxRequests?: number;
}

/** Fills in the defaults. */
export function resolveRequestBounds(bounds: RequestBounds = {}): Required<RequestBounds> {
  const { maxPerSender = 100, maxPerContact = 100, maxRequests = 10_000 } = bounds;
  return Object.freeze({ maxPerSender, maxPerContact, maxRequests });
}

/**
 * Requests for subscriptions that wait for their contacts. The newest request of a pair replaces an
 * older one. When there is no room, one request is removed: the oldest of that sender, the oldest
 * of all, or the oldest for that contact of the sender that has most for it. Keeping a request thus
 * takes the same steps whatever is kept.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. What was reported as done is on the disk.
 */
export interface SubscriptionRequestStore {
  /**
   * Takes all of `changes`, in their order, or none. Resolves to the number of requests that had to go for
   * want of room.
   */
  change(changes: readonly RequestChange[]): Promise<number>;
  /** The requests for a contact, the oldest first. */
  ofContact(contact: string): Promise<readonly SubscriptionRequest[]>;
  /** Everybody for whom a request is kept, each once. */
  contacts(): Promise<readonly string[]>;
  /** Requests that are kept. */
  count(): Promise<number>;
}
