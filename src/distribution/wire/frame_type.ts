/** Bytes before a frame's body: `u32` length of what follows it, `u8` type. */
export const FRAME_HEADER_BYTES = 5;

/** Versions of the protocol that this build speaks; peers agree on the highest common one. */
export const LOWEST_VERSION = 1;
export const HIGHEST_VERSION = 1;
/** Additions within a version that older peers can ignore. */
export const MINOR_VERSION = 7;
/** Minor version from which a peer takes a message that brings its carbon. */
export const CARBON_MINOR_VERSION = 4;

/** The `type` byte of each frame; `docs/protocol.md` describes their bodies. */
export const FRAME_TYPE = {
  hello: 0x01,
  stanza: 0x02,
  ack: 0x03,
  ping: 0x04,
  pong: 0x05,
  goodbye: 0x06,
  retire: 0x07,
  lease: 0x08,
  changes: 0x09,
  snapshot: 0x0a,
  position: 0x0b,
  mesh: 0x0c,
  invalidate: 0x0d,
  resume: 0x80,
  session: 0x81,
  details: 0x82,
  queue: 0x83,
  have: 0x84,
  given: 0x85,
  end: 0x86,
  written: 0x87,
  trace: 0x88,
  tracing: 0x89,
  traced: 0x8a,
  context: 0x8b,
  slow: 0x8c,
  survey: 0x8d,
  surveyed: 0x8e,
} as const;

/** Lowest optional type: a receiver that does not know such a frame skips it. */
export const FIRST_OPTIONAL_TYPE = 0x80;

export type FrameName = keyof typeof FRAME_TYPE;

// The record's keys are the names, and its values the types.
const NAMES = new Map<number, FrameName>(
  Object.entries(FRAME_TYPE).map(([name, type]) => [type, name as FrameName]),
);

/** The name of a type byte; undefined for one that this build does not know. */
export function frameName(type: number): FrameName | undefined {
  return NAMES.get(type);
}

/** True for the frames by which nodes tell each other of the stanzas that somebody follows. */
export function isTraceType(type: number): boolean {
  return type >= FRAME_TYPE.trace && type <= FRAME_TYPE.traced;
}

/** True for the frames by which nodes tell each other of their links. */
export function isSurveyType(type: number): boolean {
  return type === FRAME_TYPE.survey || type === FRAME_TYPE.surveyed;
}

/** True for the frames of a session that goes from one node to another. */
export function isResumeType(type: number): boolean {
  return type >= FRAME_TYPE.resume && type <= FRAME_TYPE.end;
}
