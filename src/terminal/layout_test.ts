import assert from "node:assert/strict";
import { tableLines } from "./mod.ts";

Deno.test("tableLines() lays out more rows than a call may have arguments", () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`alice@example.com/${i}`, "bound"]);
  const lines = tableLines([{ title: "SESSION", isFlexible: true }, { title: "STATE" }], rows, 40);
  assert.equal(lines.length, 200_001);
  assert.equal(lines[0], "SESSION                   STATE");
  assert.equal(lines.at(-1), "alice@example.com/199999  bound");
});
