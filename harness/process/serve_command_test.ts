import assert from "node:assert/strict";
import { parseServeTask } from "./serve_command.ts";

Deno.test("parseServeTask() returns the words before mod.ts", () => {
  assert.deepEqual(
    parseServeTask("deno run --no-prompt --allow-net --allow-read=. mod.ts serve"),
    ["run", "--no-prompt", "--allow-net", "--allow-read=."],
  );
});

Deno.test("parseServeTask() refuses a task of another shape", () => {
  for (const line of ["", "deno test -A", "deno run -A", "deno run mod.ts", "node mod.ts serve"]) {
    assert.throws(() => parseServeTask(line), TypeError, line);
  }
});
