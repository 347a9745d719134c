import assert from "node:assert/strict";
import { join } from "node:path";
import { Terminal } from "../console/mod.ts";
import { PROJECT_DIRECTORY, Run } from "../process/mod.ts";
import { ProgressBar } from "./progress_bar.ts";

/** A bar whose drawings and lines are kept, in their order. */
function barOn(columns: number | undefined) {
  const written: string[] = [];
  const clock = { ms: 1_000 };
  const bar = new ProgressBar({
    out: (text) => written.push(text),
    terminal: columns === undefined
      ? undefined
      : { write: (text) => written.push(text), columns: () => columns },
    nowMs: () => clock.ms,
  });
  return { bar, written, clock };
}

Deno.test("ProgressBar shows the share of its stage that has passed, and never all of it", () => {
  const { bar, written, clock } = barOn(80);
  using _ = bar;
  bar.begin({ text: "second of two", from: 0.5, to: 1, forMs: 60_000 });
  clock.ms += 30_000;
  bar.say("half of it");
  clock.ms += 90_000;
  bar.say("late");
  assert.deepEqual(written, [
    "\r\u001b[K[████████████░░░░░░░░░░░░]  50 %  second of two  (0 ms)",
    "\r\u001b[K",
    "half of it\n",
    "\r\u001b[K[██████████████████░░░░░░]  75 %  second of two  (30 s)",
    "\r\u001b[K",
    "late\n",
    "\r\u001b[K[███████████████████████░]  99 %  second of two  (2 min)",
  ]);
});

Deno.test("ProgressBar fits a narrow terminal, and goes away", () => {
  const { bar, written } = barOn(40);
  bar.begin({ text: "a stage with a long name", from: 0, to: 1 });
  bar[Symbol.dispose]();
  bar.say("the end");
  assert.equal(written[0]!.length, "\r\u001b[K".length + 39);
  assert.deepEqual(written.slice(1), ["\r\u001b[K", "\r\u001b[K", "the end\n"]);
});

Deno.test("ProgressBar off a terminal writes the lines alone", () => {
  const { bar, written } = barOn(undefined);
  using _ = bar;
  bar.begin({ text: "a stage", from: 0, to: 1, forMs: 1 });
  bar.say("a line");
  assert.deepEqual(written, ["a line\n"]);
});

Deno.test("ProgressBar.ofProcess() keeps the bar below the lines of a terminal", async () => {
  await using run = await Run.start();
  const main = join(PROJECT_DIRECTORY, "harness/screen/testing/bar_main.ts");
  await using terminal = await Terminal.open(run, {
    name: "bar",
    program: Deno.execPath(),
    args: ["run", "-A", "--no-check", "--config", join(PROJECT_DIRECTORY, "deno.json"), main],
    env: {},
  });
  const bar = "\\[█{12}░{12}\\] +50 % {2}two \\(2 of 2\\) {2}\\(\\d+ m?s\\)";
  await terminal.expect(new RegExp(`^${bar}`), "the bar alone");
  await terminal.press("x");
  await terminal.expect(new RegExp(`^a line above the bar *\n${bar}`, "m"), "the bar below a line");
  await terminal.press("x");
  await terminal.expect(/^the end *$/m, "the last line");
  assert.doesNotMatch((await terminal.screen()).split("a line above the bar")[1]!, /[█░]/);
});
