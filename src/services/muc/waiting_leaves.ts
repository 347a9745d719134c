import type { Stanza } from "../../xmpp/mod.ts";

/** Presence and errors of one session that wait for their turn in one room. */
interface Waiting {
  /** Presence, and takeovers, that may give the session a seat. */
  joins: number;
  /** The leave, and the error of the session, that wait behind all joins: an object for each. */
  leave: object | undefined;
  error: object | undefined;
}

/**
 * Leaves, and errors of sessions that are gone, which wait for their turn. They always find a place, so
 * that no occupant stays behind. So there is at most one of each kind for a join that waits, or a seat.
 */
export class WaitingLeaves {
  readonly #waiting = new Map<string, Waiting>();

  /** Notes that presence, or a takeover, waits. Returns what is to be called once it is done. */
  joins(presence: Pick<Stanza, "from" | "to">): () => void {
    const key = keyOf(presence);
    const waiting = this.#of(key);
    waiting.joins++;
    waiting.leave = waiting.error = undefined; // those are for an earlier seat
    return () => {
      waiting.joins--;
      this.#forgetIdle(key, waiting);
    };
  }

  /**
   * Notes a leave or an error that waits. Returns what is to be called once its turn has come;
   * undefined when it changes nothing.
   * @param isSeated true while the session has a seat
   */
  ends(
    kind: "leave" | "error",
    stanza: Pick<Stanza, "from" | "to">,
    { isSeated }: { readonly isSeated: boolean },
  ): (() => void) | undefined {
    const key = keyOf(stanza);
    const known = this.#waiting.get(key);
    if (known === undefined && !isSeated) return undefined;
    if (known?.[kind] !== undefined) return undefined;
    const waiting = known ?? this.#of(key);
    const end = waiting[kind] = {};
    return () => {
      if (waiting[kind] === end) waiting[kind] = undefined; // else a later one waits
      this.#forgetIdle(key, waiting);
    };
  }

  #of(key: string): Waiting {
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, waiting = { joins: 0, leave: undefined, error: undefined });
    }
    return waiting;
  }

  #forgetIdle(key: string, waiting: Waiting): void {
    const isIdle = waiting.joins === 0 && waiting.leave === undefined &&
      waiting.error === undefined;
    if (isIdle && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
  }
}

function keyOf({ from, to }: Pick<Stanza, "from" | "to">): string {
  return `${to.bare.text} ${from.text}`;
}
