/** A session of this node. */
export interface OwnSession {
  readonly id: string;
  readonly resourcepart: string;
  /** Epoch drawn when it opened; its claim's own is higher if the account knew a higher one. */
  readonly openedUs: number;
  /** Epoch of its claim; 0 until it is settled, which wants a look at the claims that are known. */
  epoch: number;
  /** False until the keys have once been given this login's host. */
  isAnnounced: boolean;
  /** How often its claim was written. */
  renewal: number;
}

/** A session of this node that has closed and whose keys are still being seen to. */
export interface ClosedSession {
  readonly id: string;
  readonly resourcepart: string;
  /** Monotonic milliseconds when it closed. */
  readonly closedMs: number;
  /** True when its claim was removed and its keys were given back once. */
  isWithdrawn: boolean;
}

/**
 * What this node holds of one account (bare JID) or of one component's domain: the unit that is
 * written, read back and renewed.
 */
export class Account {
  /** Bare JID or domain: the name of its key. */
  readonly name: string;
  readonly sessions: OwnSession[] = [];
  readonly closed: ClosedSession[] = [];
  /** Host to which we gave a key on behalf of its owner, by key. */
  readonly handedTo = new Map<string, string>();
  /** Renewals of others' claims as last seen, and since when (monotonic milliseconds), by id. */
  readonly seen = new Map<string, { readonly renewal: number; readonly sinceMs: number }>();
  /** Host that a key named without any claim to show for it, by key: left alone at first sight. */
  readonly suspects = new Map<string, string>();
  /** Bucket of the wheel that renews it. */
  slot = -1;
  /** True while its commands are on their way; at most one batch works on an account. */
  isBusy = false;

  constructor(name: string) {
    this.name = name;
  }

  /** True when nothing of it is ours any more. */
  get isEmpty(): boolean {
    return this.sessions.length === 0 && this.closed.length === 0;
  }
}
