import type { AdminEvent } from "../api/event_schemas.ts";

/** Events that are kept for those who come later. */
const MAX_KEPT = 500;

/** The last events of this process, and those who want to hear of new ones. */
export class EventLog {
  readonly #nowMs: () => number;
  readonly #kept: AdminEvent[] = [];
  readonly #listeners = new Set<(event: AdminEvent) => void>();
  #lastId = 0;

  /** @param nowMs returns the wall time */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Number of the last event; 0 before there was one. */
  get lastId(): number {
    return this.#lastId;
  }

  /** The last events, newest first. */
  get newest(): readonly AdminEvent[] {
    return this.#kept.toReversed();
  }

  /** Returns the kept events after the one with the number `id`, oldest first. */
  since(id: number): readonly AdminEvent[] {
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
