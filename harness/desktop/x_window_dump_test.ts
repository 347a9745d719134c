import assert from "node:assert/strict";
import { decodeXWindowDump } from "./x_window_dump.ts";

/** A screen of 2 x 1 pixels with one entry in its map of colours. */
function dump(fields: Readonly<Record<number, number>> = {}): Uint8Array {
  const words = { 0: 104, 1: 7, 4: 2, 5: 1, 7: 0, 11: 32, 12: 12, 14: 0xff0000, 19: 1, ...fields };
  const view = new DataView(new ArrayBuffer(104 + 12 + 12));
  for (const [index, value] of Object.entries(words)) view.setUint32(4 * Number(index), value);
  view.setUint32(116, 0x123456, true);
  view.setUint32(120, 0xff0080, true);
  return new Uint8Array(view.buffer);
}

Deno.test("decodeXWindowDump() reads the pixels behind the header and the map of colours", () => {
  const { width, height, rgb } = decodeXWindowDump(dump());
  assert.deepEqual([width, height, [...rgb]], [2, 1, [0x12, 0x34, 0x56, 0xff, 0, 0x80]]);
});

Deno.test("decodeXWindowDump() refuses a screen with other pixels", () => {
  assert.throws(() => decodeXWindowDump(dump({ 11: 16 })), /word 11 of its header is 16, not 32/);
});
