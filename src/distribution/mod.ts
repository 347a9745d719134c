export type { Settler } from "./duty.ts";
export { Duty } from "./duty.ts";
export type { EnvelopeFields } from "./envelope.ts";
export { Envelope } from "./envelope.ts";
export type { LinkTraffic, OpenLink } from "./link_traffic.ts";
export { datacenterHolder, senderKey } from "./sender.ts";
