import assert from "node:assert/strict";
import { FramingError, MessageFraming } from "./message_framing.ts";

const SHORT = Uint8Array.of(0x30, 0x05, 1, 2, 3, 4, 5);
const LONG = Uint8Array.of(0x30, 0x81, 0x80, ...new Uint8Array(0x80).fill(7));

Deno.test("MessageFraming.push() returns whole messages, wherever they are cut", () => {
  const stream = Uint8Array.of(...SHORT, ...LONG, ...SHORT);
  const expected = [SHORT, LONG, SHORT].map((each) => [...each]);
  for (let cut = 0; cut <= stream.length; cut++) {
    const framing = new MessageFraming(1000);
    const got = [...framing.push(stream.subarray(0, cut)), ...framing.push(stream.subarray(cut))];
    assert.deepEqual(got.map((each) => [...each]), expected, String(cut));
  }
  const framing = new MessageFraming(1000);
  const single = [...stream].flatMap((byte) => [...framing.push(Uint8Array.of(byte))]);
  assert.deepEqual(single.map((each) => [...each]), expected);
});

Deno.test("MessageFraming.push() refuses a length above the limit before it keeps anything", () => {
  assert.equal(new MessageFraming(0x80).push(LONG).length, 1);
  assert.throws(
    () => new MessageFraming(0x7f).push(LONG.subarray(0, 3)),
    (thrown) => thrown instanceof FramingError && thrown.kind === "too-large",
  );
});

Deno.test("MessageFraming.push() refuses what is no message", () => {
  for (const bytes of [[0x31], [0x48, 0x54], [0x30, 0x80], [0x30, 0x85], [0x30, 0x00], [0x30, 4]]) {
    assert.throws(
      () => new MessageFraming(1000).push(Uint8Array.from(bytes)),
      (thrown) => thrown instanceof FramingError && thrown.kind === "garbled",
      String(bytes),
    );
  }
});
