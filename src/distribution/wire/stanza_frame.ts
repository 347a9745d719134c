import type { Stanza } from "../../xmpp/mod.ts";
import { normalisedJidFromBytes } from "../../xmpp/mod.ts";
import type { EnvelopeFields, StanzaEntry } from "../mod.ts";
import { malformed } from "./frame_error.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { readU16, readU53, writeU16, writeU32, writeU53 } from "./integers.ts";
import { decodeStanzaCode, encodeStanzaClass, withCarbon, withoutCarbon } from "./stanza_code.ts";

/** Bytes of a STANZA frame before its texts, its length and type included. */
export const STANZA_HEADER_BYTES = 48;

// Offsets from the start of the frame; fixed, so that a lane can patch a frame in place.
const CODE_AT = 5;
const TTL_AT = 6;
const NUMBER_AT = 8;
const PROCESS_AT = 16;
const SEQUENCE_AT = 24;
const SENT_AT = 32;
const BOUNCES_AT = 40;
const FLAGS_AT = 41;
const ORIGIN_LENGTH_AT = 42;
const SENDER_LENGTH_AT = 44;
const RECIPIENT_LENGTH_AT = 46;

const MAY_BE_REPEAT = 0x01;
const COPY = 0x02;
const RESENT = 0x04;
const SENT_ONCE = 0x08;
const OWED = 0x10;
const REROUTED = 0x20;
const SPREAD = 0x40;
const CARBON = 0x80;
const MAX_TTL = 0xffff;
const MAX_BOUNCES = 0xff;

/** Fields of a STANZA frame. */
export interface StanzaFields extends EnvelopeFields {
  /** True for a message of which the sender's own sessions at the destination get a carbon. */
  readonly bringsCarbon: boolean;
}

const ENCODER = new TextEncoder();
/** Origins in UTF-8, as many as there are datacenters; forgotten when there are too many. */
const ORIGINS = new Map<string, Uint8Array>();
const MAX_ORIGINS = 256;

/** Room that `encodeStanzaFrame` needs at most. */
export function maxStanzaFrameBytes(fields: EnvelopeFields): number {
  const { from, to, bytes } = fields.stanza;
  return STANZA_HEADER_BYTES + fields.origin.length * 3 + from.utf8.length + to.utf8.length +
    bytes.length;
}

/**
 * Writes one STANZA frame at `at`, where `target` must have `maxStanzaFrameBytes` of room, without
 * allocating. A TTL above 65535 and a bounce count above 255 are written as those.
 * @param number position in its lane, from 1
 * @returns the end of the frame
 */
export function encodeStanzaFrame(
  target: Uint8Array,
  at: number,
  fields: EnvelopeFields,
  number: number,
): number {
  const { kind, type, from, to, bytes } = fields.stanza;
  target[at + 4] = FRAME_TYPE.stanza;
  target[at + CODE_AT] = encodeStanzaClass(kind, type);
  writeU16(target, at + TTL_AT, Math.min(fields.ttl, MAX_TTL));
  writeU53(target, at + NUMBER_AT, number);
  writeU53(target, at + PROCESS_AT, fields.process);
  writeU53(target, at + SEQUENCE_AT, fields.sequence);
  // A wall clock may be set before 1970: the reader would refuse a time below 0.
  writeU53(target, at + SENT_AT, Math.max(0, fields.sentAtUs));
  target[at + BOUNCES_AT] = Math.min(fields.bounces, MAX_BOUNCES);
  target[at + FLAGS_AT] = (fields.mayBeRepeat ? MAY_BE_REPEAT : 0) | (fields.isCopy ? COPY : 0) |
    entryFlag(fields.entry) | (fields.isRerouted ? REROUTED : 0) | (fields.isSpread ? SPREAD : 0) |
    (fields.isCarbon ? CARBON : 0);
  const originAt = at + STANZA_HEADER_BYTES;
  const origin = originUtf8(fields.origin);
  target.set(origin, originAt);
  const senderAt = originAt + origin.length;
  target.set(from.utf8, senderAt);
  const recipientAt = senderAt + from.utf8.length;
  target.set(to.utf8, recipientAt);
  const bytesAt = recipientAt + to.utf8.length;
  writeU16(target, at + ORIGIN_LENGTH_AT, senderAt - originAt);
  writeU16(target, at + SENDER_LENGTH_AT, recipientAt - senderAt);
  writeU16(target, at + RECIPIENT_LENGTH_AT, bytesAt - recipientAt);
  target.set(bytes, bytesAt);
  const end = bytesAt + bytes.length;
  writeU32(target, at, end - at - 4);
  return end;
}

/** Encodes a STANZA frame on bytes of its own, for tests and for peers that send few. */
export function stanzaFrame(fields: EnvelopeFields, number: number): Uint8Array {
  const frame = new Uint8Array(maxStanzaFrameBytes(fields));
  return frame.subarray(0, encodeStanzaFrame(frame, 0, fields, number));
}

/** Changes the number of an encoded STANZA frame that starts at `at`. */
export function patchNumber(frame: Uint8Array, at: number, number: number): void {
  writeU53(frame, at + NUMBER_AT, number);
}

/** Changes the TTL of an encoded STANZA frame that starts at `at`. */
export function patchTtl(frame: Uint8Array, at: number, ttl: number): void {
  writeU16(frame, at + TTL_AT, Math.min(ttl, MAX_TTL));
}

/** Marks an encoded STANZA frame that starts at `at` as one that may arrive a second time. */
export function patchMayBeRepeat(frame: Uint8Array, at: number): void {
  frame[at + FLAGS_AT] = frame[at + FLAGS_AT]! | MAY_BE_REPEAT;
}

