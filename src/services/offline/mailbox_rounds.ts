import { describeError } from "../../base/mod.ts";
import type { BareJid, FullJid } from "../../xmpp/mod.ts";
import type { BackgroundWork } from "./background_work.ts";
import type { OfflineMessagesDeps } from "./offline_messages_deps.ts";
import type { OfflineMetrics } from "./offline_metrics.ts";

/** Milliseconds between two looks for messages that wait for clients which are here already. */
const LOOK_MS = 15_000;
/** Accounts that one query looks for. */
const ACCOUNTS_AT_ONCE = 500;
/** Milliseconds between two removals of expired messages. Until then they take room from others. */
const EXPIRY_MS = 60_000;
/** Queries of one removal of expired messages. */
const EXPIRY_STEPS = 100;

/** Objects behind `MailboxRounds`. */
export interface MailboxRoundsDeps
  extends Pick<OfflineMessagesDeps, "hosts" | "storeOf" | "logger" | "clock"> {
  readonly background: BackgroundWork;
  readonly metrics: Pick<OfflineMetrics, "expired">;
  /** Messages wait for an account that has a client here. */
  found(account: BareJid): void;
}

/**
 * Rounds through the mailboxes, again and again. Each round looks for messages that wait for clients
 * of this node, and removes expired messages when that is due.
 *
 * A client may become available while another node, or another datacenter that serves the host, still
 * writes a message for its account. Only a look finds that message.
 */
export class MailboxRounds {
  readonly #deps: MailboxRoundsDeps;
  /** Available clients with a priority of 0 or more, by full JID. */
  readonly #clients = new Map<string, FullJid>();
  #lastExpiryMs = -Infinity;

  constructor(deps: MailboxRoundsDeps) {
    this.#deps = deps;
  }

  /** Begins the rounds. They go on until the background work is closed. */
  start(): void {
    this.#deps.background.after(LOOK_MS, () => this.#round().finally(() => this.start()));
  }

  /** Looks for messages of this client from now on. Returns false if it does already. */
  add(client: FullJid): boolean {
    if (this.#clients.has(client.text)) return false;
    this.#clients.set(client.text, client);
    return true;
  }

  /** Looks for messages of this client no longer. */
  delete(client: FullJid): void {
    if (this.#clients.size > 0) this.#clients.delete(client.text);
  }

  /** Never rejects. */
  async #round(): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    const isExpiryDue = nowMs - this.#lastExpiryMs >= EXPIRY_MS;
    if (isExpiryDue) this.#lastExpiryMs = nowMs;
    if (await this.#look() && isExpiryDue) await this.#removeExpired();
  }

  /**
   * Finds the accounts that have clients here and messages that wait. Resolves to false when the
   * background work was closed before the end. Never rejects.
   */
  async #look(): Promise<boolean> {
    const { storeOf, found, background, logger, clock } = this.#deps;
    const accounts = new Map<string, BareJid>();
    for (const { bare } of this.#clients.values()) accounts.set(bare.text, bare);
    const hosts = Map.groupBy(accounts.values(), ({ domainpart }) => domainpart);
    for (const [host, jids] of hosts) {
      const store = storeOf(host);
      try {
        for (let from = 0; from < jids.length; from += ACCOUNTS_AT_ONCE) {
          if (background.isClosed) return false;
          const some = jids.slice(from, from + ACCOUNTS_AT_ONCE);
          const names = new Set(
            await store.waiting(some.map(({ localpart }) => localpart), clock.wallMs()),
          );
          for (const jid of some) if (names.has(jid.localpart)) found(jid);
        }
      } catch (thrown) {
        logger.debug("offline.not-looked", { host, error: describeError(thrown) });
      }
    }
    return true;
  }

  /** Never rejects. */
  async #removeExpired(): Promise<void> {
    const { hosts, storeOf, metrics, logger, clock } = this.#deps;
    for (const host of hosts.keys()) {
      const store = storeOf(host);
      try {
        for (let step = 0; step < EXPIRY_STEPS; step++) {
          const count = await store.removeExpired(clock.wallMs());
          metrics.expired.inc(count);
          if (count === 0) break;
        }
      } catch (thrown) {
        logger.debug("offline.not-expired", { host, error: describeError(thrown) });
      }
    }
  }
}
