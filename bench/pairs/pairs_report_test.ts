import { deepStrictEqual, match, throws } from "node:assert/strict";
import type { BenchContext } from "../e2e/bench_report.ts";
import type { ArmName, PairsOptions } from "./pairs_options.ts";
import type { Block, Turn } from "./pairs_report.ts";
import { formatPairs, summarizePairs } from "./pairs_report.ts";

function turn(arm: ArmName, messagesPerSecond: number): Turn {
  return { arm, messagesPerSecond, cpuUsPerMessage: 1e6 / messagesPerSecond, p99Us: 5_000 };
}

/** Both arms are fast or slow together, as they share a machine. */
function block(speed: number, ratio: number): Block {
  const turns = [turn("before", speed), turn("now", speed * ratio)];
  return speed % 2 === 0 ? turns : turns.toReversed();
}

const STARTS: readonly (readonly Block[])[] = [
  [block(100_000, 0.9), block(50_001, 0.9), block(20_000, 0.95)],
  [block(90_000, 1), block(60_001, 1), block(10_000, 0.99)],
];

Deno.test("summarizePairs() compares turns of one block, whatever their order and the machine's speed", () => {
  const [before, now] = summarizePairs(STARTS, ["before", "now"]);
  deepStrictEqual(before!.messagesPerSecond, { median: 55_001, min: 10_000, max: 100_000 });
  deepStrictEqual(before!.ratios, undefined);
  const { messagesPerSecond, cpuUsPerMessage, p99Us } = now!.ratios!;
  const rounded = [messagesPerSecond.low, messagesPerSecond.median, messagesPerSecond.high]
    .map((ratio) => Number(ratio.toFixed(6)));
  deepStrictEqual(rounded, [0.9, 0.97, 1]);
  deepStrictEqual(messagesPerSecond.byStart.map((ratio) => Number(ratio.toFixed(6))), [0.9, 1]);
  deepStrictEqual(Number(cpuUsPerMessage.high.toFixed(6)), Number((1 / 0.9).toFixed(6)));
  deepStrictEqual(p99Us, { median: 1, low: 1, high: 1, byStart: [1, 1] });
});

Deno.test("summarizePairs() refuses a block without a turn of an arm", () => {
  throws(() => summarizePairs([[[turn("before", 1)]]], ["before", "now"]), /no turn of now/);
});

Deno.test("formatPairs() shows a row for each arm, and the ratio of each start", () => {
  const context: BenchContext = {
    date: "2026-01-02 03:04",
    command: "deno task bench:pairs --before abc",
    commit: "def",
    cores: 2,
    processor: "test",
    load: [[0, 0, 0], [2, 1, 0]],
    pauses: { cores: 2, seconds: 2, count: 1, longestMs: 1.5 },
    versions: { deno: "2" },
  };
  const options: PairsOptions = {
    before: "abc",
    arms: ["now"],
    starts: 2,
    blocks: 3,
    pairs: 10,
    inFlight: 32,
    messageBytes: 300,
    json: undefined,
  };
  const text = formatPairs({ context, options }, summarizePairs(STARTS, ["before", "now"]));
  match(text, /^2 idle cores .* 1 pause of .* 1\.5 ms$/m);
  match(text, /^\| before +\| 55 001 \(10 000 – 100 000\) +\| +\| 18\.3 /m);
  match(text, /^\| now +\| .+ \| 0\.97 \(0\.90 – 1\.00\) \| .+ \| 5 000 µs +\| 1\.00 /m);
  match(text, /^now by start: messages\/s 0\.90, 1\.00; CPU 1\.11, 1\.00$/m);
});
