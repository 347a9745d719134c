import type { Overview, Rate } from "./api_types.ts";

/** Points of the chart: seconds since 1970, and rates over all datacenters. */
export interface TrafficHistory {
  readonly times: readonly number[];
  readonly sent: readonly number[];
  readonly received: readonly number[];
}

export const NO_TRAFFIC: Rate = { sentPerSec: 0, receivedPerSec: 0 };
export const EMPTY_HISTORY: TrafficHistory = { times: [], sent: [], received: [] };

/** Points that the chart keeps: ten minutes at two seconds each. */
export const MAX_POINTS = 300;

/** Adds one overview to the history, and drops the oldest points. */
export function appendHistory(history: TrafficHistory, overview: Overview): TrafficHistory {
  const { at, sentPerSec, receivedPerSec } = overview;
  const add = (values: readonly number[], value: number) => [...values, value].slice(-MAX_POINTS);
  return {
    times: add(history.times, Date.parse(at) / 1000),
    sent: add(history.sent, sentPerSec),
    received: add(history.received, receivedPerSec),
  };
}
