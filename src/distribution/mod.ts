export { Duty } from "./duty.ts";
export type { Arrival, EnvelopeFields, StanzaEntry } from "./envelope.ts";
export { Envelope } from "./envelope.ts";
export type { LinkTraffic, OpenLink } from "./link_traffic.ts";
export type { ReturnReason } from "./return_reason.ts";
export type { UserHosts } from "./sender.ts";
export { datacenterHolder, isFromRoom, isRoomDomain, isUserHost, senderKey } from "./sender.ts";
