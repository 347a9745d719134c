import type { Clock } from "../../base/mod.ts";

/** Nicknames that are remembered at most, in all rooms. */
const MAX_NICKS = 20_000;

/**
 * Nicknames that nobody has any longer, for a moment. A session that comes from another node is told of
 * them: its old node may have shown it somebody, and not have heard that they had left.
 */
export class GoneNicks {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Monotonic milliseconds when they went, by room and nickname. Those that went last are last. */
  readonly #rooms = new Map<string, Map<string, number>>();
  #size = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Notes that nobody has a nickname any longer. */
  note(room: string, nick: string): void {
    const nicks = this.#rooms.get(room) ?? new Map<string, number>();
    this.#rooms.delete(room);
    this.#rooms.set(room, nicks);
    if (nicks.delete(nick)) this.#size--;
    nicks.set(nick, this.#clock.monotonicMs());
    this.#size++;
    if (this.#size > MAX_NICKS) this.#forgetOldest();
  }

  /** Returns the nicknames that went from a room. Somebody may have taken one since. */
  in(room: string): Iterable<string> {
    return this.#rooms.get(room)?.keys() ?? [];
  }

  /** Forgets the nicknames that went before some monotonic time in milliseconds. */
  forgetBefore(ms: number): void {
    for (const [room, nicks] of this.#rooms) {
      for (const [nick, goneMs] of nicks) {
        if (goneMs >= ms) break;
        this.#forget(room, nicks, nick);
      }
    }
  }

  /** Forgets a nickname of the room from which none has gone for longest. */
  #forgetOldest(): void {
    for (const [room, nicks] of this.#rooms) {
      const [nick] = nicks.keys();
      return this.#forget(room, nicks, nick!); // a room without any is not kept
    }
  }

  #forget(room: string, nicks: Map<string, number>, nick: string): void {
    nicks.delete(nick);
    this.#size--;
    if (nicks.size === 0) this.#rooms.delete(room);
  }
}
