import assert from "node:assert/strict";
import { cutLine, keysOf } from "./live_terminal.ts";

Deno.test("keysOf() keeps the characters of an arrow or a function key together", () => {
  assert.deepEqual(keysOf("q\u001b[Aü\u001b[15~\u001bOB\u001b[1;5C\r"), [
    "q",
    "\u001b[A",
    "ü",
    "\u001b[15~",
    "\u001bOB",
    "\u001b[1;5C",
    "\r",
  ]);
  assert.deepEqual(keysOf("\u001b"), ["\u001b"]);
  assert.deepEqual(keysOf("\u001b\u001b[B"), ["\u001b", "\u001b[B"]);
  assert.deepEqual(keysOf(""), []);
});

Deno.test("cutLine() counts characters, not colours", () => {
  assert.equal(cutLine("grüße", 3), "grü");
  assert.equal(cutLine("\u001b[32mready\u001b[39m now", 5), "\u001b[32mready\u001b[39m");
  assert.equal(cutLine("\u001b[32mready\u001b[39m", 2), "\u001b[32mre\u001b[39m");
  assert.equal(cutLine("𝄞𝄞𝄞", 2), "𝄞𝄞");
});
