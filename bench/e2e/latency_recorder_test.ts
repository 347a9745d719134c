import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { LatencyRecorder } from "./latency_recorder.ts";

Deno.test("LatencyRecorder.quantileUs() is within 0.1 % of the sorted sample", () => {
  const values = fc.array(fc.nat({ max: 0xffff_ffff }), { minLength: 1, maxLength: 200 });
  fc.assert(fc.property(values, fc.constantFrom(0.5, 0.99, 0.999, 1), (sample, fraction) => {
    const recorder = new LatencyRecorder();
    for (const value of sample) recorder.record(value);
    const sorted = sample.toSorted((a, b) => a - b);
    const exact = sorted[Math.max(1, Math.ceil(sample.length * fraction)) - 1]!;
    const found = recorder.quantileUs(fraction);
    ok(found >= exact && found <= exact * 1.001, `${found} for ${exact}`);
  }));
});

Deno.test("LatencyRecorder.summary() is exact below 2 ms", () => {
  const recorder = new LatencyRecorder();
  for (let us = 1; us <= 1000; us++) recorder.record(us);
  deepStrictEqual(recorder.summary(), {
    count: 1000,
    p50Us: 500,
    p99Us: 990,
    p999Us: 999,
    maxUs: 1000,
  });
});

Deno.test("LatencyRecorder.reset() forgets everything", () => {
  const recorder = new LatencyRecorder();
  recorder.record(5000);
  recorder.reset();
  strictEqual(recorder.summary().count, 0);
  strictEqual(recorder.summary().maxUs, 0);
});
