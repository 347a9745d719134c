export { Turns } from "./turns.ts";
export type { DeliveryOutcome, StanzaSink, StanzaSource } from "./stanza_sink.ts";
export type { EdgeRatesOptions } from "./edge_rates.ts";
export { EdgeRates } from "./edge_rates.ts";
export type { AdmissionLimits } from "./stream_admission.ts";
export { StreamAdmission } from "./stream_admission.ts";
export type { ResolvedStreamLimits, StreamLimits } from "./stream_limits.ts";
export { resolveStreamLimits, STREAM_LIMIT_RANGES } from "./stream_limits.ts";
export type {
  ResponseHeader,
  StreamTransport,
  TransportEvents,
  TransportLimit,
} from "./stream_transport.ts";
export { TcpTransport } from "./tcp_transport.ts";
