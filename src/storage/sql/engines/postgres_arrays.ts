import { Buffer } from "node:buffer";
import { SlabAllocator } from "../../../base/mod.ts";

/** Object identifiers of the elements' types, in PostgreSQL's `pg_type`. */
const [BYTEA, BIGINT, TEXT] = [17, 20, 25];
/** Bytes of the head of an array: five numbers. */
const HEAD_BYTES = 20;
/** Bytes of the number in front of each element: its length. */
const LENGTH_BYTES = 4;
/** Length of an element that is NULL. */
const NULL_LENGTH = -1;
const BIGINT_BYTES = 8;
const UNITS_OF_HIGH_PART = 0x1_0000_0000;

/** A statement has many arrays, most of them small, and all are gone when it is done. */
const SLAB = new SlabAllocator();

/**
 * Returns an array of BYTEA in the binary form of PostgreSQL, which the driver sends as it is. Without
 * it the driver would write the array as text, with two digits for each byte.
 *
 * @param values at least one
 */
export function byteaArray(values: readonly (Uint8Array | null)[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + LENGTH_BYTES + (value?.length ?? 0), 0);
  const array = arrayOf(BYTEA, values.length, bytes);
  let at = HEAD_BYTES;
  for (const value of values) {
    at = array.writeInt32BE(value?.length ?? NULL_LENGTH, at);
    if (value === null) continue;
    array.set(value, at);
    at += value.length;
  }
  return array;
}

/** Returns an array of BIGINT likewise. */
export function bigintArray(values: readonly number[]): Buffer {
  const array = arrayOf(BIGINT, values.length, values.length * (LENGTH_BYTES + BIGINT_BYTES));
  let at = HEAD_BYTES;
  for (const value of values) {
    const high = Math.floor(value / UNITS_OF_HIGH_PART);
    at = array.writeInt32BE(BIGINT_BYTES, at);
    at = array.writeInt32BE(high, at);
    at = array.writeUInt32BE(value - high * UNITS_OF_HIGH_PART, at);
  }
  return array;
}

/** Returns an array of TEXT likewise. */
export function textArray(values: readonly string[]): Buffer {
  const lengths = values.map((value) => Buffer.byteLength(value));
  const bytes = lengths.reduce((sum, length) => sum + LENGTH_BYTES + length, 0);
  const array = arrayOf(TEXT, values.length, bytes);
  let at = HEAD_BYTES;
  for (const [i, value] of values.entries()) {
    at = array.writeInt32BE(lengths[i]!, at);
    at += array.write(value, at);
  }
  return array;
}

/** Returns an array of one dimension, whose elements are to be written behind its head. */
function arrayOf(type: number, length: number, bytes: number): Buffer {
  const { buffer, byteOffset, byteLength } = SLAB.allocate(HEAD_BYTES + bytes);
  const array = Buffer.from(buffer, byteOffset, byteLength);
  const [dimensions, hasNulls, lowerBound] = [1, 1, 1]; // it may have nulls
  let at = array.writeInt32BE(dimensions, 0);
  at = array.writeInt32BE(hasNulls, at);
  at = array.writeInt32BE(type, at);
  at = array.writeInt32BE(length, at);
  array.writeInt32BE(lowerBound, at);
  return array;
}
