import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";

/**
 * Default number of entities to which one session may send directed presence, and which learn of its
 * end.
 */
export const DEFAULT_MAX_DIRECTED_PRESENCE = 1_000;

/** Microseconds after its initial presence in which a session counts as new. */
const NEW_US = 10_000_000;

/** The presence that a session has sent, and its recipients. */
export class PresenceState {
  #last: Stanza | undefined;
  #priority: number | undefined;
  #toldAtUs = 0;
  #availableSinceUs: number | undefined;
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

  /** Wall-clock microseconds of the last presence that anybody was told, broadcast or directed. */
  get toldAtUs(): number {
    return this.#toldAtUs;
  }

  /** True while its initial presence is so young that some contacts may not have been told of it. */
  isNew(nowUs: number): boolean {
    return this.#availableSinceUs !== undefined && nowUs - this.#availableSinceUs < NEW_US;
  }

  /** Recipients of directed presence that have not been sent its end. */
  get directed(): Jid[] {
    return [...this.#directed.values()];
  }

  /** Continues from the presence that the session sent at another node, as of `nowUs`. */
  restore(
    { presence, priority, directed, isNewlyAvailable }: {
      readonly presence: Stanza | undefined;
      readonly priority: number | undefined;
      readonly directed: readonly Jid[];
      readonly isNewlyAvailable: boolean;
    },
    nowUs: number,
  ): void {
    this.#toldAtUs = nowUs;
    this.#last = presence === undefined ? undefined : { ...presence, sinceUs: nowUs };
    this.#priority = priority;
    this.#availableSinceUs = isNewlyAvailable ? nowUs : undefined;
    for (const jid of directed) this.#directed.set(jid.text, jid);
  }

  becomeAvailable(presence: Stanza, priority: number): void {
    if (this.#last === undefined) this.#availableSinceUs = presence.sinceUs;
    this.#last = presence;
    this.#toldAtUs = presence.sinceUs ?? 0;
    this.#priority = priority;
  }

  /** Forgets everything; returns the entities that must learn of the end (RFC 6121 §4.6.3). */
  becomeUnavailable(): Jid[] {
    this.#last = undefined;
    this.#availableSinceUs = undefined;
    this.#priority = undefined;
    const told = [...this.#directed.values()];
    this.#directed.clear();
    return told;
  }

  /**
   * Remembers the recipient of a directed presence (RFC 6121 §4.6), and the time.
   * @returns false when there is no more room
   */
  direct(presence: Stanza, nowUs: number): boolean {
    const to = presence.to.text;
    if (presence.type === "unavailable") {
      this.#directed.delete(to);
      return true;
    }
    if (this.#directed.size >= this.#maxDirected && !this.#directed.has(to)) return false;
    this.#directed.set(to, presence.to);
    this.#toldAtUs = nowUs;
    return true;
  }
}
