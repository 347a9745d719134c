/** A request for a subscription that its contact has not answered (RFC 6121 §3.1.3). */
export interface SubscriptionRequest {
  /** Bare JID of who asks. */
  readonly requester: string;
  /** Bare JID of who is asked. */
  readonly contact: string;
  /** Whose share of the room it takes: the requester, or a component's whole domain. */
  readonly sender: string;
  /** The presence stanza as it goes to the contact. */
  readonly stanza: Uint8Array;
  /** Where it entered the mesh: local host, incarnation and number there. */
  readonly origin: string;
  readonly process: number;
  readonly sequence: number;
}

/** Which requests are meant: at most one is kept for each pair. */
export type RequestPair = Pick<SubscriptionRequest, "requester" | "contact">;

/** One step in what is kept. */
export type RequestChange =
  | { readonly kind: "keep"; readonly request: SubscriptionRequest }
  /** Forgets the request of the pair, if there is one. */
  | { readonly kind: "remove"; readonly pair: RequestPair }
  /** Forgets this very request: one with another stanza, which has come since, stays. */
  | { readonly kind: "remove-same"; readonly request: SubscriptionRequest };

/** Requests that are kept at once. */
export interface RequestBounds {
  /** Of one sender; at least 1. @default 100 */
  readonly maxPerSender?: number;
  /** For one contact; at least 1. @default 100 */
  readonly maxPerContact?: number;
  /** Of all; at least 1. @default 10000 */
  readonly maxRequests?: number;
}

/** Fills in the defaults. */
export function resolveRequestBounds(bounds: RequestBounds = {}): Required<RequestBounds> {
  const { maxPerSender = 100, maxPerContact = 100, maxRequests = 10_000 } = bounds;
  return Object.freeze({ maxPerSender, maxPerContact, maxRequests });
}

/**
 * Requests for subscriptions that wait for their contacts. The newest request of a pair takes the place
 * of an older one. Where there is no room, the oldest request of that sender, of all, or for that contact
 * of the sender that has most for it goes, so that keeping one takes the same steps whatever is kept.
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
