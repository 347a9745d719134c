import type { ReportRow } from "../bench_format.ts";
import { round, showLatency, showSpread, spreadOf } from "../bench_format.ts";
import type { LoginFigures, LoginSample } from "./login_measurement.ts";
import type { RoundTrips } from "./people_cluster.ts";
import type { RosterFigures } from "./roster_measurement.ts";
import type { StormFigures } from "./storm_measurement.ts";

/** Figures of rosters and logins. What was left out is undefined. */
export interface PeopleFigures {
  readonly roster: RosterFigures | undefined;
  readonly login: LoginFigures | undefined;
  readonly storm: StormFigures | undefined;
}

/** Floors of rosters and logins. Times belong to a machine with two cores and nothing else to do. */
export const PEOPLE_FLOORS = {
  /** Roster gets, to statements through the driver alone. */
  rosterRatio: 0.6,
  /** Milliseconds from the resource until the presence of all contacts. */
  presenceMs: 300,
  /** Round trips of the roster and of presence, after the resource is bound. */
  databaseRoundTrips: 2,
  /** To the Redis of the client's datacenter, of the whole login. */
  redisRoundTrips: 4,
  /** p99 of chats while many log in, to p99 before. */
  stormP99Ratio: 2,
  /** Memory after all have left, to memory before. */
  stormMemoryRatio: 1.25,
} as const;

/** Returns the floors that are missed, each in words. */
export function missedByPeople({ roster, login, storm }: PeopleFigures): string[] {
  return [
    ...(roster === undefined ? [] : missedByRoster(roster)),
    ...(login === undefined ? [] : missedByLogin(login)),
    ...(storm === undefined ? [] : missedByStorm(storm)),
  ];
}

export function peopleRows({ roster, login, storm }: PeopleFigures): ReportRow[] {
  return [
    ...(roster === undefined ? [] : rosterRows(roster)),
    ...(login === undefined ? [] : loginRows(login)),
    ...(storm === undefined ? [] : stormRows(storm)),
  ];
}

/** Each get is compared with the statements of its own run: the machine may change between runs. */
function rosterRatio({ getsPerSecond, statementsPerSecond }: RosterFigures): number {
  return spreadOf(getsPerSecond.map((gets, run) => gets / statementsPerSecond[run]!)).median;
}

function missedByRoster(figures: RosterFigures): string[] {
  const ratio = rosterRatio(figures);
  if (ratio >= PEOPLE_FLOORS.rosterRatio) return [];
  return [`roster gets at ${round(ratio * 100)} % of the bare driver's rate, floor 60 %`];
}

function rosterRows(figures: RosterFigures): ReportRow[] {
  return [
    [
      `roster gets/s, ${figures.contacts} contacts, PostgreSQL`,
      `${showSpread(spreadOf(figures.getsPerSecond), 0)}, ` +
      `${round(rosterRatio(figures) * 100)} % of the bare driver`,
    ],
    ["the same statement/s, bare driver", showSpread(spreadOf(figures.statementsPerSecond), 0)],
    ["CPU µs per roster get, node", round(figures.cpuUsPerGet)],
  ];
}

function trips(
  { samples }: LoginFigures,
  part: keyof LoginSample["roundTrips"],
  server: keyof RoundTrips,
) {
  return spreadOf(samples.map(({ roundTrips }) => roundTrips[part][server]));
}

/**
 * Round trips to a Redis, of the whole login. Nodes that stand idle ask Redis several times a second,
 * for leases and changes; as many are taken off as they would have made in the same time.
 */
function redisTrips({ samples }: LoginFigures, server: "redis" | "otherRedis") {
  return spreadOf(
    samples.map(({ roundTrips: { toBind, toPresence }, idle, bindMs, presenceMs }) => {
      const meanwhile = idle[server] * (bindMs + presenceMs) / 1000;
      return Math.max(0, Math.round(toBind[server] + toPresence[server] - meanwhile));
    }),
  );
}

