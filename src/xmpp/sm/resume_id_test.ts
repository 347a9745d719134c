import assert from "node:assert/strict";
import { randomIncarnation } from "../../base/mod.ts";
import { PassedOn } from "./passed_on.ts";
import { newResumeId, processOfResumeId } from "./resume_id.ts";

Deno.test("newResumeId() names its process, and is never the same", () => {
  for (const process of [1, randomIncarnation(), Number.MAX_SAFE_INTEGER]) {
    const ids = new Set(Array.from({ length: 100 }, () => newResumeId(process)));
    assert.equal(ids.size, 100);
    for (const id of ids) assert.equal(processOfResumeId(id), process);
  }
});

Deno.test("processOfResumeId() returns undefined for text that is no id of ours", () => {
  const secret = "0123456789abcdef".repeat(2);
  const texts = ["", secret, `-${secret}`, `0-${secret}`, `1-${secret}0`, `1-${secret.slice(1)}`];
  texts.push(`ffffffffffffff-${secret}`, `1x-${secret}`, `1-${secret}\n`, `A-${secret}`);
  for (const text of texts) assert.equal(processOfResumeId(text), undefined, text);
});

Deno.test("PassedOn returns a moved session's process to its own account only, for the last maxEntries", () => {
  const passed = new PassedOn(2);
  passed.add("a", "alice@example.com", 1);
  passed.add("b", "alice@example.com", 2);
  assert.equal(passed.get("a", "alice@example.com"), 1);
  assert.equal(passed.get("a", "bob@example.com"), undefined);
  passed.add("a", "alice@example.com", 3); // it counts as new
  passed.add("c", "alice@example.com", 4);
  assert.equal(passed.get("b", "alice@example.com"), undefined);
  assert.equal(passed.get("a", "alice@example.com"), 3);
  passed.delete("a");
  assert.equal(passed.get("a", "alice@example.com"), undefined);
});
