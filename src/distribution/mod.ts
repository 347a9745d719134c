export type { CarbonOf } from "./carbon_envelope.ts";
export { carbonEnvelope } from "./carbon_envelope.ts";
export { Duty } from "./duty.ts";
export type { Arrival, EnvelopeFields, StanzaEntry } from "./envelope.ts";
export { Envelope } from "./envelope.ts";
export { LinkBook } from "./link_book.ts";
export type { LinkTraffic, OpenLink } from "./link_traffic.ts";
export type { FrameRange, TrafficPart } from "./traffic_part.ts";
export { trafficBefore } from "./traffic_part.ts";
export type { ReturnReason } from "./return_reason.ts";
export type { TraceContext } from "./trace_context.ts";
export type { StanzaTrace, TraceDetails, TraceStep } from "./stanza_trace.ts";
export { TRACE_STEPS } from "./stanza_trace.ts";
export type { StanzaTracer } from "./stanza_tracer.ts";
export { NO_TRACER } from "./stanza_tracer.ts";
export type { UserHosts } from "./sender.ts";
export {
  datacenterHolder,
  isFromRoom,
  isRoomDomain,
  isRoomNews,
  isUserHost,
  senderKey,
} from "./sender.ts";
