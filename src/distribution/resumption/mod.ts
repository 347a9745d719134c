export type {
  DeliveredNumbers,
  FreezableSessions,
  LinkTraffic,
  Peer,
  Peers,
  RepeatMemory,
  ResumptionLink,
} from "./ports.ts";
export type { ResumptionOptions } from "./resumption_options.ts";
export type { ResumptionDeps } from "./resumption.ts";
export { Resumption } from "./resumption.ts";
