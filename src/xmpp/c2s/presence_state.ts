import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";

/**
 * Default number of entities to which one session may send directed presence, and which learn of its
 * end.
 */
export const DEFAULT_MAX_DIRECTED_PRESENCE = 1_000;

/** Bytes of directed presence that a session keeps, to send it again. */
const MAX_KEPT_BYTES = 16_384;

/** Microseconds after its initial presence in which a session counts as new. */
const NEW_US = 10_000_000;

/** A recipient of directed presence. */
export interface DirectedPresence {
  readonly to: Jid;
  /**
   * The last one that was sent; undefined when it was not kept: it went to another domain or from another
   * node, or there was no room.
   */
  readonly presence: Stanza | undefined;
}

/** The presence that a session has sent, and its recipients. */
export class PresenceState {
  #last: Stanza | undefined;
  #priority: number | undefined;
  #toldAtUs = 0;
  #availableSinceUs: number | undefined;
  readonly #directed = new Map<string, DirectedPresence>();
  #keptBytes = 0;
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
    return Array.from(this.#directed.values(), ({ to }) => to);
  }

  /** Returns the directed presence for an account and its resources that has not ended. */
  directedTo(account: Jid): readonly DirectedPresence[] {
    return [...this.#directed.values()].filter(({ to }) => to.bare.text === account.text);
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
    for (const to of directed) this.#directed.set(to.text, { to, presence: undefined });
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
    const told = this.directed;
    this.#directed.clear();
    this.#keptBytes = 0;
    return told;
  }

  /**
   * Remembers the recipient of a directed presence (RFC 6121 §4.6), and the time.
   * @returns false when there is no more room
   */
  direct(presence: Stanza, nowUs: number): boolean {
    const { to, from, bytes } = presence;
    const isEnd = presence.type === "unavailable";
    const known = this.#directed.get(to.text);
    if (!isEnd && known === undefined && this.#directed.size >= this.#maxDirected) return false;
    this.#keptBytes -= known?.presence?.bytes.length ?? 0;
    if (isEnd) {
      this.#directed.delete(to.text);
      return true;
    }
    // Rooms and services at other domains take nothing again.
    const isKept = to.domainpart === from.domainpart &&
      this.#keptBytes + bytes.length <= MAX_KEPT_BYTES;
    if (isKept) this.#keptBytes += bytes.length;
    this.#directed.set(to.text, {
      to,
      presence: isKept ? { ...presence, bytes: bytes.slice(), sinceUs: nowUs } : undefined,
    });
    this.#toldAtUs = nowUs;
    return true;
  }
}
