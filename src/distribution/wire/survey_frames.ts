import { FrameReader } from "./frame_reader.ts";
import { FRAME_TYPE } from "./frame_type.ts";
import { FrameWriter } from "./frame_writer.ts";
import { maxTextBytes } from "./text.ts";

/** Largest SURVEY or SURVEYED frame. */
export const MAX_SURVEY_BYTES = 65_536;

/** Most datacenters in one SURVEYED frame. */
export const MAX_SURVEYED_HOSTS = 256;

const MAX_HOST_BYTES = 1_023;
/** Bytes of an entry beside its host: the length of that, flags, three u32 and two u64. */
const ENTRY_BYTES = 31;
const PAUSED_FLAG = 1;
const REDIS_AWAY_FLAG = 1;
const STOPPING_FLAG = 2;
const MAX_U32 = 0xffffffff;

/** Links of one node to one other datacenter. */
export interface SurveyedHost {
  /** Local host of the other datacenter. */
  readonly host: string;
  /** True while an operator keeps some of the links down. */
  readonly isPaused: boolean;
  readonly links: number;
  readonly openLinks: number;
  /** The shortest measured round trip in microseconds; 0 where there is none. */
  readonly roundTripUs: number;
  /** Stanzas since the start of the process. */
  readonly sent: number;
  readonly received: number;
}

/** Answer to SURVEY: the links of the answering node to other datacenters. */
export interface SurveyedFields {
  /** The asking process's number for the survey, from 1. */
  readonly survey: number;
  /** Milliseconds of a clock of the answering process that never goes back. */
  readonly atMs: number;
  readonly hosts: readonly SurveyedHost[];
  /** True while the node does not reach its Redis. */
  readonly isRedisAway: boolean;
  /** True while the node stops. */
  readonly isStopping: boolean;
}

/** State of the answering node. A frame without it is of a node that is well. */
type NodeState = "isRedisAway" | "isStopping";

/** Encodes a SURVEY frame. */
export function surveyFrame(survey: number): Uint8Array {
  const frame = new FrameWriter(FRAME_TYPE.survey, 16);
  frame.u53(survey);
  return frame.finish();
}

/**
 * Reads the number of the SURVEY frame at [`start`, `end`).
 * @throws FrameError
 */
export function decodeSurvey(buffer: Uint8Array, start: number, end: number): number {
  return new FrameReader("SURVEY", buffer, { start, end }).u53(1);
}

/** Encodes a SURVEYED frame. Hosts for which there is no room are left out. */
export function surveyedFrame(
  fields: Omit<SurveyedFields, NodeState> & Partial<Pick<SurveyedFields, NodeState>>,
): Uint8Array {
  const { survey, atMs, hosts, isRedisAway = false, isStopping = false } = fields;
  const frame = new FrameWriter(FRAME_TYPE.surveyed, 2_048);
  frame.u53(survey);
  frame.u53(atMs);
  const countAt = frame.length;
  frame.u16(0);
  let count = 0;
  for (const { host, isPaused, links, openLinks, roundTripUs, sent, received } of hosts) {
    const isFull = frame.length + ENTRY_BYTES + maxTextBytes(host) + 1 > MAX_SURVEY_BYTES;
    if (isFull || count === MAX_SURVEYED_HOSTS) break;
    frame.text(host, MAX_HOST_BYTES);
    frame.u8(isPaused ? PAUSED_FLAG : 0);
    frame.u32(links);
    frame.u32(openLinks);
    frame.u32(Math.min(roundTripUs, MAX_U32));
    frame.u53(sent);
    frame.u53(received);
    count++;
  }
  frame.patchU16(countAt, count);
  const state = (isRedisAway ? REDIS_AWAY_FLAG : 0) | (isStopping ? STOPPING_FLAG : 0);
  if (state !== 0) frame.u8(state);
  return frame.finish();
}

/**
 * Reads only the number of the survey that the SURVEYED frame at [`start`, `end`) answers.
 * @throws FrameError
 */
export function answeredSurvey(buffer: Uint8Array, start: number, end: number): number {
  return new FrameReader("SURVEYED", buffer, { start, end }).u53(1);
}

/**
 * Reads the SURVEYED frame at [`start`, `end`).
 * @throws FrameError
 */
export function decodeSurveyed(buffer: Uint8Array, start: number, end: number): SurveyedFields {
  const frame = new FrameReader("SURVEYED", buffer, { start, end });
  const [survey, atMs, count] = [frame.u53(1), frame.u53(), frame.u16()];
  if (count > MAX_SURVEYED_HOSTS) frame.fail(`it has ${count} hosts`);
  const hosts = Array.from({ length: count }, (): SurveyedHost => ({
    host: frame.text(MAX_HOST_BYTES, 1),
    isPaused: (frame.u8() & PAUSED_FLAG) !== 0,
    links: frame.u32(),
    openLinks: frame.u32(),
    roundTripUs: frame.u32(),
    sent: frame.u53(),
    received: frame.u53(),
  }));
  const state = frame.isAtEnd ? 0 : frame.u8();
  return {
    survey,
    atMs,
    hosts,
    isRedisAway: (state & REDIS_AWAY_FLAG) !== 0,
    isStopping: (state & STOPPING_FLAG) !== 0,
  };
}
