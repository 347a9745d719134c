/**
 * Entry of `deno task soak`: `--minutes N` [30], `--rate N` messages a second [1000],
 * `--without-malice` to leave out the malicious datacenter, and `--beside none|contacts|devices`
 * for what the accounts do besides [contacts].
 */
import { parseArgs } from "node:util";
import { ProgressBar } from "./screen/progress_bar.ts";
import { soak } from "./soak/soak.ts";
import { SIDES } from "./trials/mod.ts";

/** Milliseconds that the start and the end of a soak usually take. */
const USUAL_REST_MS = 60_000;

const USAGE = "deno task soak [--minutes N] [--rate N] [--without-malice] [--beside WHAT]";

if (import.meta.main) {
  using bar = ProgressBar.ofProcess("stdout");
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      minutes: { type: "string", default: "30" },
      rate: { type: "string", default: "1000" },
      "without-malice": { type: "boolean", default: false },
      beside: { type: "string", default: "contacts" },
    },
  });
  const minutes = Number(values.minutes);
  const perSecond = Number(values.rate);
  const side = SIDES.find((each) => each === values.beside);
  if (!(minutes > 0 && perSecond > 0) || side === undefined) {
    bar.say(USAGE);
    Deno.exit(2);
  }
  const text = `soak of ${minutes} min`;
  bar.begin({ text, from: 0, to: 1, forMs: minutes * 60_000 + USUAL_REST_MS });
  const result = await soak({
    minutes,
    perSecond,
    hasMalice: !values["without-malice"],
    side,
    say: (line) => bar.say(line),
  });
  bar[Symbol.dispose]();
  for (const finding of result.findings) bar.say(`✗ ${finding}`);
  bar.say(`${result.outcome} after ${result.seconds} s`);
  Deno.exit(result.outcome === "passed" ? 0 : 1);
}
