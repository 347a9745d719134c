import assert from "node:assert/strict";
import { EventLog } from "../../admin/mod.ts";
import { createLogger, HeardLog, MemoryLogger } from "../../observe/mod.ts";
import { tellOperators } from "./event_feed.ts";

function fixture() {
  const events = new EventLog(() => 0);
  const inner = new MemoryLogger();
  const log = new HeardLog(inner, (entry) => tellOperators(events, entry));
  return { events, inner, log };
}

Deno.test("tellOperators() makes an event of a lost link, and a warning unless it ended in order", () => {
  const { events, log } = fixture();
  const fields = { host: "dc2.example.com", endpoint: "10.0.0.2#5555", direction: "out" };
  log.info("link.closed", { ...fields, reason: "lost", detail: "net/reset" });
  log.info("link.closed", { ...fields, reason: "superseded", detail: "" });
  log.info("link.closed", { ...fields, direction: "in", reason: "lost", detail: "" });
  const [incoming, orderly, lost] = events.newest;
  assert.equal(lost!.kind, "link-lost");
  assert.equal(lost!.severity, "warning");
  assert.equal(lost!.datacenter, "dc2.example.com");
  assert.equal(lost!.text, "The link to dc2.example.com is down: lost: net/reset");
  assert.equal(orderly!.severity, "info");
  assert.equal(incoming!.kind, "incoming-link-lost");
});

Deno.test("tellOperators() makes an event of an action, which HeardLog logs as audited", () => {
  const events = new EventLog(() => 0);
  const lines: string[] = [];
  const inner = createLogger({ level: "error", write: (line) => lines.push(line) });
  const log = new HeardLog(inner, (entry) => tellOperators(events, entry));
  log.audit("admin.action", { who: "ops", action: "reload", outcome: "done" });
  assert.equal(events.newest[0]!.text, "ops: reload: done");
  log.audit("admin.action", { who: "unknown", action: "kick", outcome: "refused" });
  assert.equal(events.newest.length, 1, "a stranger pushes out no event");
  assert.match(lines[0]!, / INFO {2}admin\.action who=ops action=reload outcome=done\n$/);
});

Deno.test("tellOperators() tells of a reload that took effect in part, and of one that was refused", () => {
  const { events, log } = fixture();
  log.error("config.reload-refused", { error: "no such file" });
  log.error("config.reload-incomplete", { error: "a bug" });
  assert.deepEqual(events.newest.map(({ kind, severity, text }) => [kind, severity, text]), [
    ["configuration-incomplete", "error", "The configuration is in force only in part: a bug"],
    [
      "configuration-refused",
      "error",
      "The configuration cannot be used, so nothing has changed: no such file",
    ],
  ]);
});

Deno.test("tellOperators() tells of no other log lines, and HeardLog logs all of them", () => {
  const { events, inner, log } = fixture();
  log.info("sm.resumed", { jid: "alice@example.com/phone" });
  log.debug("link.opened", { host: "dc2.example.com" });
  log.warn("constructor");
  assert.equal(events.newest.length, 0);
  assert.deepEqual(inner.entries.map(({ event }) => event), [
    "sm.resumed",
    "link.opened",
    "constructor",
  ]);
});

Deno.test("tellOperators() shows neither secrets nor long texts, and no nested values", () => {
  const { events, log } = fixture();
  log.warn("redis.down", { reason: "x".repeat(5000), password: "hush", list: [1], count: 3 });
  const [event] = events.newest;
  assert.deepEqual(Object.keys(event!.details), ["reason", "password", "count"]);
  assert.equal(event!.details["password"], "[redacted]");
  assert.ok(event!.text.length <= 501 && String(event!.details["reason"]).length <= 501);
});
