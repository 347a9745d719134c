import type { Jid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";

/** Entities that one session may send presence to directly and have told of its end, by default. */
export const DEFAULT_MAX_DIRECTED_PRESENCE = 1_000;

/** What a session has told of its presence, and to whom. */
export class PresenceState {
  #last: Stanza | undefined;
  #priority: number | undefined;
  readonly #directed = new Map<string, Jid>();
  readonly #maxDirected: number;

  constructor(maxDirected: number) {
    this.#maxDirected = maxDirected;
  }

  get priority(): number | undefined {
    return this.#priority;
  }

  /** The last broadcast; undefined while not available. */
  get last(): Stanza | undefined {
    return this.#last;
  }

  /** Whom directed presence went to, and not its end. */
  get directed(): Jid[] {
    return [...this.#directed.values()];
  }

  /** Goes on from what a session had told at another node. */
  restore(
    { presence, priority, directed }: {
      readonly presence: Stanza | undefined;
      readonly priority: number | undefined;
      readonly directed: readonly Jid[];
    },
  ): void {
    this.#last = presence;
    this.#priority = priority;
    for (const jid of directed) this.#directed.set(jid.text, jid);
  }

  becomeAvailable(presence: Stanza, priority: number): void {
    this.#last = presence;
    this.#priority = priority;
  }

  /** Forgets everything; returns whom to tell of the end (RFC 6121 §4.6.3). */
  becomeUnavailable(): Jid[] {
    this.#last = undefined;
    this.#priority = undefined;
    const told = [...this.#directed.values()];
    this.#directed.clear();
    return told;
  }

  /** Remembers whom a directed presence went to (RFC 6121 §4.6); false when there is no more room. */
  direct(presence: Stanza): boolean {
    const to = presence.to.text;
    if (presence.type === "unavailable") {
      this.#directed.delete(to);
      return true;
    }
    if (this.#directed.size >= this.#maxDirected && !this.#directed.has(to)) return false;
    this.#directed.set(to, presence.to);
    return true;
  }
}
