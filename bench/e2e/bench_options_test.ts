import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { parseBenchOptions } from "./bench_options.ts";

Deno.test("parseBenchOptions() has a default for everything", () => {
  deepStrictEqual(parseBenchOptions([]), {
    rows: new Set([
      "messages",
      "table",
      "roster",
      "login",
      "storm",
      "archive",
      "archived-messages",
      "slow-database",
    ]),
    datacenters: 2,
    pairs: 10,
    inFlight: 32,
    direction: "one-way",
    messageBytes: 300,
    runs: 5,
    seconds: 5,
    warmUpSeconds: 5,
    pacePerSecond: 2000,
    sessions: 100_000,
    logins: 10_000,
    sessionRate: 0,
    databases: ["postgresql"],
    entries: 1_000_000,
    hasSearch: false,
    hasRemovals: false,
    tracedRatio: 0,
    json: undefined,
    check: false,
  });
});

Deno.test("parseBenchOptions() reports every mistake at once", () => {
  const args = [
    "--pairs",
    "0",
    "--seconds",
    "x",
    "--direction",
    "up",
    "--runs",
    "1.5",
    "--rows",
    "up",
    "--databases",
    "oracle",
  ];
  throws(() => parseBenchOptions(args), (thrown: Error) => {
    for (const name of ["--pairs", "--seconds", "--direction", "--runs", "--rows", "--databases"]) {
      strictEqual(thrown.message.includes(name), true, name);
    }
    return thrown instanceof RangeError;
  });
});

Deno.test("parseBenchOptions() gives nothing when help is asked for", () => {
  strictEqual(parseBenchOptions(["--help"]), undefined);
});

Deno.test("parseBenchOptions() takes some of the rows", () => {
  deepStrictEqual(
    parseBenchOptions(["--rows", "login,roster"])?.rows,
    new Set(["login", "roster"]),
  );
});
