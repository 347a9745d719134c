import type { AdminEvent } from "../api/event_schemas.ts";

/** Events that are kept for those who come later. */
const MAX_KEPT = 500;

/** Numbers for the events of one millisecond. */
const IDS_PER_MS = 1_000;

/**
 * The last events of this process, and those who want to hear of new ones. Numbers begin with the
 * time of the start, so that a client who has events of a former process gets the new ones.
 */
export class EventLog {
  readonly #nowMs: () => number;
  readonly #kept: AdminEvent[] = [];
  readonly #listeners = new Set<(event: AdminEvent) => void>();
  #lastId: number;

  /** @param nowMs returns the wall time */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#lastId = Math.floor(nowMs()) * IDS_PER_MS;
  }

  /** The last events, newest first. */
  get newest(): readonly AdminEvent[] {
    return this.#kept.toReversed();
  }

  /**
   * Returns the kept events after the one with the number `id`, oldest first: all, when that is from
   * a former process whose clock was ahead.
   */
  since(id: number): readonly AdminEvent[] {
    if (id > this.#lastId) return [...this.#kept];
    return this.#kept.filter((event) => event.id > id);
  }

  /** Keeps an event, and tells those who listen. */
  add(event: Omit<AdminEvent, "id" | "at">): void {
    const whole = { id: ++this.#lastId, at: new Date(this.#nowMs()).toISOString(), ...event };
    this.#kept.push(whole);
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    for (const listener of this.#listeners) listener(whole);
  }

  /**
   * Calls `listener` for each event from now on.
   * @returns a function that ends this
   */
  listen(listener: (event: AdminEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
