import { setImmediate } from "node:timers";

/** An object with bytes to write at the end of this event-loop turn. */
export interface Flushable {
  flush(): void;
}

let waiting: Flushable[] = [];
let flushing: Flushable[] = [];
let isScheduled = false;

/**
 * Flushes `target` once, at the end of this event-loop turn. One schedule serves all connections of the
 * process, so that a turn that writes to a thousand of them costs one callback. The caller schedules a
 * target at most once a turn.
 */
export function scheduleFlush(target: Flushable): void {
  waiting.push(target);
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(flushAll);
}

function flushAll(): void {
  isScheduled = false;
  const batch = waiting;
  waiting = flushing;
  flushing = batch;
  for (let i = 0; i < batch.length; i++) batch[i]!.flush();
  batch.length = 0;
}
