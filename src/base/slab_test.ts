import assert from "node:assert/strict";
import { SLAB_BYTES, SlabAllocator } from "./slab.ts";

Deno.test("SlabAllocator hands out pieces that do not overlap", () => {
  const slab = new SlabAllocator();
  const pieces = Array.from(
    { length: 500 },
    (_, i) => slab.copy(new Uint8Array(300).fill(i & 255)),
  );
  for (const [i, piece] of pieces.entries()) {
    assert.ok(piece.every((byte) => byte === (i & 255)), `piece ${i} was overwritten`);
  }
  assert.equal(pieces[0]!.buffer, pieces[1]!.buffer);
  assert.equal(pieces[0]!.buffer.byteLength, SLAB_BYTES);
});

Deno.test("SlabAllocator gives a large piece a buffer of its own", () => {
  const slab = new SlabAllocator();
  assert.equal(slab.allocate(SLAB_BYTES).buffer.byteLength, SLAB_BYTES);
  assert.equal(slab.allocate((SLAB_BYTES >> 2) + 1).buffer.byteLength, (SLAB_BYTES >> 2) + 1);
});
