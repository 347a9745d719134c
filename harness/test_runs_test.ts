import assert from "node:assert/strict";
import { Child, PROJECT_DIRECTORY } from "./process/mod.ts";
import { runTests, sumOf, type TestRun } from "./test_runs.ts";
import { until } from "./until.ts";

/** A run of `code` in the place of `deno test`. */
function run(name: string, code: string): TestRun {
  return { name, program: Deno.execPath(), args: ["eval", "--no-config", code] };
}

/** Code that writes `lines` and ends with `code`. */
function says(lines: readonly string[], code = 0): string {
  return `console.log(${JSON.stringify(lines.join("\n"))}); Deno.exit(${code});`;
}

async function outcome(runs: readonly TestRun[]) {
  let text = "";
  const code = await runTests(runs, (piece) => text += piece);
  return { code, lines: text.split("\n").slice(0, -1) };
}

Deno.test("runTests() writes what all runs say, and counts their tests in its last line", async () => {
  const one = run("one", says(["./a_test.ts => a ... ok (1ms)", "ok | 2 passed | 0 failed (3s)"]));
  const closing = "ok | 3 passed (4 steps) | 0 failed | 1 ignored (2m1s)";
  const other = run("other", says(["./b_test.ts => b ... ok (1s)", closing]));
  const { code, lines } = await outcome([one, other]);
  assert.equal(code, 0);
  for (
    const line of [
      "./a_test.ts => a ... ok (1ms)",
      "one: ok | 2 passed | 0 failed (3s)",
      "./b_test.ts => b ... ok (1s)",
      `other: ${closing}`,
    ]
  ) assert.equal(lines.filter((each) => each === line).length, 1, line);
  assert.match(
    lines.at(-1) ?? "",
    /^ok \| 5 passed \(4 steps\) \| 0 failed \| 1 ignored \(0m\d+s\)$/,
  );
});

Deno.test("runTests() writes the report of failures last, in one piece, and fails with its run", async () => {
  const report = [" ERRORS ", "", "a => ./a_test.ts:1:6", "error: AssertionError", " FAILURES "];
  const closing = "FAILED | 1 passed | 1 failed (3s)";
  const failing = `console.log(${JSON.stringify(report.slice(0, 2).join("\n"))});
    console.error("to the other stream");
    setTimeout(() => { ${says([...report.slice(2), closing], 1)} }, 300);`;
  const chatty = `let n = 0; const timer = setInterval(() => {
    console.log("chat " + n);
    if (++n === 60) { clearInterval(timer); console.log("ok | 60 passed | 0 failed (1s)"); }
  }, 10);`;
  const { code, lines } = await outcome([run("failing", failing), run("chatty", chatty)]);
  assert.equal(code, 1);
  assert.equal(lines.filter((line) => line.startsWith("chat ")).length, 60);
  const start = lines.indexOf(" ERRORS ");
  assert.ok(start > lines.indexOf(`failing: ${closing}`));
  const piece = lines.slice(start, -2).filter((line) => line !== "to the other stream");
  assert.deepEqual(piece, report);
  assert.ok(lines.at(-1)?.startsWith("FAILED | 61 passed | 1 failed ("));
});

Deno.test("runTests() counts nothing when a run has not counted its tests", async () => {
  const whole = run("whole", says(["ok | 2 passed | 0 failed (3s)"]));
  const broken = run("broken", says(["./b_test.ts => b ... ok (1s)"], 130));
  const { code, lines } = await outcome([whole, broken]);
  assert.equal(code, 130);
  assert.ok(lines.includes("broken: ended with code 130, and counted nothing"));
  assert.deepEqual(lines.filter((line) => /^(ok|FAILED) \|/.test(line)), []);
});

Deno.test("runTests() hands on the signals that end a process", async () => {
  const waiting = `Deno.addSignalListener("SIGINT", () => {
    console.log("interrupted"); Deno.exit(130);
  }); console.log("waits"); setInterval(() => {}, 1000);`;
  const code = `import { runTests } from "./harness/test_runs.ts";
    const program = Deno.execPath(), args = ["eval", "--no-config", ${JSON.stringify(waiting)}];
    Deno.exit(await runTests([{ name: "waiting", program, args }], (text) => console.log(text)));`;
  await using child = new Child({
    name: "runs",
    program: Deno.execPath(),
    args: ["eval", code],
    cwd: PROJECT_DIRECTORY,
  });
  const said = (text: string) => child.log.lines.some((line) => line.text === text);
  const evidence = () => child.log.tail();
  await until(() => said("waits"), { what: "the run has begun", evidence });
  child.signal("SIGINT");
  assert.deepEqual(await child.exited, { code: 130, signal: null });
  assert.ok(said("interrupted"), evidence());
});

Deno.test("sumOf() adds up each kind of count, and fails with one of the runs", () => {
  const one = "ok | 1 passed (1 step) | 0 failed | 15 filtered out (45s)";
  assert.equal(
    sumOf([one], 61),
    "ok | 1 passed (1 step) | 0 failed | 15 filtered out (1m1s)",
  );
  const other = "FAILED | 2 passed (2 steps) | 1 failed (1 step) | 2 ignored (1h2m)";
  assert.equal(
    sumOf([one, other], 3600),
    "FAILED | 3 passed (3 steps) | 1 failed (1 step) | 15 filtered out | 2 ignored (60m0s)",
  );
});
