import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { SILENT_LOGGER } from "../../../observe/mod.ts";
import { Heartbeat } from "./heartbeat.ts";
import { LEASES_PER_REFRESH, resolveTable } from "../options.ts";
import { RedisRefusal } from "../redis/ask.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";

/** Makes a heartbeat whose publication answers as `answer` says. */
function heart() {
  const clock = new ManualClock();
  const heard: string[] = [];
  const publication = {
    isSuperseded: false,
    hasBeenForgotten: false,
    hasNewId: false,
    answer: (): Promise<boolean> => Promise.resolve(true),
    beat(): Promise<boolean> {
      heard.push("beat");
      return this.answer();
    },
  };
  const options = resolveTable({
    globalHost: "example.com",
    localHost: "dc1.example.com",
    nodeName: "node1",
    incarnation: 1,
  });
  const heartbeat = new Heartbeat({
    clock,
    logger: SILENT_LOGGER,
    options,
    publication,
    entries: () => 0,
    failed: () => void heard.push("failed"),
    changed: (isUp) => void heard.push(isUp ? "up" : "away"),
    restored: (hasLost) => void heard.push(hasLost ? "restored, empty" : "restored"),
    lostData: () => void heard.push("lost data"),
    renamed: () => void heard.push("renamed"),
    beaten: () => Promise.resolve(void heard.push("beaten")),
    superseded: () => void heard.push("superseded"),
  });
  return { clock, options, publication, heartbeat, take: () => heard.splice(0) };
}

Deno.test("Heartbeat.beat() restores once, and reports lost data although Redis was never away", async () => {
  const { publication, heartbeat, take } = heart();
  await heartbeat.beat();
  assert.deepEqual(take(), [], "not started");
  heartbeat.start();
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "up", "restored", "beaten"]);
  assert.deepEqual([heartbeat.status, heartbeat.reason], ["up", undefined]);
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "beaten"]);
  heartbeat.keyLost();
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "lost data", "beaten"]);
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "beaten"]);
  publication.hasNewId = true;
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "renamed", "beaten"]);
  publication.hasNewId = false;
  heartbeat.degrade("cut");
  publication.hasBeenForgotten = true;
  await heartbeat.beat();
  assert.deepEqual(take(), ["failed", "away", "beat", "up", "restored, empty", "beaten"]);
});

Deno.test("Heartbeat.isDue is true every quarter of a refresh, and each second while Redis is away", async () => {
  const { clock, options, heartbeat } = heart();
  heartbeat.start();
  assert.equal(heartbeat.isDue, true);
  await heartbeat.beat();
  const everyMs = options.redis.refreshAfterMs / LEASES_PER_REFRESH;
  clock.advance(everyMs - 1);
  assert.equal(heartbeat.isDue, false);
  clock.advance(1);
  assert.equal(heartbeat.isDue, true);
  await heartbeat.beat();
  heartbeat.degrade("cut");
  clock.advance(999);
  assert.equal(heartbeat.isDue, false);
  heartbeat.degrade("still cut"); // does not delay the next beat
  clock.advance(1);
  assert.equal(heartbeat.isDue, true);
});

Deno.test("Heartbeat.firstAttempt() ends with a beat, a refusal, a lost connection, or commandTimeoutMs", async () => {
  const beaten = heart();
  beaten.heartbeat.start();
  const first = beaten.heartbeat.firstAttempt();
  await beaten.heartbeat.beat();
  await first;

  const refused = heart();
  const noPassword = new RedisRefusal(new RedisErrorReply("NOAUTH Authentication required."));
  refused.publication.answer = () => Promise.reject(noPassword);
  refused.heartbeat.start();
  await Promise.all([refused.heartbeat.firstAttempt(), refused.heartbeat.beat()]);
  assert.equal(refused.heartbeat.refusal, noPassword.message);
  assert.equal(refused.heartbeat.status, "degraded");

  const lost = heart();
  lost.heartbeat.start();
  lost.heartbeat.disconnected("nobody listens");
  await lost.heartbeat.firstAttempt();
  assert.equal(lost.heartbeat.reason, "nobody listens");

  const slow = heart();
  slow.heartbeat.start();
  const late = slow.heartbeat.firstAttempt();
  slow.clock.advance(slow.options.redis.commandTimeoutMs);
  await late;
  assert.equal(slow.heartbeat.reason, "not yet connected");
});

Deno.test("Heartbeat.close() stops further beats, and ignores later failures", async () => {
  const { heartbeat, take } = heart();
  heartbeat.start();
  await heartbeat.beat();
  take();
  heartbeat.close();
  await heartbeat.beat();
  heartbeat.degrade("cut");
  await heartbeat.idle();
  assert.deepEqual(take(), []);
});

Deno.test("Heartbeat.beat() reports a newer process with the node's name, and writes no more", async () => {
  const { publication, heartbeat, take } = heart();
  publication.answer = () => {
    publication.isSuperseded = true;
    return Promise.resolve(false);
  };
  heartbeat.start();
  await heartbeat.beat();
  await heartbeat.beat();
  assert.deepEqual(take(), ["beat", "superseded"]);
});
