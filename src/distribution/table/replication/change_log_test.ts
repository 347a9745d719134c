import assert from "node:assert/strict";
import type { TableRecord } from "../../wire/mod.ts";
import { ChangeLog } from "./change_log.ts";

function record(sequence: number): TableRecord {
  const name = "bob@example.com";
  return { kind: "claim", isHidden: false, sequence, epoch: 1, name, resourcepart: "phone" };
}

function filled(count: number, capacity: number): ChangeLog {
  const log = new ChangeLog(capacity);
  for (let i = 1; i <= count; i++) log.append(record(i));
  return log;
}

Deno.test("ChangeLog.behind() gives changes in order, up to the given number", () => {
  const log = filled(5, 8);
  assert.equal(log.lastNumber, 5);
  assert.deepEqual(log.behind(0, 100).map(({ sequence }) => sequence), [1, 2, 3, 4, 5]);
  assert.deepEqual(log.behind(3, 1).map(({ sequence }) => sequence), [4]);
  assert.deepEqual(log.behind(5, 100), []);
});

Deno.test("ChangeLog.reaches() exactly as many changes back as its capacity", () => {
  const log = filled(10, 4);
  assert.equal(log.reaches(6), true);
  assert.equal(log.reaches(5), false);
  assert.equal(log.reaches(10), true);
  assert.equal(log.reaches(11), false, "change 11 does not exist yet");
  assert.deepEqual(log.behind(6, 100).map(({ sequence }) => sequence), [7, 8, 9, 10]);
});
