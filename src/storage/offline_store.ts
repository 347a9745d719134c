/** A message that is to wait for its recipient. */
export interface OfflineMessage {
  /** Bare JID of the sender, or the domain that speaks for it: the holder of its share of the room. */
  readonly sender: string;
  /** The message stanza as it goes to the recipient. */
  readonly stanza: Uint8Array;
  /** Wall-clock milliseconds when the server accepted it. */
  readonly sentAtMs: number;
  /** Wall-clock milliseconds when it is no longer wanted. */
  readonly expiresAtMs: number;
  /**
   * 64 hexadecimal digits that no other message has. A database that may carry out a failed change later
   * (Riak) then keeps the message once, however often it is added. @default it is a new message
   */
  readonly id?: string;
}

/** A message that waits, with the number by which it is claimed and removed. */
export interface WaitingMessage {
  /** Grows within the claim of an account, in the order in which the messages were kept. */
  readonly sequence: number;
  readonly stanza: Uint8Array;
  readonly sentAtMs: number;
}

/** A message that waits, as one reads it who does not deliver it. */
export interface KeptMessage extends WaitingMessage {
  readonly expiresAtMs: number;
}

/**
 * Returns the name under which marks of imports wait: an account of a directory has got messages once.
 * No account has a name with a space. Pure.
 */
export function importMarkName(localpart: string): string {
  return `imported ${localpart}`;
}

/** Limits on the messages of one account. */
export interface OfflineBounds {
  /** Messages; at least 1. */
  readonly maxMessages: number;
  /** Bytes of all messages together; at least 1. */
  readonly maxBytes: number;
}

/** A claim's owner, and its duration. */
export interface OfflineClaim {
  /** 16 bytes that no other claim has. */
  readonly id: Uint8Array;
  /** Wall-clock milliseconds now, which the end of a message's life is compared with. */
  readonly nowMs: number;
  /** Milliseconds for which nobody else may claim the messages, by the clock of the backend. */
  readonly forMs: number;
}

/** A claim that is held, with the account whose messages it has. */
export interface HeldClaim {
  readonly localpart: string;
  readonly id: Uint8Array;
}

/**
 * The messages that wait for the accounts of one domain (XEP-0160). Localparts are normalised (RFC
 * 7622 §3.3). The store does not know which accounts exist.
 *
 * A node that delivers messages claims them first. Until the claim ends, nobody else gets them. The
 * backend's own clock says when it ends: those of two nodes may differ. The
 * node removes each message once its client has it, and renews the claim meanwhile. The messages of a
 * node that dies are free again when its claim ends.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface OfflineStore {
  /**
   * Keeps messages for an account, in their order, all in one step. Resolves to one value for each:
   * false for a message for which its sender's share, or the account, has no room. A sender may have
   * at most as many messages and bytes as are free, so that it takes half of an empty mailbox, and
   * others always find room.
   */
  keep(
    localpart: string,
    messages: readonly OfflineMessage[],
    bounds: OfflineBounds,
  ): Promise<readonly boolean[]>;
  /**
   * Claims all messages of an account that nobody has claimed, without those that have expired.
   * Resolves to how many there are.
   */
  claim(localpart: string, claim: OfflineClaim): Promise<number>;
  /** Returns the first `limit` claimed messages whose sequence is above `after`, in their order. */
  claimed(
    localpart: string,
    claimId: Uint8Array,
    options: { readonly after: number; readonly limit: number },
  ): Promise<readonly WaitingMessage[]>;
  /** Holds claims for `forMs` from now. */
  renew(claims: readonly HeldClaim[], forMs: number): Promise<void>;
  /** Ends a claim on these messages: others may claim them. */
  release(localpart: string, claimId: Uint8Array, sequences: readonly number[]): Promise<void>;
  /** Removes claimed messages. Messages that someone else has claimed meanwhile stay. */
  remove(localpart: string, claimId: Uint8Array, sequences: readonly number[]): Promise<void>;
  /**
   * Returns the accounts among `localparts` that have messages which nobody has claimed, and which
   * have not expired at the wall-clock time `nowMs`.
   */
  waiting(localparts: readonly string[], nowMs: number): Promise<readonly string[]>;
  /** Returns all messages of an account, claimed or not, in their order. */
  all(localpart: string): Promise<readonly KeptMessage[]>;
  /** Removes all messages of an account. */
  removeAll(localpart: string): Promise<void>;
  /** Removes some of the messages of all domains that have expired. Resolves to how many. */
  removeExpired(nowMs: number): Promise<number>;
}
