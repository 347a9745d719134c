import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { MessageBatch } from "./message_batch.ts";

Deno.test("MessageBatch.stamped() gives messages of the size asked for, each with its own id", () => {
  const batch = new MessageBatch("bob@example.com/r", { capacity: 4, messageBytes: 300 });
  const text = new TextDecoder().decode(batch.stamped(3, 41, 123_456));
  strictEqual(text.length, 900);
  const messages = text.split(/(?<=<\/message>)/);
  deepStrictEqual(messages.map((message) => /id='(\w+)'/.exec(message)?.[1]), [
    "m000000000041",
    "m000000000042",
    "m000000000043",
  ]);
  deepStrictEqual(messages.map((message) => /~(\d+) /.exec(message)?.[1]), [
    "000000123456",
    "000000123456",
    "000000123456",
  ]);
});
