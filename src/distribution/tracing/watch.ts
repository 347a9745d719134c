import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { FullJid } from "../../xmpp/mod.ts";
import type { TracedFields } from "../wire/mod.ts";

/** One step of one stanza, whichever trace it is told to. */
export type Step = Omit<TracedFields, "trace">;

/** The address that a trace follows at this node, within its rate. */
export class Watch {
  readonly jid: Jid;
  readonly #clock: Clock;
  readonly #maxPerSec: number;
  readonly #tell: (step: Step) => void;
  readonly #overran: (missed: number) => void;
  #left: number;
  /** Monotonic milliseconds since when `#left` counts. */
  #sinceMs: number;
  #missed = 0;
  /** The count of missed steps that `#overran` was called with last. */
  #reported = 0;
  /** Cancels the end of the watch. */
  cancelEnd: CancelTimer | undefined;

  constructor(
    jid: Jid,
    { clock, maxPerSec, tell, overran = () => {} }: {
      readonly clock: Clock;
      readonly maxPerSec: number;
      readonly tell: (step: Step) => void;
      /** Called when steps were missed in the second before. @param missed all so far */
      readonly overran?: ((missed: number) => void) | undefined;
    },
  ) {
    this.jid = jid;
    this.#clock = clock;
    this.#maxPerSec = this.#left = maxPerSec;
    this.#sinceMs = clock.monotonicMs();
    this.#tell = tell;
    this.#overran = overran;
  }

  /** Steps that were over the rate so far. */
  get missed(): number {
    return this.#missed;
  }

  /** True for the address itself; for a bare JID, for its resources too. */
  matches(jid: Jid): boolean {
    return (this.jid instanceof FullJid ? jid : jid.bare).text === this.jid.text;
  }

  /** Tells of a step. False when there have been too many in this second. */
  tell(step: Step): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#sinceMs >= 1_000) {
      if (this.#missed > this.#reported) this.#overran(this.#reported = this.#missed);
      this.#sinceMs = nowMs;
      this.#left = this.#maxPerSec;
    }
    if (this.#left === 0) {
      this.#missed++;
      return false;
    }
    this.#left--;
    this.#tell(step);
    return true;
  }
}
