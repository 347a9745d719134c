import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MemoryLogger } from "../observe/mod.ts";
import { AuditLog } from "./audit_log.ts";

const KNOWN = {
  who: "ops",
  role: "act",
  from: "127.0.0.1:1",
  action: "retry",
  outcome: "done",
  text: "It is done",
} as const;

function fixture() {
  const clock = new ManualClock();
  const log = new MemoryLogger();
  const audit = new AuditLog(log, clock);
  let port = 1000;
  const knock = (times: number, address = "192.0.2.1") => {
    for (let i = 0; i < times; i++) {
      audit.addStranger({ action: "kick", from: `${address}:${port++}`, text: "no token" });
    }
  };
  const counts = () => log.named("admin.action").map(({ fields }) => fields["count"] ?? 1);
  return { audit, clock, knock, log, counts };
}

Deno.test("AuditLog gives strangers ten entries a minute, and one more that counts the others", () => {
  const { audit, clock, knock, log, counts } = fixture();
  knock(10);
  assert.equal(clock.pendingTimers, 0);
  knock(1);
  knock(100_000, "192.0.2.2");
  knock(5, "[2001:db8::1]");
  assert.deepEqual(counts(), Array(10).fill(1));
  clock.advance(59_999);
  assert.equal(counts().length, 10);
  clock.advance(1);
  assert.deepEqual(counts(), [...Array(10).fill(1), 100_006]);
  const [entry] = audit.newest;
  assert.deepEqual([entry!.who, entry!.role, entry!.outcome], ["unknown", undefined, "refused"]);
  assert.equal(
    entry!.text,
    "100006 more were refused within a minute, to callers at 3 addresses. The last: no token",
  );
  knock(11);
  assert.deepEqual(counts().slice(11), Array(10).fill(1), "the next minute begins anew");
  clock.advance(60_000);
  assert.deepEqual(counts().slice(21), [1]);
  assert.match(log.named("admin.action").at(-1)!.fields["text"] as string, /at one address/);
  clock.advance(600_000);
  assert.equal(counts().length, 22, "no entry without a refusal");
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("AuditLog.close() writes the count that is still to come", () => {
  const { audit, clock, knock, counts } = fixture();
  audit.close();
  assert.deepEqual(counts(), []);
  knock(13);
  audit.close();
  assert.deepEqual(counts(), [...Array(10).fill(1), 3]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("AuditLog keeps the last 500 actions of known callers, however often strangers ask", () => {
  const { audit, clock, knock, log } = fixture();
  for (let i = 0; i < 501; i++) audit.add({ ...KNOWN, text: `number ${i}` });
  for (let minute = 0; minute < 100; minute++) {
    knock(1_000);
    clock.advance(60_000);
  }
  const { newest } = audit;
  const known = newest.filter(({ who }) => who === "ops");
  assert.equal(newest.length, 550);
  assert.equal(known.length, 500);
  assert.equal(known.at(-1)!.text, "number 1");
  const ids = newest.map(({ id }) => id);
  assert.deepEqual(ids, ids.toSorted((a, b) => b - a), "newest first");
  audit.add(KNOWN);
  assert.equal(audit.newest[0]!.who, "ops");
  assert.equal(log.named("admin.action").length, 501 + 100 * 11 + 1);
});

Deno.test("AuditLog counts a bounded number of addresses", () => {
  const { audit, clock, knock } = fixture();
  for (let i = 0; i < 3_000; i++) knock(1, `192.0.${i >> 8}.${i & 255}`);
  clock.advance(60_000);
  assert.match(audit.newest[0]!.text, /^2990 more .* at 1000 or more addresses\. /);
});
