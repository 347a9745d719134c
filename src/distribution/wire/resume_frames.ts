import type { EnvelopeFields } from "../mod.ts";
import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";
import { readU32 } from "./integers.ts";
import { decodeStanza, maxStanzaFrameBytes, readNumber, stanzaFrame } from "./stanza_frame.ts";

/** Largest RESUME, HAVE, GIVEN or END frame. */
export const MAX_RESUME_BYTES = 4_096;
/** Largest DETAILS frame. */
export const MAX_DETAILS_BYTES = 65_536;
/** Records in one DETAILS frame. */
export const MAX_DETAILS = 4_096;
/** Bytes of a QUEUE frame besides its STANZA frames, its length and type included. */
export const QUEUE_HEADER_BYTES = 14;
/** Numbers in one record of delivered numbers. */
export const MAX_RECENT = 255;

/** Bytes of a session's language. */
export const MAX_LANG_BYTES = 1_023;

const MAX_ACCOUNT_BYTES = 2_047;
const MAX_JID_BYTES = 3_071;
const MAX_TEXT_BYTES = 1_023;
/** The longest record: two lengths, a JID, process, highest and all numbers. */
const MAX_RECORD_BYTES = 4 + MAX_JID_BYTES + 16 + MAX_RECENT * 8;
const FULL_DETAILS_BYTES = MAX_DETAILS_BYTES - MAX_RECORD_BYTES;

/** Request for a session that the receiver has, for a client of the sender. */
export interface ResumeFields {
  /** The taker's number for the transfer. */
  readonly transfer: number;
  /** Count of stanzas that the client has handled, as in its `<resume/>`. */
  readonly h: number;
  /** Bare JID of the account that the client has logged in to. */
  readonly account: string;
  readonly previd: string;
}

/** State of a session without its queue; counts as they are written in `h`. */
export interface SessionFields {
  readonly transfer: number;
  /** Full JID. */
  readonly jid: string;
  /** Count of the client's stanzas that were taken. */
  readonly received: number;
  /** Count of those, without a gap, that the client may forget even if the session's node dies. */
  readonly covered: number;
  /** Count of stanzas that the client has acknowledged. */
  readonly acknowledged: number;
  /** Time in which a lost stream of the session can be resumed. */
  readonly resumeTimeoutMs: number;
  /** Time for which its client may still resend stanzas of an earlier stream. */
  readonly resendingMs: number;
  /** `xml:lang` of its first stream; empty when it had none. */
  readonly lang: string;
  /** −128 to 127; undefined while it is not available. */
  readonly priority: number | undefined;
  /** The last broadcast presence; empty while it is not available. */
  readonly presence: Uint8Array;
  /** True while its client has message carbons turned on (XEP-0280). */
  readonly hasCarbons: boolean;
  /** True while some contacts may not have been told of its presence, as after the initial one. */
  readonly isNewlyAvailable: boolean;
  /**
   * True when the numbers that were delivered to the account are without those of stanzas that no
   * client has taken. False from nodes before 0.2.0, which send all.
   */
  readonly isExact: boolean;
}

/** One record that a session's node keeps for it. */
export type SessionDetail =
  /** The session has sent directed presence to this address, which must hear of its end. */
  | { readonly kind: "directed"; readonly jid: string }
  /** Numbers of `process` that were delivered from `sender` to the session, or to its account. */
  | {
    readonly kind: "delivered" | "delivered-to-account";
    readonly sender: string;
    readonly process: number;
    readonly highest: number;
    readonly recent: readonly number[];
  };

export interface DetailsFields {
  readonly transfer: number;
  readonly details: readonly SessionDetail[];
}

/** Stanzas that the client has not acknowledged, each with its place in the queue, from 1. */
export interface QueueFields {
  readonly transfer: number;
  /** True when no more stanzas wait at the moment. */
  readonly isEnd: boolean;
  /** True when all stanzas were sent that had come before the taker had the session. */
  readonly isCaughtUp: boolean;
  /** True when the messages in it are in the archive of their recipient. */
  readonly areArchived: boolean;
  readonly stanzas: readonly QueuedStanza[];
}

export interface QueuedStanza {
  readonly number: number;
  readonly fields: EnvelopeFields;
}

/** Step of the taker: it takes more, asks for the session, has it, or no longer wants it. */
export type TakerStep = "more" | "commit" | "taken" | "decline";

export interface HaveFields {
  readonly transfer: number;
  readonly step: TakerStep;
  /** Last number of the queue up to which all stanzas have arrived. */
  readonly received: number;
  /** Last number of the queue up to which all stanzas are settled. */
  readonly settled: number;
}

/** Reason why the holder ends a transfer. */
export type TransferEnd = typeof ENDS[number];

