import type { Clock } from "../../base/mod.ts";
import type { ArchiveHead, Reservation } from "./archive_head.ts";

/** Milliseconds that a writer waits for another one. They double with each attempt of the latter. */
const [PATIENCE_MS, MAX_PATIENCE_MS] = [2_000, 30_000];
/** Milliseconds between two looks at a head. */
const LOOK_AGAIN_MS = 20;
/** Milliseconds after which a writer waits no more, however many others come. */
const MAX_WAIT_MS = 60_000;

/** The waiting of one writer for others. It measures for itself how long each has kept it waiting. */
export class Patience {
  readonly #clock: Clock;
  readonly #sinceMs: number;
  readonly #seenMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** True when this writer has waited for too long altogether. */
  get isExhausted(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs > MAX_WAIT_MS;
  }

  /** Returns the writers of a head that have used up the patience, among those that begin up to `position`. */
  tooSlow({ open }: ArchiveHead, position: number): readonly string[] {
    return open.filter(({ from }) => from <= position).filter((each) => this.isOver(each))
      .map(({ token }) => token);
  }

  /** True once a writer has used up the patience. It begins with the first call. */
  isOver({ token, tries }: Reservation): boolean {
    const nowMs = this.#clock.monotonicMs();
    const seenMs = this.#seenMs.get(token) ?? nowMs;
    this.#seenMs.set(token, seenMs);
    return nowMs - seenMs >= Math.min(PATIENCE_MS * 2 ** tries, MAX_PATIENCE_MS);
  }

  /** Waits until it is worth looking again. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.after(LOOK_AGAIN_MS, resolve));
  }
}
