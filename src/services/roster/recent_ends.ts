import type { Clock } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";

/**
 * Milliseconds for which the end of a subscription is remembered. The probes of a login wait for each
 * other while very many log in.
 */
const KEPT_MS = 300_000;
/** Ends that are remembered; the oldest are forgotten first. */
const MAX_ENDS = 10_000;

/**
 * Subscriptions to the presence of accounts here that have ended a moment ago. A probe for a login of the
 * contact may have been allowed before that, and come afterwards.
 */
export class RecentEnds {
  readonly #clock: Clock;
  /** Monotonic milliseconds of the end by owner and contact, the oldest first. */
  readonly #ends = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes that `contact` may no longer see the presence of `owner`. */
  note(owner: Jid, contact: Jid): void {
    const key = keyOf(owner, contact);
    const nowMs = this.#clock.monotonicMs();
    this.#ends.delete(key);
    this.#ends.set(key, nowMs);
    for (const [oldest, endedMs] of this.#ends) {
      if (this.#ends.size <= MAX_ENDS && nowMs - endedMs < KEPT_MS) return;
      this.#ends.delete(oldest);
    }
  }

  /** Notes that `contact` may see the presence of `owner` again. */
  forget(owner: Jid, contact: Jid): void {
    if (this.#ends.size > 0) this.#ends.delete(keyOf(owner, contact));
  }

  /** True when the contact could see the presence a moment ago, and may not any more. */
  has(owner: Jid, contact: Jid): boolean {
    if (this.#ends.size === 0) return false;
    const endedMs = this.#ends.get(keyOf(owner, contact));
    return endedMs !== undefined && this.#clock.monotonicMs() - endedMs < KEPT_MS;
  }
}

function keyOf(owner: Jid, contact: Jid): string {
  return `${owner.bare.text} ${contact.bare.text}`; // no bare JID has a space
}
