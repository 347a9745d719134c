export type { OfflineHostOptions, OfflineMessagesDeps } from "./offline_messages.ts";
export { OfflineMessages } from "./offline_messages.ts";
