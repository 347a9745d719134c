import assert from "node:assert/strict";
import { until } from "../until.ts";
import { Child } from "./child.ts";
import { Run } from "./run.ts";

/** A deno process that runs `code` without any permission. */
function script(code: string, env: Record<string, string> = {}, run?: Run): Child {
  return new Child({
    ...(run && { run }),
    name: "script",
    program: Deno.execPath(),
    args: ["eval", "--no-config", code],
    env,
  });
}

const WAITS = `console.log("up"); setInterval(() => console.log("tick"), 5);`;

function hasSaid(child: Child, text: string): Promise<unknown> {
  return until(() => child.log.lines.some((line) => line.text === text), {
    what: `the script says ${text}`,
    evidence: () => child.log.tail(),
  });
}

Deno.test("Child keeps every line of both streams and the exit code", async () => {
  await using child = script(
    `console.log("one\\r\\ntwo"); console.error("three"); Deno.stdout.writeSync(new TextEncoder().encode("end"));` +
      `Deno.exit(Number(Deno.env.get("CODE")))`,
    { CODE: "3" },
  );
  assert.deepEqual(await child.exited, { code: 3, signal: null });
  const said = (stream: string) =>
    child.log.lines.filter((line) => line.stream === stream).map((line) => line.text);
  assert.deepEqual(said("stdout"), ["one", "two", "end"]);
  assert.deepEqual(said("stderr"), ["three"]);
  assert.equal(child.isRunning, false);
});

Deno.test("Child.stop() ends a process with SIGTERM", async () => {
  await using child = script(WAITS);
  await hasSaid(child, "up");
  assert.deepEqual(await child.stop(), { code: 143, signal: "SIGTERM" });
  assert.deepEqual(await child.stop(), { code: 143, signal: "SIGTERM" }, "again is harmless");
});

Deno.test("Child.stop() kills a process that does not listen to SIGTERM", async () => {
  await using child = script(`Deno.addSignalListener("SIGTERM", () => {}); ${WAITS}`);
  await hasSaid(child, "up");
  assert.equal((await child.stop(1)).signal, "SIGKILL");
});

Deno.test("Child.stop() does not wait long for a process whose run is to end early", async () => {
  const ending = new AbortController();
  await using run = await Run.start(ending.signal);
  await using child = script(`Deno.addSignalListener("SIGTERM", () => {}); ${WAITS}`, {}, run);
  await hasSaid(child, "up");
  const stopping = child.stop(3_600_000);
  ending.abort();
  assert.equal((await stopping).signal, "SIGKILL");
});

Deno.test("Child.pause() holds a process still until resume()", async () => {
  await using child = script(WAITS);
  await hasSaid(child, "tick");
  child.pause();
  // Output from before the signal arrives first. After that, nothing new may arrive.
  let before = -1;
  await until(() => {
    const quiet = child.log.lines.length === before;
    before = child.log.lines.length;
    return quiet;
  }, { what: "the paused script falls silent", everyMs: 100 });
  child.resume();
  await until(() => child.log.lines.length > before, { what: "the script goes on" });
  child.pause();
  assert.equal((await child.stop()).signal, "SIGTERM", "a paused process hears SIGTERM");
});

Deno.test("Child.kill() ends a paused process", async () => {
  await using child = script(WAITS);
  await hasSaid(child, "up");
  child.pause();
  assert.equal((await child.kill()).signal, "SIGKILL");
});

Deno.test("Child says at once that there is no such program, or none that it may run", () => {
  assert.throws(
    () => new Child({ name: "nobody", program: "/nowhere/at-all", args: [] }),
    (thrown) => thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotCapable,
  );
});
