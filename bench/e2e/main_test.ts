import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const DENO_CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));

Deno.test("bench:e2e explains why it cannot run, and exits with 1", async () => {
  // It may start nothing, as where a node or a Redis cannot be started.
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", `--config=${DENO_CONFIG}`, "--allow-read"],
      ...[
        "--allow-env",
        "--allow-sys=loadavg",
        "--allow-net=127.0.0.1",
        MAIN,
        "--runs",
        "1",
        "--seconds",
        "1",
      ],
    ],
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stderr);
  assert.equal(code, 1, text);
  assert.equal(new TextDecoder().decode(stdout), "");
  assert.match(text, /Requires run access/);
  assert.doesNotMatch(text, /^ +at /m);
});
