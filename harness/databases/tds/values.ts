import { Buffer } from "node:buffer";
import type { ByteReader, ByteWriter } from "./bytes.ts";
import { utf16 } from "./bytes.ts";
import { TdsError } from "./tds_error.ts";

/** A value of a column or parameter. */
export type TdsValue = null | bigint | number | string | Uint8Array;

/** Kind of a type: values of other kinds are not converted silently. */
export type ValueKind = "binary" | "text" | "integer" | "float" | "bit";

/** A value with the kind of the type that its sender declared. */
export interface Parameter {
  readonly name: string;
  readonly kind: ValueKind;
  readonly value: TdsValue;
}

/** Types of the columns of results. */
export type ColumnType =
  | { readonly kind: "int" | "bigint" | "bit" | "float" }
  | { readonly kind: "binary"; readonly maxBytes: number }
  | { readonly kind: "text"; readonly maxUnits: number };

const [INTN, BITN, FLTN, VARBINARY, BINARY, NVARCHAR, VARCHAR, NCHAR, CHAR] = [
  ...[0x26, 0x68, 0x6d, 0xa5, 0xad, 0xe7, 0xa7, 0xef, 0xaf],
] as const;
/** Length of a type without a limit, and of a short value that is NULL. */
const MAX = 0xffff;
const [PLP_NULL, PLP_END] = [0xffffffffffffffffn, 0];
/** Latin1_General_CI_AS, as a server has it by default. */
const COLLATION = Uint8Array.of(0x09, 0x04, 0xd0, 0x00, 0x34);

/** Reads a parameter of an RPC request: its type, and then its value. */
export function readParameter(reader: ByteReader): Parameter {
  const name = reader.text(reader.u8());
  reader.skip(1); // by value or by reference
  const type = reader.u8();
  switch (type) {
    case INTN:
      reader.skip(1);
      return { name, kind: "integer", value: readInteger(reader) };
    case BITN: {
      reader.skip(1);
      return { name, kind: "bit", value: reader.u8() === 0 ? null : BigInt(reader.u8()) };
    }
    case FLTN:
      reader.skip(1);
      return { name, kind: "float", value: readFloat(reader) };
    case VARBINARY:
    case BINARY:
      return { name, kind: "binary", value: readBytes(reader, reader.u16()) };
    case NVARCHAR:
    case NCHAR:
    case VARCHAR:
    case CHAR: {
      const maxBytes = reader.u16();
      reader.skip(COLLATION.length);
      const bytes = readBytes(reader, maxBytes);
      const encoding = type === NVARCHAR || type === NCHAR ? "utf16le" : "latin1";
      return { name, kind: "text", value: bytes && Buffer.from(bytes).toString(encoding) };
    }
    default:
      throw new TdsError(8009, `The data type 0x${type.toString(16)} is unknown.`);
  }
}

function readInteger(reader: ByteReader): bigint | null {
  const bytes = reader.u8();
  if (bytes === 0) return null;
  if (bytes === 1) return BigInt(reader.u8());
  if (bytes === 2) return BigInt((reader.u16() << 16) >> 16);
  return bytes === 4 ? BigInt(reader.i32()) : reader.i64();
}

function readFloat(reader: ByteReader): number | null {
  const bytes = reader.u8();
  if (bytes === 0) return null;
  if (bytes === 8) return reader.f64();
  return Buffer.from(reader.bytes(4)).readFloatLE();
}

function readBytes(reader: ByteReader, maxBytes: number): Uint8Array | null {
  if (maxBytes !== MAX) {
    const length = reader.u16();
    if (length === MAX) return null;
    if (length > maxBytes) throw new TdsError(8016, "A parameter is longer than its type.");
    return reader.bytes(length);
  }
  if (reader.u64() === PLP_NULL) return null;
  const parts: Uint8Array[] = [];
  for (let length = reader.u32(); length !== PLP_END; length = reader.u32()) {
    parts.push(reader.bytes(length));
  }
  return new Uint8Array(Buffer.concat(parts));
}

/** Writes the description of a type. */
export function writeType(writer: ByteWriter, type: ColumnType): void {
  switch (type.kind) {
    case "int":
      return void writer.u8(INTN, 4);
    case "bigint":
      return void writer.u8(INTN, 8);
    case "bit":
      return void writer.u8(BITN, 1);
    case "float":
      return void writer.u8(FLTN, 8);
    case "binary":
      return void writer.u8(VARBINARY).u16(Math.min(type.maxBytes, MAX));
    case "text":
      return void writer.u8(NVARCHAR).u16(Math.min(2 * type.maxUnits, MAX)).raw(COLLATION);
    default:
      return type satisfies never;
  }
}

/** Writes a value of a type. */
export function writeValue(writer: ByteWriter, type: ColumnType, value: TdsValue): void {
  switch (type.kind) {
    case "int":
    case "bigint":
      if (value === null) writer.u8(0);
      else if (type.kind === "int") writer.u8(4).i32(Number(value));
      else writer.u8(8).i64(BigInt(value as bigint)); // SQLite gave an integer
      return;
    case "bit":
      if (value === null) writer.u8(0);
      else writer.u8(1, Number(value));
      return;
    case "float":
      if (value === null) writer.u8(0);
      else writer.u8(8).f64(Number(value));
      return;
    case "binary":
      return writeBytes(writer, value as Uint8Array | null, type.maxBytes); // as SQLite gave it
    case "text":
      return writeBytes(writer, value === null ? null : utf16(String(value)), 2 * type.maxUnits);
    default:
      return type satisfies never;
  }
}

function writeBytes(writer: ByteWriter, bytes: Uint8Array | null, maxBytes: number): void {
  if (maxBytes < MAX) {
    if (bytes === null) writer.u16(MAX);
    else writer.u16(bytes.length).raw(bytes);
    return;
  }
  if (bytes === null) {
    writer.i64(-1n);
    return;
  }
  writer.i64(BigInt(bytes.length));
  if (bytes.length > 0) writer.u32(bytes.length).raw(bytes);
  writer.u32(PLP_END);
}
