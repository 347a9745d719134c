import assert from "node:assert/strict";
import { REDIS_LAYOUT, tryParseLayout } from "./layout.ts";

Deno.test("tryParseLayout() reads what nodes write, and nothing else", () => {
  assert.equal(tryParseLayout(String(REDIS_LAYOUT)), REDIS_LAYOUT);
  assert.equal(tryParseLayout("27"), 27);
  for (const value of [null, "", "0", "01", "-1", "1.5", "1 ", "one", "1234567"]) {
    assert.equal(tryParseLayout(value), undefined, String(value));
  }
});
