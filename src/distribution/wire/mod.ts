export type { FrameName } from "./frame_type.ts";
export {
  CARBON_MINOR_VERSION,
  FIRST_OPTIONAL_TYPE,
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  frameName,
  HIGHEST_VERSION,
  isResumeType,
  isSurveyType,
  isTraceType,
  LOWEST_VERSION,
  MINOR_VERSION,
} from "./frame_type.ts";
export type { FrameErrorCode } from "./frame_error.ts";
export { FrameError, malformed } from "./frame_error.ts";
export type { FrameLimits, FrameSink } from "./frame_decoder.ts";
export { FrameDecoder } from "./frame_decoder.ts";
export type { Hello } from "./hello_frame.ts";
export {
  commonVersion,
  decodeHello,
  helloFrame,
  MAX_HELLO_BYTES,
  OUR_VERSIONS,
} from "./hello_frame.ts";
export type { Ack, SettledRange } from "./ack_frame.ts";
export { ackFrame, decodeAck, MAX_ACK_BYTES, MAX_ACK_RANGES } from "./ack_frame.ts";
export { decodeInvalidate, invalidateFrames, MAX_INVALIDATE_BYTES } from "./invalidate_frame.ts";
export type { Goodbye, GoodbyeReason, Slow } from "./control_frames.ts";
export {
  decodeGoodbye,
  decodeRetire,
  decodeSlow,
  decodeToken,
  decodeWritten,
  encodeWritten,
  goodbyeFrame,
  MAX_CONTROL_BYTES,
  pingFrame,
  pongFrame,
  retireFrame,
  slowFrame,
  WRITTEN_BYTES,
} from "./control_frames.ts";
export type { StanzaClass } from "./stanza_code.ts";
export { decodeStanzaClass, encodeStanzaClass, STANZA_CODES } from "./stanza_code.ts";
export type { StanzaFields } from "./stanza_frame.ts";
export {
  decodeStanza,
  encodeStanzaFrame,
  maxStanzaFrameBytes,
  patchCarbon,
  patchMayBeRepeat,
  patchNumber,
  patchTtl,
  readNumber,
  STANZA_HEADER_BYTES,
  stanzaFrame,
  takeCarbon,
} from "./stanza_frame.ts";
export type {
  ChangesFields,
  LeaseFields,
  MeshHint,
  PositionFields,
  SnapshotFields,
  TableRecord,
} from "./table_frames.ts";
export {
  changesFrame,
  decodeChanges,
  decodeLease,
  decodeMesh,
  decodePosition,
  decodeSnapshot,
  isRecordWritable,
  leaseFrame,
  MAX_MESH_HOSTS,
  MAX_TABLE_ENDPOINTS,
  MAX_TABLE_FRAME_BYTES,
  MAX_TABLE_RECORDS,
  meshFrame,
  positionFrame,
  snapshotFrame,
} from "./table_frames.ts";
export type {
  DetailsFields,
  EndFields,
  HaveFields,
  QueuedStanza,
  QueueFields,
  ResumeFields,
  SessionDetail,
  SessionFields,
  TakerStep,
  TransferEnd,
} from "./resume_frames.ts";
export {
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeHave,
  decodeQueue,
  decodeResume,
  decodeSession,
  detailsFrames,
  endFrame,
  givenFrame,
  haveFrame,
  MAX_DETAILS,
  MAX_DETAILS_BYTES,
  MAX_LANG_BYTES,
  MAX_RECENT,
  MAX_RESUME_BYTES,
  QUEUE_HEADER_BYTES,
  queueFrame,
  resumeFrame,
  sessionFrame,
} from "./resume_frames.ts";
export type { ContextFields } from "./context_frame.ts";
export { CONTEXT_MINOR_VERSION, contextFrame, decodeContext } from "./context_frame.ts";
export type { TracedFields, TraceFields, TracingFields, TracingState } from "./trace_frames.ts";
export {
  decodeTrace,
  decodeTraced,
  decodeTracing,
  MAX_TRACE_BYTES,
  tracedFrame,
  traceFrame,
  TRACING_STATES,
  tracingFrame,
} from "./trace_frames.ts";
export type { SurveyedFields, SurveyedHost } from "./survey_frames.ts";
export {
  answeredSurvey,
  decodeSurvey,
  decodeSurveyed,
  MAX_SURVEY_BYTES,
  MAX_SURVEYED_HOSTS,
  surveyedFrame,
  surveyFrame,
} from "./survey_frames.ts";
export { utf8Bytes } from "./text.ts";
