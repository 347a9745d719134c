import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const DENO_CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));
const NOWHERE = "0123456789abcdef0123456789abcdef01234567";

Deno.test("bench:pairs says that a commit is not in this clone, and exits with 1", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", `--config=${DENO_CONFIG}`, "--allow-net=127.0.0.1"],
      ...["--allow-read", "--allow-write", "--allow-env", "--allow-sys", "--allow-run"],
      ...[MAIN, "--before", NOWHERE],
    ],
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stderr);
  assert.equal(code, 1, text);
  assert.equal(new TextDecoder().decode(stdout), "");
  assert.match(text, new RegExp(`^Cannot run git archive: .*${NOWHERE}`, "m"));
  assert.doesNotMatch(text, /^ +at /m);
});
