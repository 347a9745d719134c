import assert from "node:assert/strict";
import { join } from "node:path";
import { StateFile } from "./import_state.ts";

Deno.test("StateFile.open() refuses a state that another import uses, until that has ended", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-state-" });
  const path = join(directory, "state");
  {
    using first = await StateFile.open(path);
    await assert.rejects(StateFile.open(path), { code: "migration/in-use" });
    await first.write({
      source: "a",
      counts: { added: 0, there: 0, refused: 0, onlySha1: 0, onlySha256: 0, findings: 0 },
      reportBytes: 0,
    });
    await assert.rejects(StateFile.open(path), { code: "migration/in-use" });
  }
  {
    using next = await StateFile.open(path);
    assert.equal((await next.read("a"))?.source, "a");
  }
  const names = (await Array.fromAsync(Deno.readDir(directory))).map(({ name }) => name);
  assert.deepEqual(names, ["state"], "no lock stays");
  await Deno.remove(directory, { recursive: true });
});

Deno.test("StateFile.open() does not wait for an import that was killed", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-state-" });
  const path = join(directory, "state");
  const module = new URL("./import_state.ts", import.meta.url).href;
  const script = `import { StateFile } from ${JSON.stringify(module)};` +
    `globalThis.state = await StateFile.open(${JSON.stringify(path)});` +
    'console.log("open"); await new Promise((resolve) => setTimeout(resolve, 1e9));';
  const process = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-check", script],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = process.stdout.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "open\n");
  await assert.rejects(StateFile.open(path), { code: "migration/in-use" });
  process.kill("SIGKILL");
  await process.status;
  await reader.cancel();
  (await StateFile.open(path))[Symbol.dispose]();
  await Deno.remove(directory, { recursive: true });
});
