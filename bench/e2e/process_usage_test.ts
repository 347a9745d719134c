import { deepStrictEqual } from "node:assert/strict";
import { parseUsage } from "./process_usage.ts";

Deno.test("parseUsage() adds user and system time behind a name with spaces and parentheses", () => {
  const stat = "4242 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0 9 0 999";
  const status = "Name:\ta (b) c\nVmPeak:\t  900000 kB\nVmRSS:\t   51234 kB\nThreads:\t9\n";
  deepStrictEqual(parseUsage(`${stat}\n${status}`), {
    cpuUs: (123 + 45) * 10_000,
    residentBytes: 51234 * 1024,
  });
});
