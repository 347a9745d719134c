import assert from "node:assert/strict";
import { CausewayError } from "../base/mod.ts";
import { createLogger } from "./create_logger.ts";
import type { LoggerOptions } from "./create_logger.ts";

function logTo(options: LoggerOptions) {
  const lines: string[] = [];
  return { lines, log: createLogger({ ...options, write: (line) => lines.push(line) }) };
}

Deno.test("createLogger() writes one JSON object a line", () => {
  const { lines, log } = logTo({ format: "json" });
  log.warn("link.closed", {
    peer: "dc2.example.com",
    ageMs: 12,
    event: "mine",
    nothing: undefined,
  });
  assert.equal(lines.length, 1);
  assert.ok(lines[0]!.endsWith("}\n"));
  const { time, ...rest } = JSON.parse(lines[0]!);
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(rest, {
    level: "warn",
    event: "link.closed",
    peer: "dc2.example.com",
    ageMs: 12,
    event_: "mine",
  });
});

Deno.test("createLogger() writes text for people that no value can break out of", () => {
  const { lines, log } = logTo({ format: "text" });
  log.info("c2s.opened", { jid: "alice@example.com/phone", why: 'a "b"\n2026 ERROR forged', n: 3 });
  assert.match(
    lines[0]!,
    /^\S+Z INFO {2}c2s\.opened jid=alice@example\.com\/phone why="a \\"b\\"\\n2026 ERROR forged" n=3\n$/,
  );
});

Deno.test("createLogger() escapes everything that a terminal obeys, and loses none of it", () => {
  const detail = "\u009b31m \u0085 \u2028 \u202e\u2066 \u007f \u001b[2J é 😀";
  for (const format of ["json", "text"] as const) {
    const { lines, log } = logTo({ format });
    log.warn("link.closed", { detail });
    assert.doesNotMatch(
      lines[0]!.trimEnd(),
      /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u,
    );
    assert.ok(lines[0]!.includes("é 😀"));
    if (format === "json") assert.equal(JSON.parse(lines[0]!).detail, detail);
  }
});

Deno.test("createLogger() drops events below its level", () => {
  const { lines, log } = logTo({ level: "warn" });
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  assert.deepEqual(lines.map((line) => line.trim().split(/\s+/)[2]), ["c", "d"]);
});

Deno.test("createLogger() writes audit events at any level, once", () => {
  for (const level of ["debug", "info", "warn", "error"] as const) {
    const { lines, log } = logTo({ level, format: "json" });
    log.audit("admin.action", { who: "ops", token: "hunter2" });
    assert.equal(lines.length, 1, level);
    const { time: _, ...rest } = JSON.parse(lines[0]!);
    assert.deepEqual(rest, {
      level: "info",
      event: "admin.action",
      who: "ops",
      token: "[redacted]",
    });
  }
});

Deno.test("createLogger() never writes a secret, at any depth", () => {
  for (const format of ["json", "text"] as const) {
    const { lines, log } = logTo({ format });
    log.info("auth.failed", {
      password: "hunter2",
      nested: [{ "Shared-Secret": "hunter2", list: new Map([["api_key", "hunter2"]]) }],
      headers: { Authorization: "Bearer hunter2" },
      stored_key: "hunter2",
      bytes: new TextEncoder().encode("hunter2"),
      keyword: "kept",
    });
    assert.ok(!lines[0]!.includes("hunter2"), lines[0] ?? "");
    assert.ok(lines[0]!.includes("[redacted]"));
    assert.ok(lines[0]!.includes("kept"));
  }
});

Deno.test("createLogger() writes errors, BigInts and cycles without failing", () => {
  const { lines, log } = logTo({ format: "json" });
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  log.error("link.failed", {
    error: new CausewayError("net/reset", "Lost it"),
    big: 1n,
    cycle,
    long: "x".repeat(5000),
    "{brace}": "{event}",
  });
  const entry = JSON.parse(lines[0]!);
  assert.equal(entry.error, "net/reset: Lost it");
  assert.equal(entry.big, "1");
  assert.equal(entry.long.length, 2001);
  assert.equal(entry["{brace}"], "{event}");
});
