import type { Counter, Metrics } from "../../observe/mod.ts";

/** Help texts of the counters, by the middle of their names. */
const COUNTED = {
  created: "MUC Light rooms that were made at this node",
  destroyed: "MUC Light rooms that were removed at this node",
  changes: "Changes of occupants and configurations of rooms at this node",
  messages: "Messages that rooms took at this node",
  deliveries: "Messages and events that rooms at this node sent to occupants",
  refused: "Requests and messages that rooms at this node answered with an error",
  limited: "Messages and changes that were refused because their sender has sent too many",
  failures: "Requests and messages that failed because the database did",
} as const;

/** Counters of MUC Light rooms. */
export type RoomMetrics = Readonly<Record<keyof typeof COUNTED, Counter>>;

/** Declares the counters. */
export function roomMetrics(metrics: Metrics): RoomMetrics {
  const counters = Object.entries(COUNTED).map(([name, help]) => [
    name,
    metrics.counter({ name: `causeway_muc_light_${name}_total`, help }),
  ]);
  return Object.fromEntries(counters) as RoomMetrics; // the keys of that very object
}
