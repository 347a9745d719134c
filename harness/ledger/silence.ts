import type { Flow } from "./flow.ts";
import type { Span } from "./span.ts";

/** The longest time, in milliseconds, within `span` in which nothing of `flows` arrived. */
export function longestSilenceMs(flows: readonly Flow[], { fromMs, toMs }: Span): number {
  const arrivals: number[] = [];
  for (const flow of flows) {
    for (let seq = 0; seq < flow.sent; seq++) {
      const atMs = flow.arrivedAtMs(seq);
      if (flow.arrivals(seq) > 0 && atMs > fromMs && atMs < toMs) arrivals.push(atMs);
    }
  }
  let silenceMs = 0;
  let lastMs = fromMs;
  for (const atMs of [...arrivals.sort((one, other) => one - other), toMs]) {
    silenceMs = Math.max(silenceMs, atMs - lastMs);
    lastMs = atMs;
  }
  return silenceMs;
}
