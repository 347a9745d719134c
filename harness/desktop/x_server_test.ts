import assert from "node:assert/strict";
import { Run, runProgram } from "../process/mod.ts";
import { XServer } from "./x_server.ts";

Deno.test("XServer has a place for each program that comes while others leave", async () => {
  await using run = await Run.start();
  await using screen = await XServer.start(run);
  let failed = 0;
  const comeAndLeave = async () => {
    for (let times = 0; times < 40; times++) {
      const env = { DISPLAY: screen.display };
      const ended = await runProgram("xdotool", ["getmouselocation"], { env });
      if (ended?.code !== 0) failed++;
    }
  };
  await Promise.all([comeAndLeave(), comeAndLeave()]);
  assert.equal(failed, 0);
});
