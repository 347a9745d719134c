import assert from "node:assert/strict";
import { LineLog } from "./line_log.ts";

function streamOf(...chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return ReadableStream.from(chunks);
}

Deno.test("LineLog.drain() joins lines and characters that arrive in pieces", async () => {
  const bytes = new TextEncoder().encode("grüße\r\nzwei\n\ndrei");
  const log = new LineLog();
  await log.drain(streamOf(...Array.from(bytes, (byte) => Uint8Array.of(byte))), "stdout");
  assert.deepEqual(log.lines.map((line) => line.text), ["grüße", "zwei", "", "drei"]);
});

Deno.test("LineLog forgets old lines in memory and none in its file", async () => {
  const file = await Deno.makeTempFile();
  try {
    const log = new LineLog({ maxLines: 10, file });
    for (let i = 1; i <= 25; i++) log.add({ stream: "stderr", text: `line ${i}` });
    log.close();
    assert.ok(log.lines.length <= 10);
    assert.equal(log.tail(2), "line 24\nline 25");
    assert.equal((await Deno.readTextFile(file)).split("\n").length, 26);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("LineLog.watch() reports each line until it is ended", () => {
  const log = new LineLog();
  const seen: string[] = [];
  const end = log.watch((line) => seen.push(line.text));
  log.add({ stream: "stdout", text: "a" });
  end();
  log.add({ stream: "stdout", text: "b" });
  assert.deepEqual(seen, ["a"]);
});
