import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { MessageRuns, readRows } from "./postgres_messages.ts";
import type { RowTexts } from "./postgres_messages.ts";

function message(type: string, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(5);
  header.write(type, "latin1");
  header.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([header, body]);
}

function int(bytes: 2 | 4, value: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
}

function row(...fields: RowTexts): Buffer {
  const parts = fields.flatMap((field) =>
    field === null ? [int(4, -1)] : [int(4, Buffer.byteLength(field)), Buffer.from(field)]
  );
  return message("D", int(2, fields.length), ...parts);
}

const ROWS: readonly RowTexts[] = [
  ["1732573612345", "alice@example.com", null],
  ["", "é", "😀 and more"],
  [],
  [null, "x".repeat(300), "\u0000"],
];
const COMPLETE = message("C", Buffer.from("SELECT 4\0"));
const READY = message("Z", Buffer.from("I"));
/** A result of all rows, one of one row, and a notice. */
const ANSWER = [
  message("T", int(2, 0)),
  ...ROWS.map((fields) => row(...fields)),
  COMPLETE,
  READY,
  row("one"),
  message("N"),
];

/** Pushes chunks and returns the bytes of consecutive runs of one kind, joined. */
function runsOf(chunks: readonly Buffer[]) {
  const splitter = new MessageRuns();
  const runs: { readonly isRows: boolean; bytes: Buffer }[] = [];
  for (const chunk of chunks) {
    for (const { isRows, bytes } of splitter.push(chunk)) {
      const last = runs.at(-1);
      if (last?.isRows === isRows) last.bytes = Buffer.concat([last.bytes, bytes]);
      else runs.push({ isRows, bytes });
    }
  }
  return runs;
}

const RUNS = [
  { isRows: false, bytes: ANSWER[0]! },
  { isRows: true, bytes: Buffer.concat(ANSWER.slice(1, 5)) },
  { isRows: false, bytes: Buffer.concat([COMPLETE, READY]) },
  { isRows: true, bytes: row("one") },
  { isRows: false, bytes: message("N") },
];

Deno.test("MessageRuns.push() splits messages at every split point, and byte by byte", () => {
  const whole = Buffer.concat(ANSWER);
  assert.deepEqual(runsOf([whole]), RUNS);
  for (let at = 1; at < whole.length; at++) {
    assert.deepEqual(runsOf([whole.subarray(0, at), whole.subarray(at)]), RUNS, `at ${at}`);
  }
  assert.deepEqual(runsOf(Array.from(whole, (byte) => Buffer.of(byte))), RUNS);
});

Deno.test("MessageRuns.push() returns no part of a message", () => {
  const splitter = new MessageRuns();
  const [first, second] = [row("first"), row("second")];
  const push = (bytes: Buffer) => [...splitter.push(bytes)].map(({ bytes }) => bytes);
  assert.deepEqual(push(Buffer.concat([first, second.subarray(0, 6)])), [first]);
  assert.deepEqual(push(second.subarray(6, 8)), []);
  assert.deepEqual(push(second.subarray(8)), [second]);
});

Deno.test("readRows() reads text of any kind, and nulls", () => {
  const read: RowTexts[] = [];
  readRows(Buffer.concat(ANSWER.slice(1, 5)), (fields) => void read.push([...fields]));
  assert.deepEqual(read, ROWS);
});
