import assert from "node:assert/strict";
import { troubleText } from "./list_commands.ts";

Deno.test("troubleText() says the reason and the last error, and the same text once", () => {
  const lastError = {
    reason: "unreachable",
    detail: "connection refused",
    at: "2026-11-26T09:54:10.154Z",
  } as const;
  assert.equal(troubleText("dc2", undefined, undefined), "dc2: no link");
  assert.equal(
    troubleText("dc2", "an operator paused it", undefined),
    "dc2: an operator paused it",
  );
  assert.equal(
    troubleText("dc2", "an operator paused it", lastError),
    "dc2: an operator paused it; last error unreachable: connection refused " +
      "(2026-11-26T09:54:10.154Z)",
  );
  assert.equal(
    troubleText("dc2", "connection refused", lastError),
    "dc2: unreachable: connection refused (2026-11-26T09:54:10.154Z)",
  );
});
