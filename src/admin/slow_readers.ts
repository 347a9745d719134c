import type { Clock } from "../base/mod.ts";

/**
 * Milliseconds of waiting for a reader after which its connection may make room. Waiting uses them
 * up, and each piece that is read gives `PATIENCE_PER_PIECE_MS` back. So nobody holds a place against
 * others by reading a little now and then.
 */
const PATIENCE_MS = 5_000;
const PATIENCE_PER_PIECE_MS = 1_000;

/**
 * An address with at least this part of all places, and twice as many as a newcomer's address would
 * have, gives one of its slow readers up to the newcomer.
 */
const CROWD_PART = 1 / 8;

interface Place {
  readonly address: string;
  patienceMs: number;
}

/**
 * Connections, and which of them makes room for another one by its slow reader. A connection is a
 * `Key`. The first choice is a slow reader of an address that holds far more places than the
 * newcomer's. The second choice is one of any address that has used up its patience: a reader of one
 * piece a second or more never does.
 */
export class SlowReaders<Key> {
  readonly #maxPlaces: number;
  readonly #clock: Clock;
  readonly #places = new Map<Key, Place>();
  readonly #counts = new Map<string, number>();
  /** Start of the wait, by connection with an unread piece. The longest wait comes first. */
  readonly #unread = new Map<Key, number>();

  constructor(maxPlaces: number, clock: Clock) {
    this.#maxPlaces = maxPlaces;
    this.#clock = clock;
  }

  /** Adds a connection. */
  enter(key: Key, address: string): void {
    this.#places.set(key, { address, patienceMs: PATIENCE_MS });
    this.#counts.set(address, this.#countOf(address) + 1);
  }

  /** Forgets a connection, if it is known. */
  leave(key: Key): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#unread.delete(key);
    const count = this.#countOf(place.address) - 1;
    if (count === 0) this.#counts.delete(place.address);
    else this.#counts.set(place.address, count);
  }

  /** Notes that the peer has yet to read a piece. */
  waitFor(key: Key): void {
    if (this.#places.has(key)) this.#unread.set(key, this.#clock.monotonicMs());
  }

  /** Notes that the peer has read the piece. */
  hasRead(key: Key): void {
    const sinceMs = this.#unread.get(key);
    const place = this.#places.get(key);
    if (sinceMs === undefined || place === undefined) return;
    this.#unread.delete(key);
    const leftMs = Math.max(0, place.patienceMs - (this.#clock.monotonicMs() - sinceMs));
    place.patienceMs = Math.min(PATIENCE_MS, leftMs + PATIENCE_PER_PIECE_MS);
  }

  /** Returns the connection that makes room for one from `newcomer`; undefined when none has to. */
  yielding(newcomer: string): Key | undefined {
    const crowd = Math.max(2 * (this.#countOf(newcomer) + 1), CROWD_PART * this.#maxPlaces);
    const nowMs = this.#clock.monotonicMs();
    let ofCrowd: Key | undefined;
    let mostPlaces = 0;
    let impatient: Key | undefined;
    for (const [key, sinceMs] of this.#unread) {
      const { address, patienceMs } = this.#places.get(key)!; // it leaves both at once
      const count = this.#countOf(address);
      if (count >= crowd && count > mostPlaces) {
        ofCrowd = key;
        mostPlaces = count;
      }
      if (nowMs - sinceMs >= patienceMs) impatient ??= key;
    }
    return ofCrowd ?? impatient;
  }

  #countOf(address: string): number {
    return this.#counts.get(address) ?? 0;
  }
}
