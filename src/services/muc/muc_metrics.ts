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
  limited: "Messages and changes that were refused because their sender has sent too many",
  failures: "Stanzas to rooms that failed, or had to wait, because the database did",
  withdrawn: "Occupants that were withdrawn because their node is gone",
  renamed: "Sessions of this node that lost a nickname to somebody who had it first",
  dropped:
    "Answers and errors of occupants that this node dropped: they concern nobody who is in the room",
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

/** Help texts of the gauges, by the ends of their names. */
const MEASURED = {
  pending: "Stanzas to Multi-User Chat rooms that wait for their turn",
  waiting_messages:
    "Messages of Multi-User Chat rooms that occupants have and the database has not",
  occupants: "Sessions at all nodes that are in Multi-User Chat rooms, once for each room",
  rooms: "Multi-User Chat rooms in which somebody is, at any node",
} as const;

/** Declares the gauges, which are read when somebody asks for them. */
export function declareGauges(
  metrics: Metrics,
  reads: Readonly<Record<keyof typeof MEASURED, () => number>>,
): void {
  const names = Object.keys(MEASURED) as (keyof typeof MEASURED)[]; // the keys of that very object
  for (const name of names) {
    metrics.gauge({ name: `causeway_muc_${name}`, help: MEASURED[name] }, reads[name]);
  }
}
