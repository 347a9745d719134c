/**
 * Entry of `deno task soak`: `--minutes N` [30], `--rate N` messages a second [1000],
 * `--without-malice` to leave out the malicious datacenter, and `--beside none|contacts|devices`
 * for what the accounts do besides [contacts].
 */
import { parseArgs } from "node:util";
import { soak } from "./soak/soak.ts";
import { SIDES } from "./trials/mod.ts";

const USAGE = "deno task soak [--minutes N] [--rate N] [--without-malice] [--beside WHAT]";

if (import.meta.main) {
  const write = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(text));
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
    write(`${USAGE}\n`);
    Deno.exit(2);
  }
  const result = await soak({
    minutes,
    perSecond,
    hasMalice: !values["without-malice"],
    side,
    say: (line) => write(`${line}\n`),
  });
  for (const finding of result.findings) write(`✗ ${finding}\n`);
  write(`${result.outcome} after ${result.seconds} s\n`);
  Deno.exit(result.outcome === "passed" ? 0 : 1);
}
