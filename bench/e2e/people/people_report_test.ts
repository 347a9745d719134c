import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { LoginFigures } from "./login_measurement.ts";
import { missedByPeople, peopleRows } from "./people_report.ts";
import type { RosterFigures } from "./roster_measurement.ts";
import type { StormFigures } from "./storm_measurement.ts";

const NOTHING = { roster: undefined, login: undefined, storm: undefined };
const LATENCY = { count: 10, p50Us: 400, p99Us: 900, p999Us: 1200, maxUs: 20_000 };

/** Figures that keep each floor, just. */
const ROSTER: RosterFigures = {
  contacts: 100,
  getsPerSecond: [300, 600, 1_200],
  statementsPerSecond: [500, 1_000, 2_000],
  cpuUsPerGet: 500,
};
const LOGIN: LoginFigures = {
  contacts: 500,
  online: 50,
  samples: [290, 300, 400].map((presenceMs) => ({
    bindMs: 20,
    presenceMs,
    roundTrips: {
      toBind: { database: 9, redis: 3, otherRedis: 9 },
      toPresence: { database: 2, redis: 1, otherRedis: 9 },
      afterwards: { database: 9, redis: 9, otherRedis: 9 },
    },
    idle: { database: 9, redis: 0, otherRedis: 9 },
  })),
};
const STORM: StormFigures = {
  logins: 10_000,
  sessionRate: 0,
  contacts: 50,
  loginsPerSecond: 500,
  presenceSeconds: 25,
  refused: 0,
  overflows: {},
  mostWaiting: 90,
  memory: { before: 100e6, loggedIn: 300e6, after: 125e6 },
  latencyBefore: LATENCY,
  latencyMeanwhile: { ...LATENCY, p99Us: 1_800 },
  elsewhereBefore: LATENCY,
  elsewhereMeanwhile: { ...LATENCY, p99Us: 1_350 },
};

Deno.test("missedByPeople() keeps every floor at its limit", () => {
  deepStrictEqual(missedByPeople({ roster: ROSTER, login: LOGIN, storm: STORM }), []);
});

Deno.test("missedByPeople() misses nothing of what was not measured", () => {
  deepStrictEqual(missedByPeople(NOTHING), []);
  deepStrictEqual(peopleRows(NOTHING), []);
});

Deno.test("missedByPeople() compares each roster get with the statements of its own run", () => {
  const roster = { ...ROSTER, getsPerSecond: [299, 599, 1_200] };
  deepStrictEqual(missedByPeople({ ...NOTHING, roster }), [
    "roster gets at 60 % of the bare driver's rate, floor 60 %",
  ]);
});

Deno.test("missedByPeople() misses each floor of a login, by the median", () => {
  const worse = (change: Partial<LoginFigures["samples"][0]>) => ({
    ...LOGIN,
    samples: LOGIN.samples.map((each) => ({ ...each, ...change })),
  });
  const tripsOf = (database: number, redis: number) => ({
    roundTrips: { ...LOGIN.samples[0]!.roundTrips, toPresence: { database, redis, otherRedis: 0 } },
  });
  for (const change of [{ presenceMs: 301 }, tripsOf(3, 1), tripsOf(2, 2)]) {
    const missed = missedByPeople({ ...NOTHING, login: worse(change) });
    strictEqual(missed.length, 1, JSON.stringify(change));
  }
});

Deno.test("missedByPeople() takes off the round trips that idle nodes make", () => {
  // 300 ms of ten a second are three.
  const samples = LOGIN.samples.map((each) => ({
    ...each,
    bindMs: 100,
    presenceMs: 200,
    roundTrips: { ...each.roundTrips, toBind: { database: 3, redis: 6, otherRedis: 0 } },
    idle: { database: 0, redis: 10, otherRedis: 0 },
  }));
  deepStrictEqual(missedByPeople({ ...NOTHING, login: { ...LOGIN, samples } }), []);
});

Deno.test("missedByPeople() misses each floor of the storm", () => {
  for (
    const worse of [
      { refused: 1 },
      { overflows: { causeway_storage_failures_total: 1 } },
      { latencyMeanwhile: { ...LATENCY, p99Us: 1_801 } },
      { memory: { ...STORM.memory, after: 126e6 } },
    ]
  ) {
    const missed = missedByPeople({ ...NOTHING, storm: { ...STORM, ...worse } });
    strictEqual(missed.length, 1, JSON.stringify(worse));
  }
});

Deno.test("peopleRows() shows what was measured", () => {
  const rows = peopleRows({ roster: ROSTER, login: LOGIN, storm: STORM });
  const text = rows.map((row) => row.join(" | ")).join("\n");
  match(text, /roster gets.* \| 600 \(300 – 1 200\), 60 % of the bare driver/);
  match(text, /presence of 50 of 500 contacts \| 300 \(290 – 400\) ms/);
  match(text, /database round trips from there to presence \| 2 \(2 – 2\)/);
  match(text, /Redis round trips of the login, here \| 4 \(4 – 4\)/);
  match(text, /10 000 with 50 contacts each \| 500/);
  match(text, /100 \/ 300 \/ 125 MB/);
  match(text, /p99 meanwhile to p99 before \| 2\.00\n/);
  match(text, /their p99 meanwhile to before \| 1\.50$/);
});
