export { OfflineMessages } from "./offline_messages.ts";
export type { OfflineHostOptions, OfflineMessagesDeps } from "./offline_messages_deps.ts";
