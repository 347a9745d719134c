import assert from "node:assert/strict";
import { getPriority } from "node:os";
import { behind, putBehind } from "./behind.ts";

const LOWEST = 19;

Deno.test("behind() runs a command ten steps behind", async () => {
  const [program, ...args] = behind(["nice"]);
  const { stdout } = await new Deno.Command(program!, { args }).output();
  const expected = Math.min(LOWEST, getPriority() + 10);
  assert.equal(Number(new TextDecoder().decode(stdout)), expected);
});

Deno.test("putBehind() puts a process ten steps behind, and skips one that has ended", async () => {
  const child = new Deno.Command("cat", { stdin: "piped", stdout: "null" }).spawn();
  const ended = new Deno.Command("true").spawn();
  await ended.status;
  await putBehind([ended.pid, child.pid]);
  assert.equal(getPriority(child.pid), Math.min(LOWEST, getPriority() + 10));
  await child.stdin.close();
  await child.status;
});
