import assert from "node:assert/strict";
import { fullMessage } from "./run_scenario.ts";

Deno.test("fullMessage() tells an error and its causes, but not the value that a wait saw last", () => {
  const cause = new TypeError("no such host", { cause: false });
  assert.equal(fullMessage(new Error("cannot start", { cause })), "cannot start\nno such host");
  assert.equal(fullMessage("stopped"), "stopped");
});

Deno.test("fullMessage() tells what failed first, and then what failed as that was cleaned up", () => {
  const first = new Error("alice got no answer", { cause: new Error("the node has died") });
  const thrown = new SuppressedError(new Error("cannot stop dc1"), first);
  assert.equal(fullMessage(thrown), "alice got no answer\nthe node has died\ncannot stop dc1");
});
