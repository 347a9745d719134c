import assert from "node:assert/strict";
import fc from "fast-check";
import { OutputBuffer } from "./output_buffer.ts";

Deno.test("OutputBuffer returns the appended bytes in order, whatever the sizes and turns", () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(
        fc.record({ append: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.constant(20_000)) }),
        fc.record({ take: fc.double({ min: 0.01, max: 1, noNaN: true }) }),
      )),
      (steps) => {
        const buffer = new OutputBuffer();
        let appended = 0;
        let taken = 0;
        for (const step of steps) {
          if ("append" in step) {
            const bytes = Uint8Array.from({ length: step.append }, (_, i) => (appended + i) * 7);
            buffer.append(bytes);
            bytes.fill(0);
            appended += step.append;
          } else {
            const piece = buffer.nextPiece();
            assert.equal(piece === undefined, appended === taken);
            if (piece === undefined) continue;
            const byteLength = Math.ceil(piece.length * step.take);
            for (let i = 0; i < byteLength; i++) assert.equal(piece[i], ((taken + i) * 7) & 255);
            buffer.written(byteLength);
            taken += byteLength;
          }
          assert.equal(buffer.pendingBytes, appended - taken);
        }
      },
    ),
  );
});

Deno.test("OutputBuffer counts appends until their block is written to its end", () => {
  const buffer = new OutputBuffer();
  const counts = [buffer.pendingAppends];
  const step = (work: () => void) => {
    work();
    counts.push(buffer.pendingAppends);
  };
  step(() => buffer.append(new Uint8Array(10)));
  step(() => buffer.append(new Uint8Array(10)));
  step(() => buffer.nextPiece());
  step(() => buffer.append(new Uint8Array(10)));
  step(() => buffer.written(19));
  step(() => buffer.written(1));
  step(() => buffer.clear());
  assert.deepEqual(counts, [0, 1, 2, 2, 3, 3, 1, 0]);
});

Deno.test("OutputBuffer leaves a piece untouched until it is written", () => {
  const buffer = new OutputBuffer();
  buffer.append(new Uint8Array(100).fill(1));
  const piece = buffer.nextPiece()!;
  const other = new OutputBuffer();
  for (let i = 0; i < 50; i++) {
    buffer.append(new Uint8Array(10_000).fill(2));
    other.append(new Uint8Array(100).fill(3));
    other.written(other.nextPiece()!.length);
  }
  buffer.clear();
  other.append(new Uint8Array(100).fill(4));
  assert.deepEqual(piece, new Uint8Array(100).fill(1));
});