export interface EndFields {
  readonly transfer: number;
  readonly reason: TransferEnd;
  /** Count of the client's handled stanzas, if it is known and final. */
  readonly h: number | undefined;
  /** Highest count that the client may have handled. */
  readonly sentCount: number;
  /** Incarnation of the session's new node; 0 when it is not known. */
  readonly process: number;
}

const STEPS = ["more", "commit", "taken", "decline"] as const;

const ENDS = [
  "other",
  "done",
  "unknown",
  "stale",
  "other-account",
  "handled-too-high",
  "moved",
  "superseded",
  "ended",
  "late",
  "busy",
] as const;

const KINDS = ["directed", "delivered", "delivered-to-account"] as const;

export function resumeFrame(fields: ResumeFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.resume);
  frame.u53(fields.transfer);
  frame.u32(fields.h);
  frame.text(fields.account, MAX_ACCOUNT_BYTES);
  frame.text(fields.previd, MAX_TEXT_BYTES);
  return frame.finish();
}

/** @throws FrameError */
export function decodeResume(buffer: Uint8Array, start: number, end: number): ResumeFields {
  const frame = new FrameReader("RESUME", buffer, { start, end });
  return {
    transfer: frame.u53(1),
    h: frame.u32(),
    account: frame.text(MAX_ACCOUNT_BYTES, 1),
    previd: frame.text(MAX_TEXT_BYTES, 1),
  };
}

export function sessionFrame(fields: SessionFields): Uint8Array {
  const { priority } = fields;
  const frame = new FrameWriter(FRAME_TYPE.session);
  frame.u53(fields.transfer);
  // counts are as in `h`, which starts over after 2^32 - 1 (XEP-0198 §4)
  for (const count of [fields.received, fields.covered, fields.acknowledged]) {
    frame.u32(count >>> 0);
  }
  frame.u32(fields.resumeTimeoutMs);
  frame.u32(fields.resendingMs);
  frame.u8(
    (priority === undefined ? 0 : 1) | (fields.hasCarbons ? 2 : 0) |
      (fields.isNewlyAvailable ? 4 : 0) | (fields.isExact ? 8 : 0),
  );
  frame.u8((priority ?? 0) + 128);
  frame.text(fields.jid, MAX_JID_BYTES);
  frame.text(fields.lang, MAX_LANG_BYTES);
  frame.bytes(fields.presence);
  return frame.finish();
}

/** @throws FrameError; `presence` is a view of `buffer` */
export function decodeSession(buffer: Uint8Array, start: number, end: number): SessionFields {
  const frame = new FrameReader("SESSION", buffer, { start, end });
  const transfer = frame.u53(1);
  const received = frame.u32();
  const covered = frame.u32();
  const acknowledged = frame.u32();
  const resumeTimeoutMs = frame.u32();
  const resendingMs = frame.u32();
  const flags = frame.u8();
  const isAvailable = (flags & 1) !== 0;
  const priority = frame.u8() - 128;
  const jid = frame.text(MAX_JID_BYTES, 1);
  const lang = frame.text(MAX_LANG_BYTES);
  const presence = frame.bytes();
  if (isAvailable !== presence.length > 0) frame.fail("it is available without a presence, or not");
  return {
    transfer,
    jid,
    received,
    covered,
    acknowledged,
    resumeTimeoutMs,
    resendingMs,
    lang,
    priority: isAvailable ? priority : undefined,
    presence,
    hasCarbons: (flags & 2) !== 0,
    isNewlyAvailable: (flags & 4) !== 0,
    isExact: (flags & 8) !== 0,
  };
}

/** Encodes `details` in DETAILS frames: as many as the limits of one require, none for none. */
export function detailsFrames(
  transfer: number,
  details: readonly SessionDetail[],
): readonly Uint8Array[] {
  const frames: Uint8Array[] = [];
  let next = 0;
  while (next < details.length) {
    const frame = new FrameWriter(FRAME_TYPE.details);
    frame.u53(transfer);
    const countAt = frame.length;
    frame.u16(0);
    const first = next;
    while (
      next < details.length && next - first < MAX_DETAILS && frame.length <= FULL_DETAILS_BYTES
    ) writeDetail(frame, details[next++]!);
    frame.patchU16(countAt, next - first);
    frames.push(frame.finish());
  }
  return frames;
}

/** @throws FrameError */
export function decodeDetails(buffer: Uint8Array, start: number, end: number): DetailsFields {
  const frame = new FrameReader("DETAILS", buffer, { start, end });
  const transfer = frame.u53(1);
  const count = frame.u16();
  if (count > MAX_DETAILS) frame.fail(`${count} records are too many`);
  return { transfer, details: Array.from({ length: count }, () => readDetail(frame)) };
}

