import type { CancelTimer, Clock } from "./clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is moved, for tests and for the simulation. */
export class ManualClock implements Clock {
  #nowMs = 0;
  #wallOffsetMs: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startWallMs = 1_700_000_000_000) {
    this.#wallOffsetMs = startWallMs;
  }

  wallMs(): number {
    return Math.floor(this.#wallOffsetMs + this.#nowMs);
  }

  wallUs(): number {
    return Math.round((this.#wallOffsetMs + this.#nowMs) * 1000);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that have not run and were not cancelled. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves both times forward and runs the timers that fall due, earliest first. */
  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      let next: Timer | undefined;
      for (const timer of this.#timers) {
        if (timer.dueMs > endMs) continue;
        if (
          next === undefined || timer.dueMs < next.dueMs ||
          (timer.dueMs === next.dueMs && timer.order < next.order)
        ) next = timer;
      }
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
    this.#nowMs = endMs;
  }

  /** As `advance`, but lets promise callbacks run between timers. */
  async advanceAsync(byMs: number, stepMs = 1): Promise<void> {
    for (let moved = 0; moved < byMs; moved += stepMs) {
      this.advance(Math.min(stepMs, byMs - moved));
      for (let i = 0; i < 8; i++) await Promise.resolve();
    }
  }

  /** Jumps the wall clock alone, as an operator or NTP would. */
  shiftWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }
}