/**
 * Makes the message of an encoded STANZA frame that starts at `at` bring its carbon: the sender's own
 * sessions at the destination get one (XEP-0280 §6).
 * @param id of the message
 * @returns false when the frame is another stanza's, or its kind and type have no carbons
 */
export function patchCarbon(
  frame: Uint8Array,
  at: number,
  id: { readonly process: number; readonly sequence: number },
): boolean {
  if (readU53(frame, at + SEQUENCE_AT) !== id.sequence) return false;
  if (readU53(frame, at + PROCESS_AT) !== id.process) return false;
  const code = withCarbon(frame[at + CODE_AT]!);
  if (code === undefined) return false;
  frame[at + CODE_AT] = code;
  return true;
}

/**
 * Makes the message of an encoded STANZA frame bring no carbon.
 * @returns true when it brought one
 */
export function takeCarbon(frame: Uint8Array, at: number): boolean {
  const code = frame[at + CODE_AT]!;
  frame[at + CODE_AT] = withoutCarbon(code);
  return frame[at + CODE_AT] !== code;
}

/** Reads the number of a STANZA frame; throws `FrameError` when it is 0 or too large. */
export function readNumber(frame: Uint8Array, at: number): number {
  const number = readU53(frame, at + NUMBER_AT);
  if (!number) throw malformed("STANZA", "its number is not in [1, 2^53)");
  return number;
}

/**
 * Reads the STANZA frame at [`start`, `end`), whose length and type the frame decoder has checked.
 * `stanza.bytes` of the result is a view of `buffer`. An address seen lately costs no string.
 * @throws FrameError when a field is outside its range or an address is not normalised
 */
export function decodeStanza(
  buffer: Uint8Array,
  start: number,
  end: number,
): StanzaFields {
  if (end - start < STANZA_HEADER_BYTES) throw malformed("STANZA", "it is cut short");
  const known = decodeStanzaCode(buffer[start + CODE_AT]!);
  if (known === undefined) throw malformed("STANZA", "its kind is not assigned");
  const process = readU53(buffer, start + PROCESS_AT);
  const sequence = readU53(buffer, start + SEQUENCE_AT);
  const sentAtUs = readU53(buffer, start + SENT_AT);
  if (!process || sequence === undefined || sentAtUs === undefined) {
    throw malformed("STANZA", "an integer is not below 2^53, or its process is 0");
  }
  const originAt = start + STANZA_HEADER_BYTES;
  const senderAt = originAt + readU16(buffer, start + ORIGIN_LENGTH_AT);
  const recipientAt = senderAt + readU16(buffer, start + SENDER_LENGTH_AT);
  const bytesAt = recipientAt + readU16(buffer, start + RECIPIENT_LENGTH_AT);
  if (bytesAt >= end) throw malformed("STANZA", "its texts leave no room for the stanza");
  const origin = normalisedDomain(buffer, originAt, senderAt);
  if (origin === undefined) throw malformed("STANZA", "its origin is not a normalised domain");
  // Two texts must not name one session: the bytes must be the normalised ones.
  const from = normalisedJidFromBytes(buffer, senderAt, recipientAt);
  if (from === undefined) throw malformed("STANZA", "its sender is not a normalised JID");
  const to = normalisedJidFromBytes(buffer, recipientAt, bytesAt);
  if (to === undefined) throw malformed("STANZA", "its recipient is not a normalised JID");
  const flags = buffer[start + FLAGS_AT]!;
  const stanza: Stanza = {
    kind: known.kind,
    type: known.type,
    from,
    to,
    bytes: buffer.subarray(bytesAt, end),
  };
  return {
    stanza,
    process,
    sequence,
    origin,
    sentAtUs,
    ttl: readU16(buffer, start + TTL_AT),
    bounces: buffer[start + BOUNCES_AT]!,
    mayBeRepeat: (flags & MAY_BE_REPEAT) !== 0,
    entry: entryOf(flags),
    isCopy: (flags & COPY) !== 0,
    isRerouted: (flags & REROUTED) !== 0,
    isSpread: (flags & SPREAD) !== 0,
    isCarbon: (flags & CARBON) !== 0,
    bringsCarbon: known.bringsCarbon,
  };
}

function originUtf8(origin: string): Uint8Array {
  let utf8 = ORIGINS.get(origin);
  if (utf8 === undefined) {
    if (ORIGINS.size === MAX_ORIGINS) ORIGINS.clear();
    ORIGINS.set(origin, utf8 = ENCODER.encode(origin));
  }
  return utf8;
}

function entryFlag(entry: StanzaEntry | undefined): number {
  switch (entry) {
    case undefined:
    case "ordinary":
      return 0;
    case "resent":
      return RESENT;
    case "sent-once":
      return SENT_ONCE;
    case "owed":
      return OWED;
    default:
      return entry satisfies never;
  }
}

/** Reads the one flag that says how a stanza entered; of several the first of these counts. */
function entryOf(flags: number): StanzaEntry {
  if ((flags & (OWED | RESENT | SENT_ONCE)) === 0) return "ordinary";
  if ((flags & OWED) !== 0) return "owed";
  return (flags & RESENT) !== 0 ? "resent" : "sent-once";
}

function normalisedDomain(buffer: Uint8Array, start: number, end: number): string | undefined {
  const jid = normalisedJidFromBytes(buffer, start, end);
  return jid !== undefined && jid.domainpart === jid.text ? jid.text : undefined;
}
