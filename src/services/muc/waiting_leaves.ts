import type { Stanza } from "../../xmpp/mod.ts";

/** What waits for its turn of one session in one room. */
interface Waiting {
  /** Presence that may give the session a seat. */
  joins: number;
  /** A leave, and an error of the session, each behind all joins. */
  hasLeave: boolean;
  hasError: boolean;
}

/**
 * Leaves, and errors of sessions that are gone, which wait for their turn. They always find a place, so
 * that no occupant stays behind. So there is at most one of each kind for a join that waits, or a seat.
 */
export class WaitingLeaves {
  readonly #waiting = new Map<string, Waiting>();

  /** Notes that presence waits. Returns what is to be called once it is done. */
  joins(presence: Pick<Stanza, "from" | "to">): () => void {
    const key = keyOf(presence);
    const waiting = this.#of(key);
    waiting.joins++;
    waiting.hasLeave = waiting.hasError = false; // those are for an earlier seat
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
    const mark = kind === "leave" ? "hasLeave" : "hasError";
    if (known?.[mark] === true) return undefined;
    const waiting = known ?? this.#of(key);
    waiting[mark] = true;
    return () => {
      waiting[mark] = false;
      this.#forgetIdle(key, waiting);
    };
  }

  #of(key: string): Waiting {
    let waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, waiting = { joins: 0, hasLeave: false, hasError: false });
    }
    return waiting;
  }

  #forgetIdle(key: string, { joins, hasLeave, hasError }: Waiting): void {
    if (joins === 0 && !hasLeave && !hasError) this.#waiting.delete(key);
  }
}

function keyOf({ from, to }: Pick<Stanza, "from" | "to">): string {
  return `${to.bare.text} ${from.text}`;
}
