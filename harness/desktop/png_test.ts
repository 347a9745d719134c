import assert from "node:assert/strict";
import { inflateSync } from "node:zlib";
import { encodePng } from "./png.ts";

Deno.test("encodePng() writes a file whose chunks hold the size and the rows", async () => {
  const rgb = Uint8Array.from({ length: 2 * 3 * 3 }, (_, i) => 10 * i);
  const png = await encodePng({ width: 3, height: 2, rgb });
  const view = new DataView(png.buffer);
  const text = (from: number) => new TextDecoder().decode(png.subarray(from, from + 4));
  assert.equal(text(12), "IHDR");
  assert.deepEqual([view.getUint32(16), view.getUint32(20), png[24], png[25]], [3, 2, 8, 2]);
  const dataBytes = view.getUint32(33);
  assert.equal(text(37), "IDAT");
  const rows = inflateSync(png.subarray(41, 41 + dataBytes));
  assert.deepEqual([...rows], [0, ...rgb.subarray(0, 9), 0, ...rgb.subarray(9)]);
  assert.equal(text(41 + dataBytes + 8), "IEND");
  // The checksum of an empty IEND is in every PNG file.
  assert.equal(view.getUint32(png.length - 4), 0xae426082);
});
