import { deepEqual } from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { AnswerWatch } from "./answer_watch.ts";

Deno.test("AnswerWatch tells of commands that wait three times as long as silence may last, once", () => {
  const clock = new ManualClock();
  const late: number[] = [];
  const watch = new AnswerWatch({ silenceMs: 100, late: (waitedMs) => late.push(waitedMs), clock });
  const [one, two, three] = [{}, {}, {}];
  watch.asked(one);
  clock.advance(200);
  watch.asked(two);
  watch.answered(one);
  clock.advance(299);
  watch.asked(three);
  deepEqual(late, []);
  clock.advance(1);
  deepEqual(late, [300]);
  clock.advance(1_000);
  deepEqual(late, [300], "the connection has ended, and all commands with it");
  watch.asked(one);
  watch.answered(one);
  clock.advance(1_000);
  deepEqual(late, [300]);
  watch.asked(two);
  watch.close();
  clock.advance(1_000);
  deepEqual(late, [300]);
});
