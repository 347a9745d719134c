import assert from "node:assert/strict";
import { TimeoutError, until } from "./until.ts";

Deno.test("until() returns the first truthy value", async () => {
  let looks = 0;
  const value = await until(() => ++looks >= 3 && `look ${looks}`, { what: "third", everyMs: 1 });
  assert.equal(value, "look 3");
});

Deno.test("until() treats a probe that throws as falsy", async () => {
  let looks = 0;
  const probe = () => {
    if (++looks < 3) throw new Error("too early");
    return Promise.resolve(looks);
  };
  assert.equal(await until(probe, { what: "no throw", everyMs: 1 }), 3);
});

Deno.test("until() reports the awaited fact, the last value and the evidence", async () => {
  const waiting = until(() => Promise.resolve(0), {
    what: "dc1 sees dc2",
    withinMs: 5,
    everyMs: 1,
    evidence: () => "dc1 | link refused",
  });
  await assert.rejects(waiting, (error) => {
    assert.ok(error instanceof TimeoutError);
    assert.match(error.message, /5 ms for: dc1 sees dc2\nlast seen: 0\ndc1 \| link refused/);
    return true;
  });
});

Deno.test("until() ends with the reason of its signal", async () => {
  const ending = new AbortController();
  const waiting = until(() => false, { what: "x", everyMs: 1, signal: ending.signal });
  ending.abort(new RangeError("no more"));
  await assert.rejects(waiting, { name: "RangeError", message: "no more" });
});

Deno.test("until() shows the error that its probe kept throwing", async () => {
  const probe = () => {
    throw new RangeError("no such node");
  };
  await assert.rejects(until(probe, { what: "x", withinMs: 1 }), /last seen: RangeError: no such/);
});
