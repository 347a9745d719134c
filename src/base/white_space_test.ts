import assert from "node:assert/strict";
import { countLeadingSpace } from "./white_space.ts";

Deno.test("countLeadingSpace() counts XML white space up to the first other byte", () => {
  const cases: readonly (readonly [string, number])[] = [
    ["", 0],
    ["a ", 0],
    [" \t\n\ra\n", 4],
    ["\n", 1],
    ["\v ", 0],
    ["\u00a0", 0],
    ["\0", 0],
  ];
  for (const [text, count] of cases) {
    assert.equal(countLeadingSpace(new TextEncoder().encode(text)), count, JSON.stringify(text));
  }
});
