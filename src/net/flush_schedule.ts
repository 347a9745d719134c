import { setImmediate } from "node:timers";

/** Something with bytes to write at the end of this event-loop turn. */
export interface Flushable {
  flush(): void;
}

let waiting: Flushable[] = [];
let flushing: Flushable[] = [];
let isScheduled = false;

/**
 * Flushes `target` once, at the end of this event-loop turn. One schedule serves all connections of
 * the process, so that a turn in which a thousand of them were written to costs one callback. The
 * caller makes sure that it is in the schedule once only.
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
