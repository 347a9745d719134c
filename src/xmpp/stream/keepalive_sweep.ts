import type { CancelTimer, Clock } from "../../base/mod.ts";

/** A stream that must be kept alive. */
interface Sleeper {
  keepAlive(): void;
}

/**
 * Calls `keepAlive` of all streams of a listener once in an interval, until the returned function is
 * called. One timer serves all: a timer for each would cost more than the stream it watches.
 */
export function sweepKeepalive(
  clock: Clock,
  intervalMs: number,
  streams: Iterable<Sleeper>,
): CancelTimer {
  let cancel = clock.after(intervalMs, sweep);
  function sweep(): void {
    for (const stream of streams) stream.keepAlive();
    cancel = clock.after(intervalMs, sweep);
  }
  return () => cancel();
}
