import { parseArgs } from "node:util";
import { MIN_VALUES } from "./median_bounds.ts";

/** Builds and settings that are compared with the build before, each a cluster of its own. */
export const ARMS = ["now", "observed", "traced"] as const;
export type ArmName = "before" | typeof ARMS[number];

/** Options of `deno task bench:pairs`. */
export interface PairsOptions {
  /** Commit that the clusters of this tree are compared with. */
  readonly before: string;
  readonly arms: readonly (typeof ARMS[number])[];
  /** Times that all clusters are started anew. */
  readonly starts: number;
  /** Blocks of one turn for each cluster, after each start. */
  readonly blocks: number;
  readonly pairs: number;
  readonly inFlight: number;
  readonly messageBytes: number;
  /** File that the figures are written to as JSON. */
  readonly json: string | undefined;
}

const DEFAULTS = {
  arms: ARMS.join(","),
  starts: "3",
  blocks: "20",
  pairs: "10",
  "in-flight": "32",
  bytes: "300",
} as const;

/** Shown for `--help` and after a mistake. */
export const USAGE = `deno task bench:pairs --before COMMIT [options]
  --before COMMIT  the build that this tree is compared with
  --arms LIST      clusters beside that of COMMIT, with commas between (${DEFAULTS.arms}):
                   now       this tree, with the same settings
                   observed  with metrics and logs by OTLP, and a dashboard and scrapes of each node
                   traced    with metrics, logs and the traces of 1 % of the messages by OTLP
  --starts N       times that all clusters are started anew (${DEFAULTS.starts})
  --blocks N       turns of each cluster after each start (${DEFAULTS.blocks})
  --pairs N        senders at dc1 with one recipient each at dc2 (${DEFAULTS.pairs})
  --in-flight N    messages on their way at once for each pair (${DEFAULTS["in-flight"]})
  --bytes N        size of a message as its sender writes it (${DEFAULTS.bytes})
  --json FILE      write the figures there too`;

/** Reads the command line; undefined when help was asked for. Throws with all that is wrong. */
export function parsePairsOptions(args: readonly string[]): PairsOptions | undefined {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      before: text,
      arms: { ...text, default: DEFAULTS.arms },
      starts: { ...text, default: DEFAULTS.starts },
      blocks: { ...text, default: DEFAULTS.blocks },
      pairs: { ...text, default: DEFAULTS.pairs },
      "in-flight": { ...text, default: DEFAULTS["in-flight"] },
      bytes: { ...text, default: DEFAULTS.bytes },
      json: text,
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const problems: string[] = [];
  const whole = (name: keyof typeof DEFAULTS, min: number, max: number): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    problems.push(`--${name} must be a whole number from ${min} to ${max}: ${values[name]}`);
    return min;
  };
  const { before = "" } = values;
  if (!/^[\w./~^-]+$/.test(before) || before.startsWith("-")) {
    problems.push(`--before must name a commit: ${before}`);
  }
  const arms = new Set(values.arms.split(",").map((each) => ARMS.find((arm) => arm === each)));
  if (arms.has(undefined)) {
    problems.push(`--arms must be some of ${ARMS.join(", ")}: ${values.arms}`);
  }
  const options: PairsOptions = {
    before,
    arms: ARMS.filter((arm) => arms.has(arm)),
    starts: whole("starts", 1, 100),
    blocks: whole("blocks", 1, 1_000),
    pairs: whole("pairs", 1, 1_000),
    inFlight: whole("in-flight", 1, 10_000),
    messageBytes: whole("bytes", 120, 65_536),
    json: values.json,
  };
  if (options.starts * options.blocks < MIN_VALUES) {
    problems.push(`--starts times --blocks must be at least ${MIN_VALUES}, for bounds`);
  }
  if (problems.length > 0) throw new RangeError(problems.join("\n"));
  return options;
}
