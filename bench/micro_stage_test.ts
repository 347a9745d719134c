import assert from "node:assert/strict";
import { microStage } from "./micro_stage.ts";

const FILES = ["cache_bench.ts", "jid_bench.ts"];

Deno.test("microStage() begins a stage at the line that names a file, with and without colours", () => {
  const stage = { text: "jid_bench.ts (2 of 2)", from: 0.5, to: 1, forMs: 20_000 };
  const url = "file:///home/edge/causeway/bench/jid_bench.ts";
  for (const line of [url, `${url}\r`, `\u001b[0m\u001b[38;5;245m${url}\u001b[0m`]) {
    assert.deepEqual(microStage(line, FILES), stage);
  }
});

Deno.test("microStage() begins none at figures, other files and headings", () => {
  const lines = [
    "",
    "| not seen, ASCII | 1.2 µs | 833,300 | (1.1 µs … 2.0 µs) |",
    "file:///home/edge/causeway/bench/other_bench.ts",
    "Check file:///home/edge/causeway/bench/jid_bench.ts",
  ];
  for (const line of lines) assert.equal(microStage(line, FILES), undefined, line);
});
