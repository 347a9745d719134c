import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { spreadOf } from "./bench_format.ts";
import type { BenchFigures } from "./bench_report.ts";
import { formatReport, summarize } from "./bench_report.ts";
import type { MessageFigures, RunFigures } from "./message_report.ts";

const LATENCY = { count: 10, p50Us: 400, p99Us: 900, p999Us: 1200, maxUs: 20_000 };

function run(messagesPerSecond: number, cpuUs: readonly [number, number]): RunFigures {
  return {
    messagesPerSecond,
    nodes: [
      { node: "node1@dc1", role: "source", cpuUsPerMessage: cpuUs[0], residentBytes: 1e8 },
      { node: "node1@dc2", role: "destination", cpuUsPerMessage: cpuUs[1], residentBytes: 2e8 },
      { node: "node1@dc3", role: "bystander", cpuUsPerMessage: 99, residentBytes: 5e7 },
    ],
    loadCpuUsPerMessage: 2,
    latency: LATENCY,
  };
}

function figures(
  full: readonly RunFigures[],
): BenchFigures & { readonly messages: MessageFigures } {
  return {
    context: {
      date: "2026-01-02",
      command: "deno task bench:e2e",
      commit: "abcdef0",
      cores: 2,
      processor: "Processor",
      load: [[0.5, 0.25, 0.125], [2, 1, 0.5]],
      pauses: { cores: 2, seconds: 2, count: 1, longestMs: 1.5 },
      versions: { deno: "2.9.6" },
    },
    options: {
      rows: new Set(["messages"]),
      datacenters: 3,
      pairs: 10,
      inFlight: 32,
      direction: "one-way",
      messageBytes: 300,
      runs: full.length,
      seconds: 5,
      warmUpSeconds: 5,
      pacePerSecond: 2000,
      sessions: 0,
      logins: 2,
      sessionRate: 0,
      databases: [],
      entries: 0,
      hasSearch: false,
      hasRemovals: false,
      tracedRatio: 0,
      json: undefined,
      check: false,
    },
    messages: {
      full,
      paced: run(2000, [20, 20]),
      withCarbons: full.map((each) => ({
        ...each,
        messagesPerSecond: each.messagesPerSecond / 2,
      })),
      baseline: {
        framesPerSecond: 2_000_000,
        senderCpuUsPerFrame: 0.2,
        receiverCpuUsPerFrame: 0.3,
        latency: { ...LATENCY, p50Us: 100 },
      },
    },
    table: undefined,
    roster: undefined,
    login: undefined,
    storm: undefined,
    archives: [],
    archivedMessages: undefined,
    slowDatabase: undefined,
  };
}

/** A table that keeps each floor, just. */
const TABLE = {
  sessions: 100_000,
  loginsPerSecond: 10_000,
  cachedLookupsPerSecond: 2_000_000,
  uncachedLookupsPerSecond: 100_000,
  renewalShareOfCore: 0.049,
  transferSeconds: 9.9,
  latencyMeanwhile: { ...LATENCY, p99Us: 1_799 },
  latencyIdle: LATENCY,
};

Deno.test("spreadOf() takes the middle of an odd number and the mean of the two of an even one", () => {
  deepStrictEqual(spreadOf([3, 1, 2]), { median: 2, min: 1, max: 3 });
  deepStrictEqual(spreadOf([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4 });
});

Deno.test("summarize() keeps the floors by the median of the runs, bystanders apart", () => {
  const kept = [run(44_000, [10, 14]), run(46_000, [10, 14]), run(50_000, [10, 16])];
  deepStrictEqual(summarize(figures(kept)).missed, []);
});

Deno.test("summarize() misses the floors at 44 999 messages/s and at 15 µs", () => {
  strictEqual(summarize(figures([run(44_999, [10, 14.9])])).missed.length, 1);
  strictEqual(summarize(figures([run(45_000, [10, 15])])).missed.length, 1);
  strictEqual(summarize(figures([run(45_000, [10, 14.9])])).missed.length, 0);
});

Deno.test("summarize() misses the floor for carbons below half of the messages without", () => {
  const kept = figures([run(50_000, [10, 14])]);
  const { missed } = summarize({
    ...kept,
    messages: { ...kept.messages, withCarbons: [run(24_999, [10, 14])] },
  });
  deepStrictEqual(missed.length, 1);
  match(formatReport(summarize(kept)), /carbon of each to a device elsewhere .* 25 000 .* 50 %/);
});

Deno.test("summarize() keeps and misses each floor of the table", () => {
  const kept = figures([run(50_000, [10, 14])]);
  deepStrictEqual(summarize({ ...kept, table: TABLE }).missed, []);
  for (
    const worse of [
      { cachedLookupsPerSecond: 1_999_999 },
      { uncachedLookupsPerSecond: 99_999 },
      { renewalShareOfCore: 0.05 },
      { transferSeconds: 10 },
      { latencyMeanwhile: { ...LATENCY, p99Us: 1_800 } },
    ]
  ) {
    const { missed } = summarize({ ...kept, table: { ...TABLE, ...worse } });
    strictEqual(missed.length, 1, JSON.stringify(worse));
  }
});

Deno.test("formatReport() shows the table where it was measured", () => {
  const kept = figures([run(50_000, [10, 14])]);
  match(
    formatReport(summarize({ ...kept, table: TABLE })),
    /renewal of 100 000 .* 4\.9 % of a core/,
  );
  strictEqual(formatReport(summarize(kept)).includes("renewal"), false);
});

Deno.test("summarize() compares with the baseline of the same run", () => {
  const { ratios } = summarize(figures([run(50_000, [10, 15])])).summary.messages!;
  strictEqual(ratios.messagesToBaselineFrames, 0.025);
  strictEqual(ratios.cpuToBaselineCpu, 50);
  strictEqual(ratios.latencyAddedP50Us, 300);
});

Deno.test("formatReport() says which floors are missed and with what", () => {
  match(formatReport(summarize(figures([run(1000, [10, 14])]))), /^Missed: 1 000 messages\/s/m);
  match(formatReport(summarize(figures([run(50_000, [10, 14])]))), /^Every floor is kept\.$/m);
});

Deno.test("formatReport() shows the load of the machine", () => {
  const report = formatReport(summarize(figures([run(50_000, [10, 14])])));
  match(report, /^load average 0\.5 0\.3 0\.1 → 2\.0 1\.0 0\.5$/m);
  match(report, /^2 idle cores .* 1 pause of .* 1\.5 ms$/m);
});

Deno.test("formatReport() leaves out what was not measured", () => {
  const nothing = { ...figures([run(50_000, [10, 14])]), messages: undefined };
  strictEqual(formatReport(summarize(nothing)).includes("messages/s between"), false);
});