function missedByLogin(figures: LoginFigures): string[] {
  const { presenceMs, databaseRoundTrips, redisRoundTrips } = PEOPLE_FLOORS;
  const took = spreadOf(figures.samples.map((each) => each.presenceMs)).median;
  const database = trips(figures, "toPresence", "database").median;
  const redis = redisTrips(figures, "redis").median;
  return [
    ...(took > presenceMs ? [`presence after ${round(took)} ms, limit ${presenceMs} ms`] : []),
    ...(database > databaseRoundTrips
      ? [`${round(database)} database round trips to presence, limit ${databaseRoundTrips}`]
      : []),
    ...(redis > redisRoundTrips
      ? [`${round(redis)} Redis round trips of a login, limit ${redisRoundTrips}`]
      : []),
  ];
}

function loginRows(figures: LoginFigures): ReportRow[] {
  const { contacts, online, samples } = figures;
  const ms = (pick: (sample: LoginSample) => number) =>
    `${showSpread(spreadOf(samples.map(pick)), 0)} ms`;
  const database = (part: keyof LoginSample["roundTrips"]) =>
    showSpread(trips(figures, part, "database"), 0);
  return [
    ["login until the resource is bound", ms((each) => each.bindMs)],
    [`roster, and presence of ${online} of ${contacts} contacts`, ms((each) => each.presenceMs)],
    ["database round trips until bound", database("toBind")],
    ["database round trips from there to presence", database("toPresence")],
    ["database round trips in the second after that", database("afterwards")],
    ["Redis round trips of the login, here", showSpread(redisTrips(figures, "redis"), 0)],
    [
      "Redis round trips meanwhile, other datacenter",
      showSpread(redisTrips(figures, "otherRedis"), 0),
    ],
  ];
}

function stormP99Ratio({ latencyMeanwhile, latencyBefore }: StormFigures): number {
  return latencyMeanwhile.p99Us / latencyBefore.p99Us;
}

/** As above, for chats that the node of the logins has no part in: only the machine slows them. */
function machineP99Ratio({ elsewhereMeanwhile, elsewhereBefore }: StormFigures): number {
  return elsewhereMeanwhile.p99Us / elsewhereBefore.p99Us;
}

function missedByStorm(figures: StormFigures): string[] {
  const { stormP99Ratio: limit, stormMemoryRatio } = PEOPLE_FLOORS;
  const ratio = stormP99Ratio(figures);
  const { before, after } = figures.memory;
  return [
    ...(figures.refused > 0 ? [`${round(figures.refused)} logins refused, and made again`] : []),
    ...Object.entries(figures.overflows).map(([name, count]) => `${name} grew by ${round(count)}`),
    ...(ratio > limit ? [`p99 of chats ${round(ratio, 1)} times as high while many log in`] : []),
    ...(after > stormMemoryRatio * before
      ? [`memory ${round(after / before, 2)} times as high after many logins`]
      : []),
  ];
}

function stormRows(figures: StormFigures): ReportRow[] {
  const { logins, sessionRate, contacts, memory, overflows } = figures;
  const megabytes = [memory.before, memory.loggedIn, memory.after]
    .map((bytes) => round(bytes / 1e6)).join(" / ");
  const found = Object.entries(overflows).map(([name, count]) => `${name} ${round(count)}`);
  return [
    [`logins/s, ${round(logins)} with ${contacts} contacts each`, round(figures.loginsPerSecond)],
    ["limits.session_rate_per_node", sessionRate === 0 ? "none" : String(sessionRate)],
    ["logins refused, and made again", round(figures.refused)],
    ["all have all presence after", `${round(figures.presenceSeconds, 1)} s`],
    ["most requests seen waiting for the database", round(figures.mostWaiting)],
    ["queues beyond their bound, failures", found.length === 0 ? "none" : found.join(", ")],
    ["memory in use before / logged in / after", `${megabytes} MB`],
    ["latency of chats before", showLatency(figures.latencyBefore)],
    ["latency of chats meanwhile", showLatency(figures.latencyMeanwhile)],
    ["p99 meanwhile to p99 before", round(stormP99Ratio(figures), 2)],
    ["latency of chats elsewhere before", showLatency(figures.elsewhereBefore)],
    ["latency of chats elsewhere meanwhile", showLatency(figures.elsewhereMeanwhile)],
    ["their p99 meanwhile to before", round(machineP99Ratio(figures), 2)],
  ];
}
