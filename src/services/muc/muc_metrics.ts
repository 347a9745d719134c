import type { Counter, Metrics } from "../../observe/mod.ts";

/** Help texts of the counters, by the middle of their names. */
const COUNTED = {
  created: "Multi-User Chat rooms that were made at this node",
  destroyed: "Multi-User Chat rooms that were removed at this node",
  joins: "Sessions of this node that entered a room",
  leaves: "Sessions of this node that left a room, for whatever reason",
  changes: "Changes of affiliations, roles and configurations that were made at this node",
  messages: "Messages that rooms took at this node",
  deliveries: "Messages and presence of rooms that were given to sessions of this node",
  refused: "Stanzas to rooms that this node answered with an error",
  limited: "Messages that were refused because their sender writes to rooms too often",
  failures: "Stanzas to rooms that failed, or had to wait, because the database did",
  withdrawn: "Occupants that were withdrawn because their node is gone",
  renamed: "Sessions of this node that lost a nickname to somebody who had it first",
  gaps: "Times that this node read messages that had not come over the links",
} as const;

/** Counters of Multi-User Chat rooms. */
export type MucMetrics = Readonly<Record<keyof typeof COUNTED, Counter>>;

/** Declares the counters. */
export function mucMetrics(metrics: Metrics): MucMetrics {
  const counters = Object.entries(COUNTED).map(([name, help]) => [
    name,
    metrics.counter({ name: `causeway_muc_${name}_total`, help }),
  ]);
  return Object.fromEntries(counters) as MucMetrics; // the keys of that very object
}
