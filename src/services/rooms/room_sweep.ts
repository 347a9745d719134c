import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { RoomOutbox } from "../../storage/mod.ts";

/** Rooms of each kind that one step looks at. */
const STEP_ROOMS = 500;
/** Longest pause between two steps in milliseconds. */
const MAX_PAUSE_MS = 1_000;

/** Objects behind a sweep. */
export interface RoomSweepDeps {
  /** One for each kind of rooms. */
  readonly outboxes: readonly Pick<RoomOutbox, "overdue">[];
  /** Milliseconds in which a message without an owner is found, where rooms are not too many. */
  readonly withinMs: number;
  /** Called with each room whose archive has lacked a message for long. */
  found(room: string): void;
  /** False while nothing that is found could be archived. */
  isUseful(): boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The way of a sweep through the rooms of one kind. */
interface Way {
  readonly outbox: Pick<RoomOutbox, "overdue">;
  /** Room behind which the next step begins; undefined at the beginning. */
  after: string | undefined;
  isOver: boolean;
}

/**
 * Looks through all rooms for messages that their archives have lacked for long: the nodes that took
 * them have died, or had too much to do. Every node does so, in small steps. It finds a message within
 * `withinMs`, unless there are more rooms of a kind than its steps look at in half of that time.
 */
export class RoomSweep {
  readonly #deps: RoomSweepDeps;
  readonly #ways: readonly Way[];
  #cancel: CancelTimer | undefined;
  #step: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(deps: RoomSweepDeps) {
    this.#deps = deps;
    this.#ways = deps.outboxes.map((outbox) => ({ outbox, after: undefined, isOver: false }));
  }

  start(): void {
    this.#later(this.#restMs);
  }

  /** Ends the step that is under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#step;
  }

  /** Milliseconds between two sweeps. */
  get #restMs(): number {
    return this.#deps.withinMs / 3;
  }

  #later(waitMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#deps.clock.after(waitMs, () => {
      this.#step = this.#look().then((waitMs) => this.#later(waitMs));
    });
  }

  /** Looks at some rooms. Resolves to the milliseconds until the next step; never rejects. */
  async #look(): Promise<number> {
    const { withinMs, isUseful, logger } = this.#deps;
    if (!isUseful()) return this.#restMs;
    try {
      for (const way of this.#ways) if (!way.isOver) await this.#lookAlong(way);
    } catch (thrown) {
      logger.debug("room-archive.not-swept", { error: describeError(thrown) });
      return this.#restMs;
    }
    if (this.#ways.some(({ isOver }) => !isOver)) return Math.min(MAX_PAUSE_MS, withinMs / 60);
    for (const way of this.#ways) way.isOver = false;
    return this.#restMs;
  }

  async #lookAlong(way: Way): Promise<void> {
    const { withinMs, found, clock } = this.#deps;
    const { after } = way;
    const { rooms, next } = await way.outbox.overdue({
      limit: STEP_ROOMS,
      // Younger messages are on their way.
      sentBeforeMs: clock.wallMs() - withinMs / 6,
      ...after !== undefined && { after },
    });
    for (const room of rooms) found(room);
    way.after = next;
    way.isOver = next === undefined;
  }
}
