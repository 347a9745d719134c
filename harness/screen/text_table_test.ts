import assert from "node:assert/strict";
import { palette } from "./palette.ts";
import { textTable } from "./text_table.ts";

Deno.test("textTable() aligns columns, whatever is coloured in them", () => {
  const columns = [{ heading: "Name" }, { heading: "N", align: "right", minWidth: 4 }] as const;
  const plain = textTable(columns, [["dc1", "5"], ["a longer name", "12345"]]);
  assert.deepEqual(plain, [
    "Name               N",
    "dc1                5",
    "a longer name  12345",
  ]);
  const paint = palette(true);
  const coloured = textTable(columns, [[paint.green("dc1"), "5"], ["grüße", ""]]);
  assert.deepEqual(coloured, ["Name      N", "\x1b[32mdc1\x1b[39m       5", "grüße"]);
});

Deno.test("palette() without colour leaves text alone", () => {
  const paint = palette(false);
  assert.equal(paint.bold(paint.red(paint.dim("x"))), "x");
});
