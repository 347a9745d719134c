/** Cancels a pending timer; calling it again does nothing. */
export type CancelTimer = () => void;

/**
 * Time, passed in so that tests decide when things happen.
 *
 * Wall time is for stamps that leave the process, monotonic time for durations.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch; may jump. */
  wallMs(): number;
  /** Microseconds since the Unix epoch, a safe integer; may jump. */
  wallUs(): number;
  /** Milliseconds since an arbitrary start, with fractions; never goes back. */
  monotonicMs(): number;
  /**
   * Runs `callback` once, `delayMs` from now. The timer does not keep the process alive.
   * @returns a function that cancels it
   */
  after(delayMs: number, callback: () => void): CancelTimer;
}

/** The clock of the machine. */
export class SystemClock implements Clock {
  wallMs(): number {
    return Date.now();
  }

  wallUs(): number {
    return Math.round((performance.timeOrigin + performance.now()) * 1000);
  }

  monotonicMs(): number {
    return performance.now();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = setTimeout(callback, delayMs);
    Deno.unrefTimer(timer);
    return () => clearTimeout(timer);
  }
}
