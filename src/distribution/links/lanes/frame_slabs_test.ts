import assert from "node:assert/strict";
import type { FramePlace } from "./frame_slabs.ts";
import { FRAME_SLAB_BYTES, FrameSlabs } from "./frame_slabs.ts";

Deno.test("FrameSlabs lays frames side by side and takes a new slab when one is full", () => {
  const slabs = new FrameSlabs();
  const first = slabs.reserve(1000, Infinity)!;
  slabs.commit(first, first.used + 1000);
  assert.ok(slabs.reserve(1000, Infinity) === first);
  slabs.commit(first, FRAME_SLAB_BYTES - 10);
  const second = slabs.reserve(1000, Infinity)!;
  assert.ok(second !== first);
  assert.equal(slabs.allocatedBytes, 2 * FRAME_SLAB_BYTES);
});

Deno.test("FrameSlabs.reserve() returns no slab that would exceed the bound", () => {
  const slabs = new FrameSlabs();
  assert.ok(slabs.reserve(10, FRAME_SLAB_BYTES - 1) === undefined);
  const slab = slabs.reserve(10, FRAME_SLAB_BYTES);
  assert.ok(slab !== undefined);
  slabs.commit(slab, FRAME_SLAB_BYTES - 10);
  assert.ok(slabs.reserve(20_000, FRAME_SLAB_BYTES + 19_999) === undefined);
  assert.ok(slabs.reserve(20_000, FRAME_SLAB_BYTES + 20_000) !== undefined);
});

Deno.test("FrameSlabs.release() gives a slab back with its last frame, and a large frame's block", () => {
  const slabs = new FrameSlabs();
  const slab = slabs.reserve(FRAME_SLAB_BYTES / 4, Infinity)!;
  for (let i = 0; i < 4; i++) slabs.commit(slab, slab.used + FRAME_SLAB_BYTES / 4);
  const own = slabs.reserve(20_000, Infinity)!;
  assert.equal(own.bytes.length, 20_000);
  slabs.commit(own, 20_000);
  const next = slabs.reserve(100, Infinity)!;
  slabs.commit(next, 100);
  assert.equal(slabs.allocatedBytes, 2 * FRAME_SLAB_BYTES + 20_000);
  slabs.release(own, 20_000);
  for (let i = 0; i < 4; i++) slabs.release(slab, FRAME_SLAB_BYTES / 4);
  assert.equal(slabs.allocatedBytes, FRAME_SLAB_BYTES);
  slabs.release(next, 100);
  assert.equal(slabs.liveBytes, 0);
  assert.ok(slabs.reserve(100, Infinity) === next, "the current slab is used again");
  assert.equal(next.used, 0);
});

Deno.test("FrameSlabs.compact() moves frames together once half of the memory is unused", () => {
  const slabs = new FrameSlabs();
  const frameBytes = FRAME_SLAB_BYTES / 8;
  const frames: FramePlace[] = Array.from({ length: 24 }, (_, i) => {
    const slab = slabs.reserve(frameBytes, Infinity)!;
    const start = slab.used;
    slab.bytes.fill(i, start, start + frameBytes);
    slabs.commit(slab, start + frameBytes);
    return { slab, start, end: start + frameBytes };
  });
  const left = frames.filter((_, i) => i % 8 < 5);
  for (const { slab } of frames.filter((_, i) => i % 8 >= 5)) slabs.release(slab, frameBytes);
  assert.equal(slabs.compact(left), false, "five eighths are in use");
  const few = left.filter((_, i) => i % 5 === 0);
  for (const { slab } of left.filter((_, i) => i % 5 > 0)) slabs.release(slab, frameBytes);
  assert.equal(slabs.allocatedBytes, 3 * FRAME_SLAB_BYTES);
  assert.equal(slabs.compact(few), true);
  assert.equal(slabs.allocatedBytes, FRAME_SLAB_BYTES);
  assert.deepEqual(few.map(({ start, end }) => [start, end]), [
    [0, frameBytes],
    [frameBytes, 2 * frameBytes],
    [2 * frameBytes, 3 * frameBytes],
  ]);
  assert.deepEqual(few.map(({ slab, start, end }) => [slab.bytes[start], slab.bytes[end - 1]]), [
    [0, 0],
    [8, 8],
    [16, 16],
  ]);
});
