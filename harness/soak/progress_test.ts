import assert from "node:assert/strict";
import { Progress } from "./progress.ts";

Deno.test("Progress.look() says a line for each minute, and reads no figures in between", () => {
  const lines: string[] = [];
  const progress = new Progress({
    minutes: 3,
    nowMs: 5_000,
    say: (line) => void lines.push(line),
  });
  let reads = 0;
  const figures = () => {
    reads++;
    const sample = { handles: 20, rssBytes: 100 * 1024 * 1024, held: 4 };
    return { sent: 1234, unsettled: 5, samples: [sample, sample] };
  };
  for (let ms = 5_000; ms <= 130_000; ms += 2_500) progress.look(ms, figures);
  const rest = "1234 stanzas sent, 5 without a fate; 8 held by nodes of 100, 100 MiB";
  assert.deepEqual(lines, [`1 of 3 minutes: ${rest}`, `2 of 3 minutes: ${rest}`]);
  assert.equal(reads, 2);
});
