import { ok, strictEqual } from "node:assert/strict";
import { cpuUsOf, processUsage } from "./process_usage.ts";

Deno.test("cpuUsOf() adds user and system time behind a name with spaces and parentheses", () => {
  const stat = "4242 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0 9 0 999";
  strictEqual(cpuUsOf(stat), (123 + 45) * 10_000);
});

Deno.test("processUsage() sees the memory of this process", async () => {
  const usage = await processUsage(Deno.pid);
  ok(usage.residentBytes > 1_000_000);
  ok(usage.cpuUs >= 0);
});
