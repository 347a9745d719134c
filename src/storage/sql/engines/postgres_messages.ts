import { Buffer } from "node:buffer";

/** Bytes of a message's type and length; the length counts itself and what follows. */
const HEADER_BYTES = 5;
const TYPE_BYTES = 1;
const LENGTH_BYTES = 4;
const DATA_ROW = 0x44; // "D"

/** Consecutive whole messages of a server: rows of a result, or others. */
export interface MessageRun {
  readonly isRows: boolean;
  readonly bytes: Buffer;
}

/**
 * Splits the bytes of a PostgreSQL server into runs of whole messages (PostgreSQL documentation,
 * "Message Formats"). The runs are views of the chunks.
 */
export class MessageRuns {
  /** Chunks with the beginning of a message. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  /** Bytes that must be there before there is any use in looking again. */
  #neededBytes = HEADER_BYTES;

  /** Takes the next chunk. */
  *push(next: Buffer): Iterable<MessageRun> {
    const chunk = this.#joined(next);
    if (chunk === undefined) return;
    let start = 0;
    let end = 0;
    let isRows = false;
    while (chunk.length - end >= HEADER_BYTES) {
      const messageBytes = TYPE_BYTES + chunk.readUInt32BE(end + TYPE_BYTES);
      if (chunk.length - end < messageBytes) {
        this.#neededBytes = messageBytes;
        break;
      }
      const isRow = chunk[end] === DATA_ROW;
      if (isRow !== isRows) {
        if (end > start) yield { isRows, bytes: chunk.subarray(start, end) };
        start = end;
        isRows = isRow;
      }
      end += messageBytes;
    }
    if (end > start) yield { isRows, bytes: chunk.subarray(start, end) };
    if (end === chunk.length) return;
    this.#rest.push(chunk.subarray(end));
    this.#restBytes = chunk.length - end;
  }

  /** Returns the chunk behind the rest of earlier ones; undefined: more is needed. */
  #joined(chunk: Buffer): Buffer | undefined {
    if (this.#restBytes === 0) return chunk;
    this.#rest.push(chunk);
    this.#restBytes += chunk.length;
    if (this.#restBytes < this.#neededBytes) return undefined;
    const joined = Buffer.concat(this.#rest, this.#restBytes);
    this.#rest = [];
    this.#restBytes = 0;
    this.#neededBytes = HEADER_BYTES;
    return joined;
  }
}

/** Values of one row as text; null: none. */
export type RowTexts = (string | null)[];

/** Calls `each` with the values of every row of a run, always in the same array. */
export function readRows(bytes: Buffer, each: (fields: RowTexts) => void): void {
  const fields: RowTexts = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + TYPE_BYTES + bytes.readUInt32BE(at + TYPE_BYTES);
    readRow(bytes, { start: at + HEADER_BYTES, end }, fields);
    each(fields);
    at = end;
  }
}

/**
 * The row is decoded at once, and its values are cut out of it: to decode each by itself takes twice as
 * long.
 */
function readRow(
  bytes: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  fields: RowTexts,
): void {
  const row = bytes.toString("latin1", start, end);
  fields.length = bytes.readUInt16BE(start);
  let at = start + 2;
  for (let i = 0; i < fields.length; i++) {
    const length = bytes.readInt32BE(at);
    at += LENGTH_BYTES;
    if (length < 0) {
      fields[i] = null;
      continue;
    }
    fields[i] = isAscii(bytes, at, at + length)
      ? row.slice(at - start, at - start + length)
      : bytes.toString("utf8", at, at + length);
    at += length;
  }
}

function isAscii(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i]! > 0x7f) return false;
  return true;
}