/** Encodes a QUEUE frame; at most `maxFrameBytes` of STANZA frames, or a single one. */
export function queueFrame(
  { transfer, isEnd, isCaughtUp, areArchived, stanzas }: QueueFields,
): Uint8Array {
  let room = QUEUE_HEADER_BYTES;
  for (const { fields } of stanzas) room += maxStanzaFrameBytes(fields);
  const frame = new FrameWriter(FRAME_TYPE.queue, room);
  frame.u53(transfer);
  frame.u8((isEnd ? 1 : 0) | (isCaughtUp ? 2 : 0) | (areArchived ? 4 : 0));
  for (const { fields, number } of stanzas) frame.raw(stanzaFrame(fields, number));
  return frame.finish();
}

/** @throws FrameError; the stanzas' bytes are views of `buffer` */
export function decodeQueue(buffer: Uint8Array, start: number, end: number): QueueFields {
  const frame = new FrameReader("QUEUE", buffer, { start, end });
  const transfer = frame.u53(1);
  const flags = frame.u8();
  const stanzas: QueuedStanza[] = [];
  let { at } = frame;
  while (at < end) {
    if (end - at < 5) frame.fail("a stanza is cut short");
    const stanzaEnd = at + 4 + readU32(buffer, at);
    if (stanzaEnd > end || buffer[at + 4] !== FRAME_TYPE.stanza) {
      frame.fail("it holds something else than whole stanzas");
    }
    stanzas.push({
      number: readNumber(buffer, at),
      fields: decodeStanza(buffer, at, stanzaEnd),
    });
    at = stanzaEnd;
  }
  const [isEnd, isCaughtUp, areArchived] = [1, 2, 4].map((bit) => (flags & bit) !== 0);
  return { transfer, isEnd: isEnd!, isCaughtUp: isCaughtUp!, areArchived: areArchived!, stanzas };
}

export function haveFrame(fields: HaveFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.have, 30);
  frame.u53(fields.transfer);
  frame.u8(STEPS.indexOf(fields.step));
  frame.u53(fields.received);
  frame.u53(fields.settled);
  return frame.finish();
}

/** @throws FrameError */
export function decodeHave(buffer: Uint8Array, start: number, end: number): HaveFields {
  const frame = new FrameReader("HAVE", buffer, { start, end });
  const transfer = frame.u53(1);
  const step = STEPS[frame.u8()] ?? frame.fail("its step is not assigned");
  const received = frame.u53();
  const settled = frame.u53();
  if (settled > received) frame.fail(`${settled} are settled of ${received}`);
  return { transfer, step, received, settled };
}

/** Encodes a GIVEN frame: the session is the taker's. */
export function givenFrame(transfer: number): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.given, 13);
  frame.u53(transfer);
  return frame.finish();
}

/** @throws FrameError */
export function decodeGiven(buffer: Uint8Array, start: number, end: number): number {
  return new FrameReader("GIVEN", buffer, { start, end }).u53(1);
}

export function endFrame(fields: EndFields): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.end, 35);
  frame.u53(fields.transfer);
  frame.u8(ENDS.indexOf(fields.reason));
  frame.u8(fields.h === undefined ? 0 : 1);
  frame.u32(fields.h ?? 0);
  frame.u32(fields.sentCount);
  frame.u53(fields.process);
  return frame.finish();
}

/** @throws FrameError */
export function decodeEnd(buffer: Uint8Array, start: number, end: number): EndFields {
  const frame = new FrameReader("END", buffer, { start, end });
  const transfer = frame.u53(1);
  const reason = ENDS[frame.u8()] ?? "other";
  const hasH = (frame.u8() & 1) !== 0;
  const h = frame.u32();
  const sentCount = frame.u32();
  return { transfer, reason, h: hasH ? h : undefined, sentCount, process: frame.u53() };
}

function writeDetail(frame: FrameWriter, detail: SessionDetail): void {
  frame.u8(KINDS.indexOf(detail.kind));
  if (detail.kind === "directed") return frame.text(detail.jid, MAX_JID_BYTES);
  const recent = detail.recent.slice(-MAX_RECENT);
  frame.text(detail.sender, MAX_JID_BYTES);
  frame.u53(detail.process);
  frame.u53(detail.highest);
  frame.u8(recent.length);
  for (const number of recent) frame.u53(number);
}

function readDetail(frame: FrameReader): SessionDetail {
  const kind = KINDS[frame.u8()] ?? frame.fail("a record's kind is not assigned");
  if (kind === "directed") return { kind, jid: frame.text(MAX_JID_BYTES, 1) };
  return {
    kind,
    sender: frame.text(MAX_JID_BYTES, 1),
    process: frame.u53(1),
    highest: frame.u53(),
    recent: Array.from({ length: frame.u8() }, () => frame.u53()),
  };
}
