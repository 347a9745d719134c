import assert from "node:assert/strict";
import { OwnProcesses } from "./own_processes.ts";

Deno.test("OwnProcesses remembers 1024, and forgets the first one with one more", () => {
  const own = new OwnProcesses();
  for (let process = 1; process <= 1024; process++) own.note(process);
  own.note(1);
  assert.deepEqual([own.has(1), own.has(1024), own.has(1025)], [true, true, false]);
  own.note(1025);
  assert.deepEqual([own.has(1), own.has(2), own.has(1025)], [false, true, true]);
});
