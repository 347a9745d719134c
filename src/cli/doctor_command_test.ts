import assert from "node:assert/strict";
import { linesOf } from "./doctor_command.ts";

Deno.test("linesOf() shows no control characters that another node has sent", () => {
  const text = (name: string) => `${name}\u001b[2J\u009b31m\nforged`;
  const lines = linesOf({
    check: "mesh/versions",
    severity: "warning",
    about: text("node1"),
    found: text("found"),
    advice: text("advice"),
  }, 80);
  assert.doesNotMatch(lines.join(""), /\p{Cc}/u);
  assert.equal(lines[0], "warning  mesh/versions: node1 [2J 31m forged");
});
