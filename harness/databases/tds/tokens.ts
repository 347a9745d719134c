import { ByteWriter } from "./bytes.ts";
import type { TdsError } from "./tds_error.ts";
import type { ColumnType, TdsValue } from "./values.ts";
import { writeType, writeValue } from "./values.ts";

/** A column of a result. */
export interface ResultColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** Tokens of an answer (MS-TDS 2.2.7). */
const TOKEN = {
  returnStatus: 0x79,
  columns: 0x81,
  error: 0xaa,
  returnValue: 0xac,
  loginAck: 0xad,
  row: 0xd1,
  environment: 0xe3,
  done: 0xfd,
  doneProcedure: 0xfe,
  doneInProcedure: 0xff,
} as const;

/** Bits of the status of a DONE token. */
export const DONE = { final: 0, more: 0x01, error: 0x02, count: 0x10, attention: 0x20 } as const;

/** Kinds of change that an ENVCHANGE token tells of. */
export const CHANGE = {
  database: 1,
  packetSize: 4,
  begin: 8,
  commit: 9,
  rollback: 10,
  reset: 18,
} as const;

const SERVER_NAME = "DOUBLE";

/** Returns the tokens that end a statement, a procedure, or a statement within a procedure. */
export function doneToken(
  kind: "done" | "doneProcedure" | "doneInProcedure",
  status: number,
  rowCount = 0,
): Uint8Array {
  return new ByteWriter().u8(TOKEN[kind]).u16(status).u16(0).i64(BigInt(rowCount)).done();
}

export function errorToken({ number, severity, message }: TdsError): Uint8Array {
  const body = new ByteWriter().i32(number).u8(1, severity).longText(message.slice(0, 2000))
    .shortText(SERVER_NAME).shortText("").i32(1).done();
  return new ByteWriter().u8(TOKEN.error).u16(body.length).raw(body).done();
}

/** Returns the token of a text that changed. */
export function textChange(kind: number, value: string, before = ""): Uint8Array {
  const body = new ByteWriter().u8(kind).shortText(value).shortText(before).done();
  return new ByteWriter().u8(TOKEN.environment).u16(body.length).raw(body).done();
}

/** Returns the token of a transaction that began or ended, by its descriptor. */
export function transactionChange(
  kind: typeof CHANGE.begin | typeof CHANGE.commit | typeof CHANGE.rollback,
  descriptor: bigint,
): Uint8Array {
  const id = new ByteWriter().i64(descriptor).done();
  const body = new ByteWriter().u8(kind);
  if (kind === CHANGE.begin) body.u8(id.length).raw(id).u8(0);
  else body.u8(0, id.length).raw(id);
  const bytes = body.done();
  return new ByteWriter().u8(TOKEN.environment).u16(bytes.length).raw(bytes).done();
}

export function resetToken(): Uint8Array {
  return new ByteWriter().u8(TOKEN.environment).u16(3).u8(CHANGE.reset, 0, 0).done();
}

/** @param tdsVersion as the client's login names it */
export function loginAck(tdsVersion: number, serverVersion: readonly number[]): Uint8Array {
  const [major = 0, minor = 0, build = 0] = serverVersion;
  const body = new ByteWriter().u8(1)
    .u8(tdsVersion >>> 24, (tdsVersion >>> 16) & 0xff, (tdsVersion >>> 8) & 0xff, tdsVersion & 0xff)
    .shortText("Microsoft SQL Server").u8(major, minor, build >> 8, build & 0xff).done();
  return new ByteWriter().u8(TOKEN.loginAck).u16(body.length).raw(body).done();
}

export function returnStatus(status: number): Uint8Array {
  return new ByteWriter().u8(TOKEN.returnStatus).i32(status).done();
}

/** Returns the token of an output parameter that is a number. */
export function returnValue(name: string, value: number): Uint8Array {
  const writer = new ByteWriter().u8(TOKEN.returnValue).u16(0).shortText(name).u8(1).u32(0).u16(0);
  writeType(writer, { kind: "int" });
  writeValue(writer, { kind: "int" }, BigInt(value));
  return writer.done();
}

/** Returns the tokens of a result: its columns, and its rows. */
export function resultTokens(
  columns: readonly ResultColumn[],
  rows: readonly (readonly TdsValue[])[],
): Uint8Array {
  const writer = new ByteWriter().u8(TOKEN.columns).u16(columns.length);
  for (const { name, type } of columns) {
    writer.u32(0).u16(0x09); // nullable, and whether it can be written is unknown
    writeType(writer, type);
    writer.shortText(name);
  }
  for (const row of rows) {
    writer.u8(TOKEN.row);
    for (const [index, { type }] of columns.entries()) writeValue(writer, type, row[index]!);
  }
  return writer.done();
}
