import { clearTimeout, setImmediate, setTimeout } from "node:timers";

/** An object with bytes to write, now or a little later. */
export interface Flushable {
  flush(): void;
}

/**
 * Milliseconds between two writes of bytes that may wait. They wait at most so long, while the
 * event loop has time.
 */
export const LATE_FLUSH_MS = 50;
/** Milliseconds of late flushes in one turn, without the last: many at once would hold up the rest. */
const LATE_SLICE_MS = 1;

let waiting: Flushing[] = [];
let flushing: Flushing[] = [];
let isScheduled = false;

/** Targets that wait, in the order in which their time comes, with the first millisecond of it. */
const late = new Map<Flushing, number>();
let lateTimer: ReturnType<typeof setTimeout> | undefined;
let isLateTurnExpected = false;

/**
 * Schedules the flushes of one connection. One schedule serves all connections of the process, so that
 * a turn that writes to a thousand of them costs one callback.
 */
export class Flushing {
  readonly #target: Flushable;
  #isSoon = false;
  #isLate = false;
  /** Monotonic milliseconds of the last flush of bytes that might have waited. */
  #lastLateMs = -Infinity;

  constructor(target: Flushable) {
    this.#target = target;
  }

  /** True when the target is flushed at the end of this event-loop turn. */
  get isSoon(): boolean {
    return this.#isSoon;
  }

  /** True when the target is flushed late, unless it is flushed before. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Flushes the target at the end of this event-loop turn. */
  soon(): void {
    if (this.#isSoon) return;
    this.#isSoon = true;
    waiting.push(this);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flushAll);
  }

  /**
   * Does as `soon`, unless the last bytes that might have waited left less than `LATE_FLUSH_MS` ago:
   * then it waits for as long, so that a connection which gets many of them, one by one, takes few
   * writes.
   */
  late(): void {
    if (this.#isSoon || this.#isLate) return;
    const nowMs = performance.now();
    if (nowMs - this.#lastLateMs >= LATE_FLUSH_MS) {
      this.#lastLateMs = nowMs;
      return this.soon();
    }
    this.#isLate = true;
    late.set(this, nowMs + LATE_FLUSH_MS);
    if (!isLateTurnExpected) lateTimer ??= setTimeout(flushLate, LATE_FLUSH_MS);
  }

  /** Tells that nothing is to be written any more. */
  cancel(): void {
    if (!this.#isLate) return;
    this.#isLate = false;
    late.delete(this);
    if (late.size > 0) return;
    clearTimeout(lateTimer);
    lateTimer = undefined;
  }

  /** Called by the schedule. */
  begin(isLate: boolean): void {
    if (isLate) this.#lastLateMs = performance.now();
    this.cancel();
    this.#isSoon = false;
    this.#target.flush();
  }
}

function flushAll(): void {
  isScheduled = false;
  const batch = waiting;
  waiting = flushing;
  flushing = batch;
  for (let i = 0; i < batch.length; i++) batch[i]!.begin(false);
  batch.length = 0;
}

function flushLate(): void {
  lateTimer = undefined;
  isLateTurnExpected = false;
  const nowMs = performance.now();
  for (const [each, fromMs] of late) {
    if (fromMs > nowMs) {
      lateTimer = setTimeout(flushLate, Math.ceil(fromMs - nowMs));
      return;
    }
    if (performance.now() - nowMs >= LATE_SLICE_MS) {
      isLateTurnExpected = true;
      setImmediate(flushLate);
      return;
    }
    each.begin(true);
  }
}
