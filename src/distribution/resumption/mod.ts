export type { DeliveredNumbers, FreezableSessions, Peer, Peers, RepeatMemory } from "./ports.ts";
export type { ResumptionOptions } from "./resumption_options.ts";
export { DEFAULT_MAX_GIVINGS } from "./resumption_options.ts";
export type { ResumptionDeps } from "./resumption.ts";
export { Resumption } from "./resumption.ts";
