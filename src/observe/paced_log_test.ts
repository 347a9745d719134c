import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MemoryLogger } from "./log.ts";
import { PacedLog } from "./paced_log.ts";

function fixture() {
  const clock = new ManualClock();
  const logger = new MemoryLogger();
  return { clock, logger, log: new PacedLog(logger, clock) };
}

Deno.test("PacedLog.warn() writes the first line at once, and one a minute with the count", () => {
  const { clock, logger, log } = fixture();
  for (let i = 1; i <= 200; i++) log.warn("refused", "dc9#node1", { detail: i });
  assert.deepEqual(logger.entries.map(({ fields }) => fields), [{ detail: 1 }]);
  clock.advance(59_999);
  log.flush();
  assert.equal(logger.entries.length, 1);
  clock.advance(1);
  log.flush();
  log.flush();
  assert.deepEqual(logger.entries.slice(1).map(({ fields }) => fields), [
    { detail: 200, count: 199 },
  ]);
  clock.advance(60_000);
  log.warn("refused", "dc9#node1", { detail: "again" });
  assert.deepEqual(logger.entries.at(-1)?.fields, { detail: "again" });
});

Deno.test("PacedLog.warn() counts each event and each source by itself", () => {
  const { logger, log } = fixture();
  log.warn("refused", "one", {});
  log.warn("refused", "other", {});
  log.warn("full", "one", {});
  assert.equal(logger.entries.length, 3);
});

Deno.test("PacedLog remembers a bounded number of sources", () => {
  const { logger, log } = fixture();
  for (let i = 0; i <= 1_024; i++) log.warn("refused", `source ${i}`, {});
  logger.entries.length = 0;
  log.warn("refused", "source 1024", {});
  assert.equal(logger.entries.length, 0, "it is remembered");
  log.warn("refused", "source 0", {});
  assert.equal(logger.entries.length, 1, "the oldest was forgotten");
});

Deno.test("PacedLog with more lines a minute writes so many at once, and counts the others", () => {
  const { clock, logger } = fixture();
  const log = new PacedLog(logger, clock, 3);
  for (let i = 1; i <= 10; i++) log.info("opened", "dc9", { i });
  clock.advance(60_000);
  log.flush();
  for (let i = 11; i <= 20; i++) log.info("opened", "dc9", { i });
  assert.deepEqual(logger.entries.map(({ fields }) => fields), [
    { i: 1 },
    { i: 2 },
    { i: 3 },
    { i: 10, count: 7 },
    { i: 11 },
    { i: 12 },
  ]);
});
