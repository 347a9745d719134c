import { describeError } from "../../base/mod.ts";
import type { OfflineStore } from "../../storage/mod.ts";
import type { BackgroundWork } from "./background_work.ts";
import { MessageClaim } from "./message_claim.ts";
import type { OfflineMessagesDeps } from "./offline_messages_deps.ts";
import type { OfflineMetrics } from "./offline_metrics.ts";

/** Milliseconds for which a claim holds. Another node may deliver the messages of a dead one then. */
const LEASE_MS = 60_000;
/** Milliseconds between two renewals of a claim. */
const RENEW_MS = 20_000;
/** Claims that one query renews. */
const CLAIMS_AT_ONCE = 500;
/** Milliseconds in which removals gather. */
const GATHER_MS = 20;

/** Objects behind `HeldClaims`. */
export interface HeldClaimsDeps extends Pick<OfflineMessagesDeps, "randomId" | "logger"> {
  readonly background: BackgroundWork;
  readonly metrics: Pick<OfflineMetrics, "delivered" | "returned">;
}

/**
 * The claims of this node. They are renewed until they are done, and their messages are removed or
 * released soon after their ends are known.
 */
export class HeldClaims {
  readonly #deps: HeldClaimsDeps;
  readonly #claims = new Set<MessageClaim>();
  #isRenewalSet = false;
  /** True from the moment a flush is planned until it has ended. */
  #isFlushSet = false;
  /** True when something waits for a flush since the last one began. */
  #isFlushDue = false;

  constructor(deps: HeldClaimsDeps) {
    this.#deps = deps;
  }

  /**
   * Claims the messages of an account. Resolves to undefined when there are none. Sequences begin anew
   * in an empty mailbox, so each call makes a claim of its own. It is held until its `finish` was
   * called and it is done.
   *
   * @param store the one object that is the store of all accounts of the host
   * @throws CausewayError with a code `storage/…`
   */
  async claim(
    store: OfflineStore,
    { localpart, nowMs }: { readonly localpart: string; readonly nowMs: number },
  ): Promise<MessageClaim | undefined> {
    const { randomId, metrics } = this.#deps;
    const claim = new MessageClaim(store, localpart, randomId(), {
      changed: () => this.flushLater(),
      delivered: () => metrics.delivered.inc(),
      returned: () => metrics.returned.inc(),
    });
    const found = await store.claim(localpart, { id: claim.id, nowMs, forMs: LEASE_MS });
    if (found === 0) return undefined;
    this.#claims.add(claim);
    this.#renewLater();
    return claim;
  }

  /** Calls `flush` soon, or again after one that goes on: a slow store never has several at work. */
  flushLater(): void {
    this.#isFlushDue = true;
    if (this.#isFlushSet) return;
    this.#isFlushSet = true;
    this.#deps.background.after(GATHER_MS, async () => {
      this.#isFlushDue = false;
      await this.flush();
      this.#isFlushSet = false;
      if (this.#isFlushDue) this.flushLater();
    });
  }

  /** Removes and releases what waits for it, and forgets claims that are done. Never rejects. */
  async flush(): Promise<void> {
    for (const claim of [...this.#claims]) {
      try {
        await claim.flush();
      } catch (thrown) {
        // The next renewal tries again.
        this.#deps.logger.debug("offline.not-removed", { error: describeError(thrown) });
      }
      if (claim.isDone) this.#claims.delete(claim);
    }
  }

  #renewLater(): void {
    if (this.#claims.size === 0 || this.#isRenewalSet) return;
    this.#isRenewalSet = true;
    this.#deps.background.after(RENEW_MS, () => {
      this.#isRenewalSet = false;
      return this.#renewAll().finally(() => this.#renewLater());
    });
  }

  /**
   * Holds all claims for longer, many at once: with a slow store, the last of many would end before its
   * turn. Then lets a flush try again what could not be removed. The next renewal does not wait for
   * that flush, which takes as long as its slowest removals. Never rejects.
   */
  async #renewAll(): Promise<void> {
    const stores = Map.groupBy(this.#claims, ({ store }) => store);
    for (const [store, claims] of stores) {
      for (let from = 0; from < claims.length; from += CLAIMS_AT_ONCE) {
        try {
          const some = claims.slice(from, from + CLAIMS_AT_ONCE);
          await store.renew(some, LEASE_MS);
        } catch (thrown) {
          this.#deps.logger.debug("offline.not-renewed", { error: describeError(thrown) });
        }
      }
    }
    this.flushLater();
  }
}
