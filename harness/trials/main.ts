import { parseArgs } from "node:util";
import type { ProgressBar } from "../screen/progress_bar.ts";
import { type Side, SIDES } from "./load_clients.ts";
import type { Trial } from "./trial.ts";
import { DEFAULT_MIX, type Mix, tryMix } from "../load/mod.ts";
import { runTrial, type TrialResult } from "./run_trial.ts";

const USAGE = `deno task test:faults [--list] [--only NAME]… [--seconds N] [--rate N] [--mix PARTS]
                        [--without-malice] [--beside WHAT] [--json]

  --list       shows the trials
  --only NAME  plays this one; may be given more than once
  --seconds N  how long each fault goes on [60]
  --rate N     stanzas a second through the whole cluster [2680]
  --mix PARTS  of messages to full and to bare JIDs, requests, and presence [68,15,15,2]
  --without-malice  leaves out the malicious datacenter (2 acts a second) that is there otherwise
  --beside WHAT  the accounts do beside: none, contacts or devices [contacts]
  --json       an object on each line, for machines
`;

const DEFAULT_SECONDS = 60;
/** Milliseconds that the start, the end and the counting of a trial usually take. */
const USUAL_REST_MS = 20_000;
/**
 * Default rate. 83 % of the default mix are messages: at least 2 000 a second, even if only the
 * required 90 % are sent.
 */
const DEFAULT_PER_SECOND = 2_680;

/** `deno task test:faults`. Gives the exit code: 0 when all passed, 1 when one failed, 2 for a bad command. */
export async function faultsMain(
  args: readonly string[],
  { trials, bar }: {
    readonly trials: readonly Trial[];
    /** Takes the output, and shows how far it is. */
    readonly bar: Pick<ProgressBar, "begin" | "write">;
  },
): Promise<number> {
  const write = (text: string) => bar.write(text);
  const command = parse(args, trials);
  if (typeof command === "string") {
    write(command);
    return 2;
  }
  const { isJson, chosen } = command;
  if (command.isHelp) write(USAGE);
  else if (command.isList) {
    const width = Math.max(...trials.map(({ name }) => name.length));
    for (const { name, summary } of trials) write(`${name.padEnd(width)}  ${summary}\n`);
  } else {
    const results: TrialResult[] = [];
    for (const [index, trial] of chosen.entries()) {
      bar.begin({
        text: `${trial.name} (${index + 1} of ${chosen.length})`,
        from: index / chosen.length,
        to: (index + 1) / chosen.length,
        forMs: command.seconds * 1000 + USUAL_REST_MS,
      });
      if (!isJson) write(`${trial.name}: ${trial.summary}\n`);
      const result = await play(trial, command, isJson ? () => {} : write);
      results.push(result);
      if (isJson) write(JSON.stringify(result) + "\n");
    }
    const of = (outcome: string) => results.filter((each) => each.outcome === outcome).length;
    if (!isJson) {
      write(`${of("passed")} passed, ${of("failed")} failed, ${of("skipped")} skipped\n`);
    }
    return of("failed") > 0 ? 1 : 0;
  }
  return 0;
}

interface Command {
  readonly isHelp: boolean;
  readonly isList: boolean;
  readonly isJson: boolean;
  readonly chosen: readonly Trial[];
  readonly seconds: number;
  readonly perSecond: number;
  readonly mix: Mix;
  readonly hasMalice: boolean;
  readonly side: Side;
}

async function play(
  trial: Trial,
  { seconds, perSecond, mix, hasMalice, side }: Command,
  write: (text: string) => void,
): Promise<TrialResult> {
  try {
    const result = await runTrial(trial, {
      faultMs: seconds * 1000,
      perSecond,
      mix,
      hasMalice,
      side,
      say: (line) => write(`  ${line}\n`),
    });
    for (const finding of result.findings) write(`  ✗ ${finding}\n`);
    write(`  ${result.outcome} after ${result.seconds} s\n`);
    return result;
  } catch (thrown) {
    const finding = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    write(`  ✗ ${finding}\n`);
    return { trial: trial.name, outcome: "failed", findings: [finding], proofs: {}, seconds: 0 };
  }
}

/** Parses the command line. Returns the request, or the mistake in it. */
function parse(args: readonly string[], trials: readonly Trial[]): Command | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        help: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        only: { type: "string", multiple: true },
        seconds: { type: "string", default: String(DEFAULT_SECONDS) },
        rate: { type: "string", default: String(DEFAULT_PER_SECOND) },
        "without-malice": { type: "boolean", default: false },
        mix: { type: "string", default: Object.values(DEFAULT_MIX).join(",") },
        beside: { type: "string", default: "contacts" },
      },
    });
    const unknown = values.only?.find((name) => trials.every((trial) => trial.name !== name));
    if (unknown !== undefined) {
      const names = trials.map(({ name }) => name).join(", ");
      return `There is no trial "${unknown}"; there are: ${names}\n`;
    }
    const seconds = Number(values.seconds);
    const perSecond = Number(values.rate);
    if (!(seconds > 0)) return `--seconds is no positive number: ${values.seconds}\n`;
    if (!(perSecond > 0)) return `--rate is no positive number: ${values.rate}\n`;
    const mix = tryMix(values.mix);
    if (mix === undefined) return `--mix is no list of up to four parts: ${values.mix}\n`;
    const side = SIDES.find((each) => each === values.beside);
    if (side === undefined) return `--beside is none of ${SIDES.join(", ")}: ${values.beside}\n`;
    return {
      isHelp: values.help,
      isList: values.list,
      isJson: values.json,
      chosen: trials.filter(({ name }) => values.only?.includes(name) ?? true),
      seconds,
      perSecond,
      mix,
      hasMalice: !values["without-malice"],
      side,
    };
  } catch (thrown) {
    return `${thrown instanceof Error ? thrown.message : thrown}\n${USAGE}`;
  }
}
