import assert from "node:assert/strict";
import { until } from "../until.ts";
import { Child } from "./child.ts";
import { Run } from "./run.ts";
import { runProgram } from "./run_program.ts";

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch {
    return false;
  }
}

Deno.test("Run removes its directory when it ends", async () => {
  const run = await Run.start();
  await Deno.writeTextFile(run.path("node.log"), "x");
  await run[Symbol.asyncDispose]();
  await run[Symbol.asyncDispose]();
  assert.equal(await exists(run.directory), false);
});

Deno.test("Run.keep() leaves the directory", async () => {
  const run = await Run.start();
  try {
    await run.keep();
    await run[Symbol.asyncDispose]();
    assert.ok(await exists(run.directory));
  } finally {
    await Deno.remove(run.directory, { recursive: true });
  }
});

Deno.test("runProgram() ends the program of a run that is to end early, and starts none after that", async () => {
  const ending = new AbortController();
  await using run = await Run.start(ending.signal);
  const file = run.path("begun");
  const waits = `echo $$ >${file}; exec sleep 3600`;
  const running = runProgram("sh", ["-c", waits], { run });
  await until(() => exists(file), { what: "the program has begun" });
  ending.abort();
  assert.equal((await running)?.code, 143);
  await assert.rejects(runProgram("sh", ["-c", waits], { run }), { name: "AbortError" });
});

/** A harness that starts a run with one child, which connects to `port`, and then waits. */
function owner(port: number, beforeWaiting = ""): Child {
  const here = new URL(".", import.meta.url);
  const code = `
    import { Run } from "${new URL("run.ts", here)}";
    import { Child } from "${new URL("child.ts", here)}";
    const run = await Run.start();
    const code = 'await (await Deno.connect({ port: ${port} })).readable.pipeTo(new WritableStream())';
    new Child({ name: "c", program: Deno.execPath(), args: ["eval", "--no-config", code], run });
    console.log(run.directory);
    ${beforeWaiting}
    setInterval(() => {}, 1000);`;
  return new Child({ name: "owner", program: Deno.execPath(), args: ["eval", code] });
}

Deno.test("Run's watchdog ends children and removes the directory after kill -9 of their owner", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  await using harness = owner(listener.addr.port);
  using connection = await listener.accept(); // the child is alive
  listener.close();
  const directory = harness.log.lines[0]?.text ??
    await until(() => harness.log.lines[0]?.text, { what: "the directory is printed" });
  assert.ok(await exists(directory));
  await harness.kill();
  assert.equal(await connection.read(new Uint8Array(1)).catch(() => null), null, "child has died");
  await until(async () => !await exists(directory), { what: "the directory is gone" });
});

Deno.test("Run's watchdog leaves the directory of a kept run after kill -9 of its owner", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  await using harness = owner(listener.addr.port, "await run.keep(); console.log('kept');");
  using connection = await listener.accept();
  listener.close();
  await until(() => harness.log.lines.some((line) => line.text === "kept"), { what: "kept" });
  await harness.kill();
  assert.equal(await connection.read(new Uint8Array(1)).catch(() => null), null, "child has died");
  const directory = harness.log.lines[0]!.text;
  assert.ok(await exists(directory));
  await Deno.remove(directory, { recursive: true });
});
