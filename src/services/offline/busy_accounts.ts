import type { Clock } from "../../base/mod.ts";
import type { BareJid, Stanza } from "../../xmpp/mod.ts";

/** Milliseconds for which messages to an account wait for older ones. A slow store holds up no longer. */
const HOLD_MS = 2_000;

interface Busy {
  /** Pieces of work that have begun and not ended. */
  unfinished: number;
  /** Monotonic milliseconds until which new messages wait. */
  holdUntilMs: number;
}

/** Objects behind `BusyAccounts`. */
export interface BusyAccountsDeps {
  readonly clock: Clock;
  /** Nothing is written or delivered for the account any more. */
  rested(account: BareJid): void;
}

/**
 * Accounts whose messages are being written or delivered at this node. Messages that arrive for such
 * an account meanwhile wait behind these.
 */
export class BusyAccounts {
  readonly #deps: BusyAccountsDeps;
  readonly #accounts = new Map<string, Busy>();

  constructor(deps: BusyAccountsDeps) {
    this.#deps = deps;
  }

  /** Notes that work for an account begins. If it had none before, new messages wait from now on. */
  begin({ text }: BareJid): void {
    const busy = this.#accounts.get(text);
    if (busy !== undefined) busy.unfinished++;
    else this.#accounts.set(text, { unfinished: 1, holdUntilMs: this.#holdFromNow() });
  }

  /** Lets new messages to a busy account wait for the whole time again. */
  holdAnew({ text }: BareJid): void {
    const busy = this.#accounts.get(text);
    if (busy !== undefined) busy.holdUntilMs = this.#holdFromNow();
  }

  /** Notes that work ends which `begin` was told of. */
  end(account: BareJid): void {
    const busy = this.#accounts.get(account.text);
    if (busy === undefined || --busy.unfinished > 0) return;
    this.#accounts.delete(account.text);
    this.#deps.rested(account);
  }

  /** Returns true for a message that has to wait. Costs a comparison while no account is busy. */
  holds({ to, type }: Pick<Stanza, "to" | "type">): boolean {
    if (this.#accounts.size === 0 || (type !== "chat" && type !== "normal")) return false;
    const busy = this.#accounts.get(to.bare.text);
    return busy !== undefined && this.#deps.clock.monotonicMs() < busy.holdUntilMs;
  }

  #holdFromNow(): number {
    return this.#deps.clock.monotonicMs() + HOLD_MS;
  }
}
