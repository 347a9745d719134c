export type { Settler } from "./duty.ts";
export { Duty } from "./duty.ts";
export type { EnvelopeFields } from "./envelope.ts";
export { Envelope } from "./envelope.ts";
export type { LinkTraffic, OpenLink } from "./link_traffic.ts";
export type { UserHosts } from "./sender.ts";
export { datacenterHolder, isUserHost, senderKey } from "./sender.ts";
