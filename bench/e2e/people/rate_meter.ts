import { jsonLine, readJsonLines } from "../json_lines.ts";
import type { RateCommand, RateEvent } from "./roster_protocol.ts";

/**
 * Says that the process is ready, and then counts answers for each command.
 *
 * @param answers number of answers so far
 * @param failure why no more answers can come; undefined while they can
 */
export async function serveRates(
  answers: () => number,
  failure: () => Error | undefined,
): Promise<void> {
  tell({ event: "ready" });
  for await (const { warmUpMs, measureMs } of readJsonLines<RateCommand>(Deno.stdin.readable)) {
    await sleep(warmUpMs);
    const before = answers();
    const startMs = performance.now();
    tell({ event: "begin" });
    await sleep(measureMs);
    const failed = failure();
    if (failed !== undefined) throw failed;
    const elapsedMs = performance.now() - startMs;
    tell({ event: "rate", answers: answers() - before, elapsedMs });
  }
}

function tell(event: RateEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
