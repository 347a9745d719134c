export { archiveRequests } from "./archive_requests.ts";
export type { ArchiveRequestsDeps } from "./archive_requests.ts";
export { MessageArchive } from "./message_archive.ts";
export type { ArchiveHostOptions, MessageArchiveDeps } from "./message_archive.ts";
