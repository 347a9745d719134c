import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";
import { utf8Bytes } from "./text.ts";

/** Largest LEASE, CHANGES, SNAPSHOT, POSITION or MESH frame. */
export const MAX_TABLE_FRAME_BYTES = 65_536;
/** Records in one CHANGES or SNAPSHOT frame. */
export const MAX_TABLE_RECORDS = 512;
/** Endpoints in one LEASE, and of one datacenter in MESH. */
export const MAX_TABLE_ENDPOINTS = 64;
/** Datacenters in one MESH. */
export const MAX_MESH_HOSTS = 64;

const MAX_TEXT_BYTES = 1023;
/** A name of 255 bytes, `#` and a port. */
const MAX_ENDPOINT_BYTES = 261;
/** Bytes of the longest bare JID: two parts of 1023 bytes and a separator. */
const MAX_NAME_BYTES = 2047;
/** Bytes of a frame up to which the largest record still fits. */
const FULL_BYTES = MAX_TABLE_FRAME_BYTES - 4096;

/** Fields of a LEASE, which says that its sender lives, and where it accepts links. */
export interface LeaseFields {
  /** Incarnation of the author. */
  readonly process: number;
  /** Epoch at which the process took its node name; the newer of two of one name wins. */
  readonly startedUs: number;
  /** The author's wall clock at the time of writing, in microseconds. */
  readonly nowUs: number;
  /** Number of the author's last change. */
  readonly lastNumber: number;
  /** Milliseconds for which the lease holds. */
  readonly lifeMs: number;
  readonly localHost: string;
  readonly nodeName: string;
  /** Each as `<host_or_ip>#<port>`. */
  readonly endpoints: readonly string[];
}

/** One claim, or the end of one. */
export interface TableRecord {
  readonly kind: "claim" | "withdraw";
  /** True for a component's domain that is not listed to users. */
  readonly isHidden: boolean;
  /** Number of the session in its process. */
  readonly sequence: number;
  readonly epoch: number;
  /** Bare JID, or a component's domain. */
  readonly name: string;
  /** Empty for a component. */
  readonly resourcepart: string;
}

/** Changes in the order in which they happened. */
export interface ChangesFields {
  readonly process: number;
  /** Round of the POSITION that asked for the changes. */
  readonly round: number;
  /** Number of the first; the others follow one by one. */
  readonly first: number;
  readonly records: readonly TableRecord[];
}

/** One piece of all entries that the author has now. */
export interface SnapshotFields {
  readonly process: number;
  readonly round: number;
  /** Number of the author's last change when the snapshot began. */
  readonly number: number;
  /** Number of the piece in its round, over all its snapshots, from 1. */
  readonly chunk: number;
  readonly isFirst: boolean;
  /** True for the last piece: entries that this snapshot has not named are gone. */
  readonly isLast: boolean;
  readonly records: readonly TableRecord[];
}

/** Progress of the receiver with one author's changes. */
export interface PositionFields {
  readonly process: number;
  readonly round: number;
  /** Number up to which changes are applied. */
  readonly applied: number;
  /** Pieces of the running snapshot that are applied. */
  readonly chunk: number;
  /** True to begin a new round after `applied`. */
  readonly isRestart: boolean;
  /** True when the receiver has no entry of the author: a snapshot must come first. */
  readonly wantsSnapshot: boolean;
}

/** A datacenter that the sender knows, and its endpoints. */
export interface MeshHint {
  readonly host: string;
  readonly endpoints: readonly string[];
}

export function leaseFrame(lease: LeaseFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.lease);
  frame.u53(lease.process);
  frame.u53(lease.startedUs);
  frame.u53(lease.nowUs);
  frame.u53(lease.lastNumber);
  frame.u32(lease.lifeMs);
  frame.text(lease.localHost, MAX_TEXT_BYTES);
  frame.text(lease.nodeName, MAX_TEXT_BYTES);
  writeEndpoints(frame, lease.endpoints);
  return frame.finish();
}

/** @throws FrameError */
export function decodeLease(buffer: Uint8Array, start: number, end: number): LeaseFields {
  const frame = new FrameReader("LEASE", buffer, { start, end });
  return {
    process: frame.u53(1),
    startedUs: frame.u53(1),
    nowUs: frame.u53(),
    lastNumber: frame.u53(),
    lifeMs: frame.u32(),
    localHost: frame.text(MAX_TEXT_BYTES, 1),
    nodeName: frame.text(MAX_TEXT_BYTES, 1),
    endpoints: readEndpoints(frame),
  };
}

/** True for a record that a frame can carry: its reader refuses any other. */
export function isRecordWritable(record: TableRecord): boolean {
  const { sequence, epoch, name, resourcepart } = record;
  return isPositive(sequence) && isPositive(epoch) && name !== "" &&
    utf8Bytes(name) <= MAX_NAME_BYTES && utf8Bytes(resourcepart) <= MAX_TEXT_BYTES;
}

function isPositive(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}

/**
 * Encodes a CHANGES frame of as many `records` as fit, from the first on.
 * @returns the frame and how many records are in it
 */
export function changesFrame(
  fields: Omit<ChangesFields, "records">,
  records: readonly TableRecord[],
  at = 0,
): { readonly frame: Uint8Array; readonly count: number } {
  const frame = new FrameWriter(FRAME_TYPE.changes);
  frame.u53(fields.process);
  frame.u32(fields.round);
  frame.u53(fields.first);
  const count = writeRecords(frame, records, at);
  return { frame: frame.finish(), count };
}

