import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { parsePairsOptions } from "./pairs_options.ts";

Deno.test("parsePairsOptions() has a default for everything but the commit", () => {
  deepStrictEqual(parsePairsOptions(["--before", "v0.1.0~2"]), {
    before: "v0.1.0~2",
    arms: ["now", "observed", "traced"],
    starts: 3,
    blocks: 20,
    pairs: 10,
    inFlight: 32,
    messageBytes: 300,
    json: undefined,
  });
});

Deno.test("parsePairsOptions() reports every mistake at once", () => {
  const args = ["--starts", "0", "--blocks", "x", "--arms", "now,later", "--bytes", "1.5"];
  throws(() => parsePairsOptions(args), (thrown: Error) => {
    for (const name of ["--before", "--starts", "--blocks", "--arms", "--bytes"]) {
      strictEqual(thrown.message.includes(`${name} must`), true, name);
    }
    return thrown instanceof RangeError;
  });
});

Deno.test("parsePairsOptions() refuses commits that git would take for options, and too few pairs", () => {
  throws(() => parsePairsOptions(["--before=--output=x"]), /must name a commit/);
  throws(() => parsePairsOptions(["--before=a", "--starts=1", "--blocks=5"]), /must be at least 6/);
});

Deno.test("parsePairsOptions() gives nothing when help is asked for", () => {
  strictEqual(parsePairsOptions(["--help"]), undefined);
});
