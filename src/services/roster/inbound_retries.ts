import type { BackoffOptions, CancelTimer, Clock } from "../../base/mod.ts";
import { backoffMs, FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";

/** Stanzas that wait for the database at once. Each account that sends them has a share. */
const MAX_WAITING = 1_000;
/** Attempts at the first stanza of a pair before it is given up. */
const MAX_ATTEMPTS = 10;
/** Pauses between them. Their length is random: stanzas that failed together do not return so. */
const PAUSES: BackoffOptions = { firstMs: 1_000, maxMs: 30_000, jitter: 0.5 };

/** Collaborators of `InboundRetries`. */
export interface InboundRetriesDeps {
  readonly clock: Clock;
  /** Applies a stanza to its recipient's roster; false when the database failed. Never rejects. */
  apply(stanza: Stanza): Promise<boolean>;
  /** Runs a step in the turn of an account. */
  run(account: string, step: () => Promise<void>): void;
  /** Called with each stanza that is given up. */
  gaveUp(): void;
}

/** A stanza that waits, and the duty to report that it has had its effect. */
interface Waiting {
  readonly stanza: Stanza;
  settle(): void;
}

/** The stanzas from one account to another, the oldest first. */
interface Pair {
  readonly waiting: Waiting[];
  attempts: number;
  cancel: CancelTimer;
}

/**
 * Subscription stanzas that a database failure has kept from their recipient's roster. Nobody sends
 * the end of a subscription again, as the sender's own roster has it already. They are tried again
 * later, and later stanzas between the same two accounts wait behind them.
 */
export class InboundRetries {
  readonly #deps: InboundRetriesDeps;
  readonly #pairs = new Map<string, Pair>();
  readonly #shares = new FairShares({ maxItems: MAX_WAITING });
  #isClosed = false;

  constructor(deps: InboundRetriesDeps) {
    this.#deps = deps;
  }

  /** True while an earlier stanza between the same accounts waits. */
  holdsBack({ from, to }: Stanza): boolean {
    return this.#pairs.size > 0 && this.#pairs.has(pairKey(from.text, to.text));
  }

  /**
   * Keeps a stanza that was not applied, and tries again later.
   * @param settle called when it has had its effect, or is given up
   * @returns false, and nothing has happened, when there is no room for it
   */
  add(stanza: Stanza, settle: () => void): boolean {
    const holders = holdersOf(stanza);
    if (this.#isClosed || !this.#shares.mayHold(holders, RETAINED_OVERHEAD_BYTES)) return false;
    this.#shares.hold(holders, RETAINED_OVERHEAD_BYTES);
    const waiting = {
      stanza: { ...stanza, bytes: stanza.bytes.slice() },
      settle: () => {
        this.#shares.release(holders, RETAINED_OVERHEAD_BYTES);
        settle();
      },
    };
    const key = pairKey(stanza.from.text, stanza.to.text);
    const pair = this.#pairs.get(key);
    if (pair !== undefined) pair.waiting.push(waiting);
    else {
      const added: Pair = { waiting: [waiting], attempts: 1, cancel: () => {} };
      this.#pairs.set(key, added);
      this.#tryLater(key, added);
    }
    return true;
  }

  /** Tries nothing again. What waits stays unsettled, so that its sender's node has it still. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#pairs.values()) cancel();
    this.#pairs.clear();
  }

  #tryLater(key: string, pair: Pair): void {
    const { to } = pair.waiting[0]!.stanza; // a pair has one
    pair.cancel = this.#deps.clock.after(backoffMs(pair.attempts, PAUSES), () => {
      this.#deps.run(to.text, () => this.#tryAgain(key, pair));
    });
  }

  async #tryAgain(key: string, pair: Pair): Promise<void> {
    for (let first = pair.waiting[0]; first !== undefined; first = pair.waiting[0]) {
      const isDone = await this.#deps.apply(first.stanza);
      if (this.#isClosed) return;
      if (!isDone && ++pair.attempts < MAX_ATTEMPTS) return this.#tryLater(key, pair);
      if (!isDone) this.#deps.gaveUp();
      pair.attempts = 0;
      pair.waiting.shift();
      first.settle();
    }
    this.#pairs.delete(key);
  }
}

function holdersOf({ from }: Stanza) {
  return { singles: [from.bare.text], crowds: [] };
}

function pairKey(from: string, to: string): string {
  return `${from} ${to}`; // no JID has a space in its first part
}