/** @throws FrameError */
export function decodeChanges(buffer: Uint8Array, start: number, end: number): ChangesFields {
  const frame = new FrameReader("CHANGES", buffer, { start, end });
  const process = frame.u53(1);
  const round = frame.u32();
  const first = frame.u53(1);
  const records = readRecords(frame, ["claim", "withdraw"]);
  if (first > Number.MAX_SAFE_INTEGER - records.length) {
    frame.fail("its last change has a number that is not below 2^53");
  }
  return { process, round, first, records };
}

/** Encodes a SNAPSHOT frame; all `records` must fit: at most 512, each of a text or two of 1 KB. */
export function snapshotFrame(fields: SnapshotFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.snapshot);
  frame.u53(fields.process);
  frame.u32(fields.round);
  frame.u53(fields.number);
  frame.u32(fields.chunk);
  frame.u8((fields.isLast ? 1 : 0) | (fields.isFirst ? 2 : 0));
  const count = writeRecords(frame, fields.records, 0);
  if (count < fields.records.length) {
    throw new RangeError(`Cannot encode SNAPSHOT of ${fields.records.length} records`);
  }
  return frame.finish();
}

/** @throws FrameError */
export function decodeSnapshot(buffer: Uint8Array, start: number, end: number): SnapshotFields {
  const frame = new FrameReader("SNAPSHOT", buffer, { start, end });
  const process = frame.u53(1);
  const round = frame.u32();
  const number = frame.u53();
  const chunk = frame.u32();
  const flags = frame.u8();
  const records = readRecords(frame, ["claim"]);
  const isLast = (flags & 1) !== 0;
  return { process, round, number, chunk, isFirst: (flags & 2) !== 0, isLast, records };
}

export function positionFrame(position: PositionFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.position, 32);
  frame.u53(position.process);
  frame.u32(position.round);
  frame.u53(position.applied);
  frame.u32(position.chunk);
  frame.u8((position.isRestart ? 1 : 0) | (position.wantsSnapshot ? 2 : 0));
  return frame.finish();
}

/** @throws FrameError */
export function decodePosition(buffer: Uint8Array, start: number, end: number): PositionFields {
  const frame = new FrameReader("POSITION", buffer, { start, end });
  const process = frame.u53(1);
  const round = frame.u32();
  const applied = frame.u53();
  const chunk = frame.u32();
  const flags = frame.u8();
  const isRestart = (flags & 1) !== 0;
  return { process, round, applied, chunk, isRestart, wantsSnapshot: (flags & 2) !== 0 };
}

/** Encodes a MESH frame of the first datacenters of `hints` that fit. */
export function meshFrame(hints: readonly MeshHint[]): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.mesh);
  const countAt = frame.length;
  frame.u16(0);
  let count = 0;
  for (const { host, endpoints } of hints) {
    if (count === MAX_MESH_HOSTS || frame.length >= FULL_BYTES) break;
    frame.text(host, MAX_TEXT_BYTES);
    writeEndpoints(frame, endpoints.slice(0, 8)); // one endpoint that answers is enough
    count++;
  }
  frame.patchU16(countAt, count);
  return frame.finish();
}

/** @throws FrameError */
export function decodeMesh(buffer: Uint8Array, start: number, end: number): readonly MeshHint[] {
  const frame = new FrameReader("MESH", buffer, { start, end });
  const count = frame.u16();
  if (count > MAX_MESH_HOSTS) frame.fail(`${count} datacenters are too many`);
  return Array.from({ length: count }, () => ({
    host: frame.text(MAX_TEXT_BYTES, 1),
    endpoints: readEndpoints(frame),
  }));
}

function writeEndpoints(frame: FrameWriter, endpoints: readonly string[]): void {
  const written = endpoints.slice(0, MAX_TABLE_ENDPOINTS);
  frame.u16(written.length);
  for (const endpoint of written) frame.text(endpoint, MAX_ENDPOINT_BYTES);
}

function readEndpoints(frame: FrameReader): readonly string[] {
  const count = frame.u16();
  if (count > MAX_TABLE_ENDPOINTS) frame.fail(`${count} endpoints are too many`);
  return Array.from({ length: count }, () => frame.text(MAX_ENDPOINT_BYTES, 1));
}

function writeRecords(frame: FrameWriter, records: readonly TableRecord[], at: number): number {
  const countAt = frame.length;
  frame.u16(0);
  let count = 0;
  for (let i = at; i < records.length; i++) {
    if (count === MAX_TABLE_RECORDS || frame.length >= FULL_BYTES) break;
    const record = records[i]!;
    frame.u8(record.kind === "claim" ? 1 : 2);
    frame.u8(record.isHidden ? 1 : 0);
    frame.u53(record.sequence);
    frame.u53(record.epoch);
    frame.text(record.name, MAX_NAME_BYTES);
    frame.text(record.resourcepart, MAX_TEXT_BYTES);
    count++;
  }
  frame.patchU16(countAt, count);
  return count;
}

function readRecords(
  frame: FrameReader,
  kinds: readonly TableRecord["kind"][],
): readonly TableRecord[] {
  const count = frame.u16();
  if (count > MAX_TABLE_RECORDS) frame.fail(`${count} records are too many`);
  return Array.from({ length: count }, () => {
    const kind = kinds[frame.u8() - 1] ?? frame.fail("a record's kind is not known");
    return {
      kind,
      isHidden: (frame.u8() & 1) !== 0,
      sequence: frame.u53(1),
      epoch: frame.u53(1),
      name: frame.text(MAX_NAME_BYTES, 1),
      resourcepart: frame.text(MAX_TEXT_BYTES),
    };
  });
}
