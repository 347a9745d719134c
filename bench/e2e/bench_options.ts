import { parseArgs } from "node:util";
import { ARCHIVE_DATABASES } from "./archive/archive_protocol.ts";
import type { ArchiveDatabase } from "./archive/archive_protocol.ts";

/** Things that the bench measures. */
export const ROWS = [
  "messages",
  "table",
  "roster",
  "login",
  "storm",
  "archive",
  "archived-messages",
  "slow-database",
] as const;
export type BenchRow = typeof ROWS[number];

/** Options of `deno task bench:e2e`. */
export interface BenchOptions {
  /** Things to measure. */
  readonly rows: ReadonlySet<BenchRow>;
  readonly datacenters: number;
  readonly pairs: number;
  readonly inFlight: number;
  /** Which way messages go: all from the first datacenter to the second, or half each way. */
  readonly direction: "one-way" | "both-ways";
  readonly messageBytes: number;
  readonly runs: number;
  /** Seconds of one run. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Messages a second, over all pairs, for the measurement of latency. */
  readonly pacePerSecond: number;
  /** Sessions of the table that is measured; 0 leaves the table out. */
  readonly sessions: number;
  /** Logins of the storm. */
  readonly logins: number;
  /** `limits.session_rate_per_node` of the storm's nodes; 0 for no limit. */
  readonly sessionRate: number;
  /** Databases whose archives are measured. */
  readonly databases: readonly ArchiveDatabase[];
  /** Messages of the archive that pages are read from; 0 leaves the pages out. */
  readonly entries: number;
  /** True: messages are found by their words, in databases that search. */
  readonly hasSearch: boolean;
  /** True: the archive that pages are read from is removed in the end, and that is measured. */
  readonly hasRemovals: boolean;
  /** Share of the messages whose traces go to a collector; 0 for no collector. */
  readonly tracedRatio: number;
  /** File that the figures are written to as JSON. */
  readonly json: string | undefined;
  /** Exit with 1 when a floor is missed. */
  readonly check: boolean;
}

const DEFAULTS = {
  rows: ROWS.join(","),
  datacenters: "2",
  pairs: "10",
  "in-flight": "32",
  direction: "one-way",
  bytes: "300",
  runs: "5",
  seconds: "5",
  "warm-up": "5",
  rate: "2000",
  sessions: "100000",
  logins: "10000",
  "session-rate": "0",
  databases: "postgresql",
  entries: "1000000",
  traced: "0",
} as const;

/** Shown for `--help` and after a mistake. */
export const USAGE = `deno task bench:e2e [options]
  --rows LIST      things to measure, with commas between (${DEFAULTS.rows})
  --datacenters N  datacenters of one node each, 2 or more (${DEFAULTS.datacenters})
  --pairs N        senders with one recipient each (${DEFAULTS.pairs})
  --in-flight N    messages on their way at once for each pair (${DEFAULTS["in-flight"]})
  --direction D    one-way: all from dc1 to dc2; both-ways: half each (${DEFAULTS.direction})
  --bytes N        size of a message as its sender writes it (${DEFAULTS.bytes})
  --runs N         measured runs at full load (${DEFAULTS.runs})
  --seconds N      length of a run (${DEFAULTS.seconds})
  --warm-up N      seconds before the first run (${DEFAULTS["warm-up"]})
  --rate N         messages a second at which latency is measured (${DEFAULTS.rate})
  --sessions N     sessions of the table that is measured, 0 for none (${DEFAULTS.sessions})
  --logins N       people who log in at once in the storm (${DEFAULTS.logins})
  --session-rate N session_rate_per_node of the storm's nodes, 0 for no limit (${
  DEFAULTS["session-rate"]
})
  --databases LIST databases whose archives are measured (${DEFAULTS.databases}), of
                   ${ARCHIVE_DATABASES.join(", ")}
  --entries N      messages of the archive that pages are read from, 0 for none (${DEFAULTS.entries})
  --search         messages are found by their words, in databases that search
  --removals       the archive that pages are read from is removed: a tenth by age, then the rest
  --traced SHARE   messages traced by OTLP, 0.01 for 1 %; 0 has no collector (${DEFAULTS.traced})
  --json FILE      write the figures there too
  --check          exit with 1 when a floor is missed`;

/** Reads the command line; undefined when help was asked for. Throws with all that is wrong. */
export function parseBenchOptions(args: readonly string[]): BenchOptions | undefined {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      rows: { ...text, default: DEFAULTS.rows },
      datacenters: { ...text, default: DEFAULTS.datacenters },
      pairs: { ...text, default: DEFAULTS.pairs },
      "in-flight": { ...text, default: DEFAULTS["in-flight"] },
      direction: { ...text, default: DEFAULTS.direction },
      bytes: { ...text, default: DEFAULTS.bytes },
      runs: { ...text, default: DEFAULTS.runs },
      seconds: { ...text, default: DEFAULTS.seconds },
      "warm-up": { ...text, default: DEFAULTS["warm-up"] },
      rate: { ...text, default: DEFAULTS.rate },
      sessions: { ...text, default: DEFAULTS.sessions },
      logins: { ...text, default: DEFAULTS.logins },
      "session-rate": { ...text, default: DEFAULTS["session-rate"] },
      databases: { ...text, default: DEFAULTS.databases },
      entries: { ...text, default: DEFAULTS.entries },
      search: { type: "boolean", default: false },
      removals: { type: "boolean", default: false },
      traced: { ...text, default: DEFAULTS.traced },
      json: text,
      check: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const problems: string[] = [];
  const some = <T extends string>(name: "rows" | "databases", known: readonly T[]): T[] =>
    values[name].split(",").flatMap((each) => {
      const found = known.find((one) => one === each);
      if (found === undefined) {
        problems.push(`--${name} must be some of ${known.join(", ")}: ${each}`);
      }
      return found === undefined ? [] : [found];
    });
  const number = (name: keyof typeof DEFAULTS, min: number, max: number): number => {
    const value = Number(values[name]);
    if (value >= min && value <= max) return value;
    problems.push(`--${name} must be from ${min} to ${max}: ${values[name]}`);
    return min;
  };
  const whole = (name: keyof typeof DEFAULTS, min: number, max: number): number => {
    const value = number(name, min, max);
    if (!Number.isInteger(value)) problems.push(`--${name} must be a whole number: ${value}`);
    return value;
  };
  const { direction } = values;
  if (direction !== "one-way" && direction !== "both-ways") {
    problems.push(`--direction must be one-way or both-ways: ${direction}`);
  }
  const options: BenchOptions = {
    rows: new Set(some("rows", ROWS)),
    datacenters: whole("datacenters", 2, 9),
    pairs: whole("pairs", 1, 1000),
    inFlight: whole("in-flight", 1, 10_000),
    direction: direction === "both-ways" ? "both-ways" : "one-way",
    messageBytes: whole("bytes", 120, 65_536),
    runs: whole("runs", 1, 1000),
    seconds: number("seconds", 0.1, 3600),
    warmUpSeconds: number("warm-up", 0, 3600),
    pacePerSecond: whole("rate", 1, 1_000_000),
    sessions: whole("sessions", 0, 1_000_000),
    logins: whole("logins", 2, 100_000),
    sessionRate: number("session-rate", 0, 1_000_000),
    databases: some("databases", ARCHIVE_DATABASES),
    entries: whole("entries", 0, 100_000_000),
    hasSearch: values.search,
    hasRemovals: values.removals,
    tracedRatio: number("traced", 0, 1),
    json: values.json,
    check: values.check,
  };
  if (problems.length > 0) throw new RangeError(problems.join("\n"));
  return options;
}
